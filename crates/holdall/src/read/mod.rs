//! Reading: snapshots, one lookup pipeline, objects and listings.
//!
//! `state` is a snapshot with what is needed to read; `lookup` leads from a key to bytes for
//! every call; `reader` and `listing` are what users see.

pub(crate) mod listing;
mod located;
pub(crate) mod long_read;
pub(crate) mod lookup;
mod many;
pub(crate) mod reader;
pub(crate) mod state;
pub(crate) mod view_cache;

pub use listing::{Entry, Listed, Listing, NameIter};
pub use located::Located;
pub use reader::{Fetched, Object, Reader};
