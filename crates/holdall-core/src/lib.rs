//! Page formats and algorithms of Holdall: bytes in, bytes out, no I/O.
//!
//! Everything here is pure and `unsafe`-free, so that every parser can be fuzzed and every
//! structure tested alone. The engine (crate `holdall`) puts a pager, a log and a disk
//! below it. docs/format.md is the byte-by-byte description of what this crate reads and
//! writes.
#![forbid(unsafe_code)]

pub mod attributes;
pub mod backup_stream;
pub mod buddy;
mod busy;
pub mod bytes;
pub mod checksum;
pub mod collection_entry;
pub mod collection_page;
mod error;
pub mod handle_page;
pub mod heap_page;
pub mod heap_placement;
pub mod heap_record;
pub mod image_node;
pub mod log_format;
pub mod mark;
pub mod mutation;
pub mod name;
pub mod names_node;
mod names_value;
pub mod page;
pub mod page_map_node;
pub mod pages;
mod put_mode;
pub mod root_page;
mod run_set;
pub mod segment_tree;
pub mod space_dir;
pub mod space_info;
pub mod superblock;
pub mod techniques;
mod types;
pub mod version;

pub use busy::Busy;
pub use error::{Error, Result};
pub use holdall_memory::{PageMemory, PageRef};
pub use names_value::NameValue;
pub use page::PageKind;
pub use pages::{PageRead, PageWrite};
pub use put_mode::PutMode;
pub use run_set::RunSet;
pub use types::{Lsn, Oid, PageNo, PageRun};
pub use version::Version;
