//! The server as clients meet it: over a socket, signed and unsigned, well-meaning and hostile.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod acl;
mod conditions;
mod cors;
mod dav;
mod dav_clients;
mod fuzz;
mod harness;
mod hostile;
mod multipart;
mod objects;
mod rights;
mod spelling;
mod stores;
mod sums;
mod tls;
mod understood;
mod verbs;
mod web;
