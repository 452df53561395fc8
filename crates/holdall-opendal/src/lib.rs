//! A Holdall store as a service of OpenDAL.
//!
//! One collection is one service. A write is one durable transaction when it is closed, however
//! long the object is, and so are copies, renames and up to 1,000 deletes together.
//!
//! ```
//! use holdall_opendal::Holdall;
//! use opendal_core::Operator;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> opendal_core::Result<()> {
//! let store = holdall::Store::in_memory().expect("a store in memory");
//! let op = Operator::new(Holdall::new(store))?;
//! op.write("notes/a.txt", "hello").await?;
//! assert_eq!(op.read_with("notes/a.txt").range(1..4).await?.to_vec(), b"ell");
//! # Ok(())
//! # }
//! ```

mod config;
mod delete;
mod error;
mod list;
mod meta;
mod read;
mod service;
mod write;

pub use config::{Holdall, HoldallConfig};
pub use service::{HoldallService, SCHEME};
