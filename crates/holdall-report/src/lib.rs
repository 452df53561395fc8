//! What a Holdall store says of itself, for programs and for people.
//!
//! Owns: the reports of `stat`, `verify`, `defrag` and `frag` as JSON; the fragmentation as SVG
//! and as a page; printed forms of names. All are pure functions of the engine's reports, for
//! the command, the Python package and the server.

pub mod draw;
pub mod json;
mod letters;
pub mod name;
pub mod page;
pub mod words;
