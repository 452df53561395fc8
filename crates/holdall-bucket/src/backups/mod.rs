//! Backups of a store in one file, kept in a bucket or a directory.

mod back_up;
mod bucket;
mod download;
mod follow;
mod keep;
mod manifest;
mod parts;
mod place;
mod prune;
mod restore;
mod unfinished;
mod upload;

pub use back_up::{BackedUp, Base, Settings};
pub use bucket::Bucket;
pub use follow::{Event, Follow, Followed, follow};
pub use keep::Keep;
pub use manifest::Listed;
pub(crate) use place::FIRST;
pub use place::is_bucket;
pub use prune::Pruned;
pub use restore::Which;
