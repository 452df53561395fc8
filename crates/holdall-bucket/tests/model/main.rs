//! A model of named objects in a bucket that many processes use at once.
//!
//! One description of the protocol, two engines. Each process is a sequence of requests, and each
//! request is one atomic step of the bucket; between any two of them others act. `random` draws
//! many processes, faults and delays by seed. `exhaustive` tries every order of few processes.
//! `mutations` takes each rule out and sees it noticed.
//!
//! An object is a set of blobs, or a tree of two levels (`tree`). Not modelled: bytes, attributes, lists
//! of retired blobs, and what the server loses.
//! The grace is 0: gc acts on what was written just now. What may be relied on because a real
//! grace is longer than a request lives is in `bucket`.
//!
//! HOLDALL_MODEL_SECONDS runs longer, HOLDALL_MODEL_SEED one seed with its steps,
//! HOLDALL_MODEL_LARGE=1 the larger configurations of `exhaustive`.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod bounded;
mod bucket;
mod cases;
mod checks;
mod client;
mod commit;
mod drawn;
mod exhaustive;
mod faults;
mod full;
mod gc;
mod hold;
mod mutations;
mod noticed;
mod process;
mod random;
mod record;
mod rules;
mod tally;
mod tree;
mod tree_cases;
