//! A socket beside an open store, for what only the process that writes it knows.
//!
//! A process that has a store open for writing listens at `STORE-control` ([`Control`]). Others,
//! as the command `holdall`, then ask it ([`Client`]): to hold a snapshot that they read themselves
//! ([`Client::hold`]), for figures, for maintenance, and for changes of single objects, each one
//! transaction ([`Change`]). The protocol is in docs/control.md of the repository.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("shop.holdall");
//! use holdall_control::{Client, Control};
//!
//! let store = holdall::Store::create(&path)?;
//! store.write(|tx| tx.put("greeting", b"hello"))?;
//! let control = Control::listen(&store, &path)?;
//!
//! // In another process:
//! let mut client = Client::connect(&path)?.expect("somebody has it open");
//! assert_eq!(client.metrics()?.group_commits.count(), 1);
//! let held = client.hold(&holdall::Options::default())?;
//! assert_eq!(held.get("greeting")?.as_deref(), Some(&b"hello"[..]));
//! # drop(control);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers, from the bottom: bytes, frame, message with refusal; place, the socket's file; change;
//! answer, a connection's end in the writer; listen; client; hold; backup.

mod answer;
mod backup;
mod bytes;
mod change;
mod client;
mod frame;
mod hold;
mod listen;
mod message;
mod place;
mod refusal;

pub use backup::Elsewhere;
pub use change::{Written, apply};
pub use client::Client;
pub use listen::Control;
pub use message::{Change, Keys, Name, Object, Transaction};

/// What the fuzzer tries.
#[doc(hidden)]
pub mod fuzz {
    pub use crate::frame::{Frame, Frames};
    pub use crate::message::{Answer, Ask};
}
