//! The page cache: versions of pages in memory, and which of them are needed.
//!
//! Owns: the pool of pages ([`pool`]), which finds them without a lock ([`index`]) and knows how
//! they are laid out ([`layout_hints`]); the snapshots that hold old versions ([`horizon`]), or the
//! process that holds them ([`holder`]).

pub(crate) mod holder;
pub(crate) mod horizon;
pub(crate) mod index;
mod layout_hints;
pub(crate) mod page_hash;
pub(crate) mod page_read;
pub(crate) mod pool;
mod threads;
mod times;

pub(crate) use threads::{thread_name, thread_number};
