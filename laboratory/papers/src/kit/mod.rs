//! What the experiments of all papers share: claims, drawings, runs kept, a pool of pages,
//! the price of an access, repetitions and their spread.
//!
//! Owns: nothing of a paper; each part says what it owns itself.

pub mod cache;
pub mod calls;
pub mod claim;
pub mod draw;
pub mod error;
pub mod parts;
pub mod pool;
pub mod price;
pub mod scratch;
pub mod spread;
