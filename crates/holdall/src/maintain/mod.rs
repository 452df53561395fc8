//! Looking after a store: checking all of it, showing what lies in it and how well it lies.
//!
//! Owns: nothing on disk; reads one snapshot of a store and changes nothing. [`inspect`]
//! also reads the log of a store that is not open.

pub mod frag;
pub mod inspect;
mod verify;

pub use verify::{Problem, Progress, VerifyOptions, VerifyReport};
