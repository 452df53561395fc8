//! Disks for Holdall: the only crate that touches the operating system.
//!
//! Owns the traits [`Disk`] and [`Storage`] and their backends: files
//! ([`FileStorage`]), memory ([`MemoryStorage`]) and a writable layer above a read-only base
//! ([`OverlayStorage`]). Disks that count, fail on purpose or hold terabytes of nothing are in
//! `holdall-testkit`.
//!
//! Every error is a [`std::io::Error`]. Kinds that callers may rely on: `UnexpectedEof` (a read
//! past the end), `StorageFull` (no space; [`NoInodes`] inside if a file finds no inode),
//! `WouldBlock` (locked by somebody else; [`Locked`] inside names them), `AlreadyExists`, `NotFound`, `IsADirectory`,
//! `PermissionDenied` (a change through a read-only open), `InvalidInput` (an offset no file can
//! have; a path that leads to no regular file, or, for a log, to a link).
//!
//! Threads: every type is `Send + Sync`. Concurrent calls on separate byte ranges do not disturb
//! each other; a caller orders calls on overlapping ranges itself.

mod blocks;
pub mod bounds;
mod clock;
mod direct;
mod directory;
mod disk;
mod file;
mod file_storage;
mod forks;
pub mod granules;
mod huge;
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod map;
#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")))]
#[path = "no_map.rs"]
mod map;
#[cfg(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64"))]
mod mapping;
mod memory;
mod new_file;
mod open;
mod opener;
mod overlay;
mod read_around;
mod record_lock;
pub mod rights;
mod room;
mod sign;
mod summed_copy;
mod write_out;

pub use clock::coarse_time;
pub use disk::{Astray, Disk, FileId, Near, Storage, WriteOut};
pub use file::{Access, FileDisk};
pub use file_storage::{FileStorage, Locked};
pub use forks::{forks, watch_forks};
pub use memory::{MemoryDisk, MemoryStorage};
pub use new_file::NewFile;
pub use opener::Opener;
pub use overlay::{OverlayDisk, OverlayStorage};
pub use room::{NoInodes, is_out_of_inodes, lacks_inodes_at};
