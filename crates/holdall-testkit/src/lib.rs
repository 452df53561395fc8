//! Disks for tests and experiments: one that fails on purpose ([`FaultyStorage`]), one that
//! counts with the cost model of the papers ([`CountedDisk`]), one that holds terabytes of
//! nothing ([`SparseDisk`]).
//!
//! Owns the test doubles of `holdall-io`; not published. Production code does not depend on it.

mod counted;
mod faulty;
mod sparse;

pub use counted::{CostModel, CountedDisk, CountedStorage, DiskStats, SeekRule};
pub use faulty::{CrashKind, FaultPlan, FaultyFile, FaultyStorage, Flip, LossPolicy, Reshaped};
pub use sparse::SparseDisk;
