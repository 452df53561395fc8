//! The server as clients meet it: over a socket, signed and unsigned, well-meaning and hostile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acl;
mod conditions;
mod cors;
mod dav;
mod dav_asked;
mod dav_conditions;
mod dav_kept;
mod dav_locks;
mod dav_traces;
mod dav_trees;
mod deep;
mod doors;
mod entrance;
mod fuzz;
mod fuzz_requests;
mod harness;
mod hostile;
mod multipart;
mod names;
mod objects;
mod progress;
mod reloading;
mod rights;
mod spelling;
mod stalled;
mod stores;
mod strict;
mod sums;
mod tls;
mod understood;
mod verbs;
mod web;
mod web_names;
