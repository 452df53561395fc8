//! Holdall: an embedded, transactional object store in one file.

pub mod handle;
pub mod heap;
pub mod log;
pub mod names;
pub mod page_map;
pub mod pager;
pub mod space;

pub use holdall_core::{Error, Lsn, Oid, PageNo, PageRun, Result};
