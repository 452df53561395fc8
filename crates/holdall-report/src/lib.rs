//! What a Holdall store says of itself, for programs and for people.
//!
//! Owns: the reports of `stat`, `verify`, `defrag` and `frag` as JSON; the fragmentation as SVG
//! and as a page; the structures of `inspect` in words and as JSON; printed forms of names and
//! dates. All are pure functions of the engine's reports, for the command, the Python package and
//! the server.

pub mod date;
pub mod draw;
pub mod inspect;
pub mod json;
mod letters;
pub mod name;
pub mod page;
pub mod words;
