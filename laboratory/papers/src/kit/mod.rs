//! What the experiments of all papers share beside the instrument: a pool of pages, the cost of
//! their accesses, calls counted, panels, a database server, the claims as data, errors.
//!
//! Owns: nothing of a paper; each part says what it owns itself.

pub mod calls;
pub mod claims;
pub mod error;
pub mod model;
pub mod plot;
pub mod pool;
pub mod postgres;
