//! Objects: one face over small ones in heap records and large ones in segments.
//!
//! Owns: promotion between small and large, reading any range. Knows
//! collections only by their heap file; names and commits are the store's.

mod copy;
mod edit;
mod hints;
mod lower;
mod read;
mod rearrange;
mod replace;
mod run;
mod write;

pub use copy::Shares;
pub use edit::Resized;
pub use hints::{Hints, StoredHints};
pub use holdall_core::attributes::Attributes;
pub use holdall_core::heap_record::{Body, Head, Record, encode_attributes};
pub use read::{
    Layout, Metadata, ObjectBody, Segments, metadata, mtime, open, open_at, own_in_place,
    own_record, read_record, segments, time_of,
};
pub use rearrange::{ObjectPiece, pieces};
pub use replace::{ObjectLocation, PreviousBody};
pub use run::New;
pub use write::{Data, ObjectWrite, StagedPart, max_tail, tail_limit};
