//! Tests of the command `holdall` that run the real binary on temporary directories.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod backup;
mod bad_input;
mod bucket_store;
mod buckets;
mod changes;
mod closed;
mod collisions;
mod copy;
mod demo;
mod disks;
mod docs;
mod elsewhere;
mod exfat;
mod fields;
mod frag;
mod full_disk;
mod kept_modes;
mod limits;
mod many_names;
mod objects;
#[cfg(feature = "serve")]
mod operator;
mod own_files;
mod planted;
mod races;
mod resume;
mod rights;
mod salvage;
#[cfg(feature = "serve")]
mod serve;
mod server;
mod sparse;
mod streams;
mod support;
mod terminal;
mod times;
mod tree;
mod unfinished;
mod waiting;
