//! Holdall: an embedded, transactional object store in one file.
//!
//! Objects of every size lie under ids and names in one file; any byte range can be read,
//! replaced, inserted or deleted at a cost that does not depend on the object's size.
//!
//! ```
//! use holdall::Store;
//!
//! # fn main() -> holdall::Result<()> {
//! # let dir = std::env::temp_dir().join(format!("holdall-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! # let path = dir.join("photos.holdall");
//! let store = Store::open_or_create(&path)?;
//! store.write(|tx| {
//!     tx.put("notes.txt", b"hello")?;
//!     tx.insert("notes.txt", 0, b"oh, ")?;
//!     tx.put("old.raw", &[0; 1_000_000])
//! })?;
//! let snapshot = store.read()?;
//! store.write(|tx| tx.remove("old.raw"))?;
//! assert_eq!(snapshot.get_range("notes.txt", 0..9)?, Some(b"oh, hello".into()));
//! assert!(snapshot.get("old.raw")?.is_some(), "a snapshot stays what it was");
//! assert!(store.get("old.raw")?.is_none());
//! drop(snapshot);
//! store.close()?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # What people do with it
//!
//! Read and write whole objects, by name or by the id that a new object gets. A missing name
//! is `None`, not an error:
//!
//! ```
//! # let store = holdall::Store::in_memory()?;
//! let oid = store.write(|tx| tx.put("a", b"one"))?;
//! let reader = store.read()?;
//! assert_eq!(reader.get("a")?.as_deref(), Some(&b"one"[..]));
//! assert_eq!(reader.get(oid)?, reader.get("a")?);
//! assert_eq!(reader.get("b")?, None);
//! # Ok::<(), holdall::Error>(())
//! ```
//!
//! Change several objects at once, or nothing: an error that leaves the closure undoes all.
//!
//! ```
//! # let store = holdall::Store::in_memory()?;
//! # store.write(|tx| tx.put("draft", b"text"))?;
//! store.write(|tx| {
//!     tx.rename("draft", "final")?;
//!     tx.append("final", b", signed")?;
//!     tx.put("log", b"renamed")
//! })?;
//! # assert_eq!(store.get("final")?.as_deref(), Some(&b"text, signed"[..]));
//! # Ok::<(), holdall::Error>(())
//! ```
//!
//! Edit inside a large object: beside the place edited nothing is read or copied.
//!
//! ```
//! # let store = holdall::Store::in_memory()?;
//! store.write(|tx| {
//!     tx.put("film", &[7; 3_000_000])?;
//!     tx.insert("film", 40, b"more header")?;
//!     tx.delete_range("film", 1_000_000..1_500_000)?;
//!     tx.splice("film", 0..4, b"magic")
//! })?;
//! # assert_eq!(store.metadata("film")?.size, 2_500_012);
//! # Ok::<(), holdall::Error>(())
//! ```
//!
//! Read a part, list by prefix, copy without copying bytes:
//!
//! ```
//! # let store = holdall::Store::in_memory()?;
//! # store.write(|tx| tx.put("2024/a", &[1; 100_000]))?;
//! store.write(|tx| tx.copy("2024/a", "2024/b"))?;
//! let reader = store.read()?;
//! let mut part = [0; 16];
//! assert_eq!(reader.read_at("2024/b", 50_000, &mut part)?, Some(16));
//! assert_eq!(reader.names("2024/").count(), 2);
//! # Ok::<(), holdall::Error>(())
//! ```
//!
//! Use an object as a file, through `std::io`:
//!
//! ```
//! use std::io::{Read, Seek, SeekFrom};
//! # let store = holdall::Store::in_memory()?;
//! store.write(|tx| {
//!     let mut file = tx.open_or_create("notes")?;
//!     file.push(b"first line\n")?;
//!     file.set_position(0);
//!     file.insert(b"title\n")?;
//!     file.finish()
//! })?;
//! let mut text = String::new();
//! let mut file = store.read()?.open("notes")?;
//! file.seek(SeekFrom::Start(6))?;
//! file.read_to_string(&mut text)?;
//! assert_eq!(text, "first line\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//!
//! - A commit is acknowledged when it survives a power cut, for one sync of the log, which commits
//!   that come together share. [`Durability::Deferred`] does not wait.
//! - A transaction happens whole or not at all. One writes at a time; others wait for it, with a
//!   limit if [`WriteOptions`] set one. Readers never wait for it.
//! - A snapshot shows one state until it is dropped. Only where the disk ends, or a bound that the
//!   application set ([`Options::pinned_bytes`]), is the oldest given up for the space that it
//!   holds; then its reads fail with [`Error::SnapshotTooOld`].
//! - A damaged byte on disk is an error that names the object, the range or the page.
//! - Threads share a [`Store`], a [`Reader`] and an [`Object`]; a [`WriteTx`] may go from thread to
//!   thread. One process has a store open for
//!   writing; any number read it meanwhile, and may ask it through the crate `holdall-control`.
//! - A name has at most 1,024 bytes, and need not be text.
//!
//! The file format is not final before 1.0; each build opens files of earlier versions. Feature
//! `tracing` reports events to that crate, `serde` makes figures and reports serializable. The crate
//! is tested on Linux and compiles for macOS and FreeBSD.
//!
//! # Layers
//!
//! From the bottom: log, cache, txn, space, page map, handle, heap, names, sharing, segment tree,
//! object, engine, read, write, store, maintain, backup, salvage; each knows those before it, and all are private.
//! docs/design.md of the repository says why they are as they are.

mod backup;
mod cache;
mod engine;
mod handle;
mod heap;
mod images;
mod lock;
mod log;
mod maintain;
mod metrics;
mod names;
mod object;
mod page_map;
mod prefetch;
mod read;
mod salvage;
mod segment_tree;
mod sharing;
mod space;
mod store;
mod txn;
mod write;

pub use backup::{
    Backup, BackupId, BackupInfo, BackupPart, BackupProgress, BackupReport, RestoreReport, restore,
};
#[doc(hidden)]
pub use backup::{BackupHead, BackupPieces, BackupSource, Reached, restore_on};
#[doc(hidden)]
pub use cache::holder::Holder;
pub use engine::catalog::DEFAULT_COLLECTION;
pub use engine::key::Key;
pub use engine::{GaveBack, Options, Tuning};
pub use holdall_core::attributes::MTIME;
#[doc(hidden)]
pub use holdall_core::mark::Mark;
pub use holdall_core::{Busy, Error, Lsn, Oid, PageNo, PageRun, PutMode, Result, Version};
pub use holdall_io::{FileId, Storage};
pub use maintain::{DefragOptions, DefragReport, Defragmenter, Moved};
pub use maintain::{Problem, Progress, VerifyOptions, VerifyReport, frag, inspect};
pub use maintain::{ScrubOptions, Scrubber};
pub use metrics::Distribution;
pub use names::ListOptions;
pub use object::{Attributes, Hints, Layout, Metadata, Segments, mtime};
pub use read::{
    Entry, Fetched, Items, Listed, Listing, Located, Looked, NameIter, Object, Reader, Values,
};
pub use salvage::{DoubtfulObject, LostObject, Salvage, SalvageReport};
pub use store::{
    Checkpoints, CollectionStat, Elsewhere, Fullness, Metrics, ReaderStat, Store, StoreStat,
};
pub use txn::{Cancel, Wait};
pub use write::{
    CollectionMut, Durability, ObjectMut, ObjectWriter, ObjectsMut, PutOptions, StagedObject,
    Target, WriteOptions, WriteTx,
};
