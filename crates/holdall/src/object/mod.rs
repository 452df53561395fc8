//! Objects: one face over small ones in heap records and large ones in segments.
//!
//! Owns: the record's layout, promotion between small and large, reading any range. Knows
//! collections only by their heap file; names and commits are the store's.

mod copy;
mod edit;
mod hints;
mod read;
mod record;
mod replace;
mod run;
mod write;

pub use copy::Shares;
pub use edit::Resized;
pub use hints::{Hints, StoredHints};
pub use read::{
    Layout, Metadata, ObjectBody, Segments, look, metadata, open, open_at, read_record, segments,
};
pub use record::{Body, Head, Record, encode_attributes};
pub use replace::{ObjectLocation, PreviousBody};
pub use run::New;
pub use write::{Data, ObjectWrite, max_tail};

use std::collections::BTreeMap;

/// Attributes of an object, such as its content type or modification time.
pub type Attributes = BTreeMap<String, Vec<u8>>;

/// Most bytes all attributes of an object may take, with 64 KiB pages; an eighth of a page
/// with smaller ones.
pub const MAX_ATTRIBUTES: usize = 4096;
