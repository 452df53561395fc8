//! Looking after a store: checking it, showing what lies in it and how well, putting it in order.
//!
//! Owns: nothing on disk. [`verify`] and [`inspect`] read and change nothing; [`inspect`] also
//! reads the log of a store that is not open. [`defrag`] changes where things lie, by ordinary
//! transactions.

mod defrag;
pub mod frag;
pub mod inspect;
mod verify;

pub use defrag::{DefragOptions, DefragReport, Defragmenter, Moved};
pub use verify::{Problem, Progress, VerifyOptions, VerifyReport};
