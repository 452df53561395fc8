//! Tests of the command `holdall` that run the real binary on temporary directories.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod docs;
mod full_disk;
mod objects;
mod planted;
mod resume;
mod support;
mod tree;
