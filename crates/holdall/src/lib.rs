//! Holdall: an embedded, transactional object store in one file.

pub mod handle;
pub mod heap;
pub mod log;
pub mod maintain;
pub mod names;
pub mod object;
pub mod page_map;
pub mod pager;
pub mod segment_tree;
pub mod space;
pub mod store;

pub use holdall_core::{Error, Lsn, Oid, PageNo, PageRun, Result};
pub use maintain::{Problem, Progress, VerifyOptions, VerifyReport, inspect};
pub use names::{Entry, ListOptions, Listing};
pub use object::{Attributes, Layout, Metadata};
pub use store::{
    CollectionStat, DEFAULT_COLLECTION, Key, NameIter, Object, ObjectWriter, Options, Reader, Store,
    StoreStat, Target, WriteTx, WriterOptions,
};
