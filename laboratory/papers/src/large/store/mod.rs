//! What all techniques stand on: buddy spaces, the buffer pool, index pages.
//!
//! Owns: [`Volume`], two areas (leaf segments, everything else) under one pool, as in Biliris
//! §4.1. Reading goes through the pool by the paper's rules (§3.2); index pages that change
//! are shadowed and flushed when the operation ends, but for the root (§3.3). The engine's
//! segment tree works on it directly.

mod area;
mod engine;
mod node;
mod pool;
mod volume;

pub use area::{Area, MAX_SEGMENT_PAGES};
pub use engine::{NoSegments, Peek};
pub use node::Format;
pub use pool::{Key, Pool, Which};
pub use volume::{Config, Purpose, Volume};
