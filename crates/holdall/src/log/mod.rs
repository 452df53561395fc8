//! The redo log: what is durable, what lies in its file, how it is read again.
//!
//! `group_commit` appends and syncs; `scan` reads a log at recovery; `place` says what lies where a
//! store's log belongs.

mod error;
mod gather;
mod group_commit;
pub mod place;
mod scan;

pub use error::{io_error, no_inodes};
pub use gather::gather;
pub(crate) use group_commit::write_circular;
pub use group_commit::{DataFile, Log, LogStart, prepare_file, sign};
pub use scan::{Expect, Followed, Scan, follow, harden, scan};
