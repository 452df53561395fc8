//! How a store is driven and what it uses.
//!
//! Owns nothing: bytes at the device and on disk, memory ([`usage`]); loops of operations
//! ([`drive`]).

pub mod drive;
pub mod usage;

pub use drive::{Driven, join, repeat, threads, until};
pub use usage::{Meter, disk_bytes};
