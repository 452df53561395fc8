//! The facade for crates beside the engine: the techniques of this crate, without its formats.
//!
//! Owns nothing. The laboratory's papers build on these modules, and a crate that keeps large
//! objects in another store would. All else here describes Holdall's own pages and log: it is
//! open because the engine is another crate, and only the engine, its simulation and its tests
//! name it (`cargo xtask tidy`).

pub use crate::error::{Error, Result};
pub use crate::types::{PageNo, PageRun};
pub use crate::{buddy, bytes, heap_placement, segment_tree};
