//! Deterministic simulation of Holdall: operations, crashes and disk faults by seed, compared
//! with a model in memory.
//!
//! Owns nothing at run time. [`Script`] is what a seed draws (options and operations),
//! [`run`] plays it against a store on a `FaultyStorage`, [`shrink`](shrink::shrink) makes a
//! failing one small, [`exhaustive`] tries every crash point of every short sequence,
//! [`mutants`] checks that broken rules are noticed. See docs/testing.md.
//!
//! Threads: one per run; the store is opened without threads of its own, so that the same
//! script gives the same calls and the same bytes.

mod backup;
mod beside;
mod check;
mod clock;
mod collections;
mod commit;
mod crash;
mod damage;
mod draw;
mod draws;
mod ebb;
mod emptied;
pub mod exhaustive;
mod follow;
mod held;
mod many;
mod meetings;
mod model;
pub mod mutants;
pub mod mutation_list;
mod op;
pub mod pairs;
mod params;
mod rare;
mod reading;
mod script;
pub mod shrink;
mod staged;
pub mod threads;
mod transact;
mod world;

pub use check::dump;
pub use model::{Object, State};
pub use op::{Again, Crash, EditKind, End, Fault, Hint, Names, Op, TxOp};
pub use params::Params;
pub use script::{Failure, Report, Script, run};
