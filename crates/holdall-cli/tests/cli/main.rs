//! Tests of the command `holdall` that run the real binary on temporary directories.

mod bad_input;
mod docs;
mod full_disk;
mod objects;
mod resume;
mod support;
mod tree;
