//! Reading: snapshots, one lookup pipeline, objects and listings.
//!
//! `state` is a snapshot with what is needed to read; `lookup` leads from a key to bytes for
//! every call; `reader` and `listing` are what users see.

mod bindings;
pub(crate) mod items;
pub(crate) mod listing;
pub(crate) mod long_read;
pub(crate) mod lookup;
mod many;
pub(crate) mod reader;
pub(crate) mod state;
pub(crate) mod view_cache;

pub use bindings::{Fetched, Located, Looked};
pub use items::{Items, Values};
pub use listing::{Entry, Listed, Listing, NameIter};
pub use reader::{Object, Reader};
