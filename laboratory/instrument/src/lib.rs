//! The instrument: what every measurement of Holdall shares.
//!
//! An [`experiment`] is run, what it found is kept as a record ([`report`]), claims about it are
//! judged ([`claim`]) and it is drawn ([`picture`]). Nothing here knows a store or a paper: the
//! programs hand those in.

pub mod cache;
pub mod claim;
pub mod cli;
pub mod contest;
pub mod draw;
pub mod experiment;
pub mod files;
pub mod folder;
pub mod gate;
pub mod names;
pub mod paper;
pub mod parts;
mod perform;
pub mod picture;
pub mod price;
pub mod ratios;
pub mod report;
pub mod run;
pub mod scratch;
pub mod small_sync;
pub mod spread;
pub mod system;
pub mod version;
