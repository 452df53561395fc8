//! Holdall: an embedded, transactional object store in one file.
//!
//! Objects of every size lie under ids and names in one file; any byte range can be read,
//! replaced, inserted or deleted at a cost that does not depend on the object's size.
//!
//! ```
//! use holdall::{Options, Store};
//!
//! # fn main() -> holdall::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("holdall-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let path = dir.join("photos.holdall");
//! let store = Store::open_or_create(&path, &Options::default())?;
//! store.write(|tx| {
//!     tx.put("notes.txt", b"hello")?;
//!     tx.insert("notes.txt", 0, b"oh, ")?;
//!     tx.put("old.raw", &[0; 1_000_000])
//! })?;
//! let snapshot = store.read()?;
//! store.write(|tx| tx.remove("old.raw"))?;
//! assert_eq!(snapshot.get_range("notes.txt", 0..9)?, Some(b"oh, hello".into()));
//! assert!(snapshot.get("old.raw")?.is_some(), "a snapshot stays what it was");
//! assert!(store.read()?.get("old.raw")?.is_none());
//! drop(snapshot);
//! store.close()?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! The layers, from the bottom: log, pager, space, page map, handle, heap, names, sharing,
//! segment tree, object, store, maintain; each knows those before it, and all are private.
//! docs/design.md of the repository says why they are as they are.

mod handle;
mod heap;
mod log;
mod maintain;
mod names;
mod object;
mod page_map;
mod pager;
mod prefetch;
mod segment_tree;
mod sharing;
mod space;
mod store;
mod stream;

pub use holdall_core::{Error, Lsn, Oid, PageNo, PageRun, Result};
pub use maintain::{Problem, Progress, VerifyOptions, VerifyReport, inspect};
pub use names::{Entry, ListOptions, Listing};
pub use object::{Attributes, Hints, Layout, Metadata, Segments};
pub use store::{
    CollectionStat, DEFAULT_COLLECTION, Key, NameIter, Object, ObjectMut, ObjectWriter, Options,
    Reader, Store, StoreStat, Target, WriteTx, WriterOptions,
};
