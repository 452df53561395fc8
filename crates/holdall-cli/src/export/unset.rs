//! Modes and times that could not be set.
//!
//! Owns: [`Unset`]. A file system that knows no modes refuses that of each file: one line with a count
//! and the first name says so, and other failures are not lost among thousands of lines.

use std::collections::BTreeMap;
use std::io;

/// What was not set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Permission bits.
    Mode,
    /// The time of the last change.
    Time,
}

/// What was exported without all that belongs to it, by kind of failure.
#[derive(Default)]
pub struct Unset(BTreeMap<(Part, Option<i32>), Few>);

/// Some of one kind.
struct Few {
    count: u64,
    first: String,
    why: String,
}

impl Unset {
    /// Notes one, of which `name` is for people.
    pub fn note(&mut self, part: Part, name: String, error: &io::Error) {
        let new = || Few { count: 0, first: name, why: error.to_string() };
        self.0.entry((part, error.raw_os_error())).or_insert_with(new).count += 1;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0.values().map(|few| few.count).sum()
    }

    /// A line for each kind.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|((part, _), few)| {
            let (one, all) = match part {
                Part::Mode => ("mode", "modes"),
                Part::Time => ("time", "times"),
            };
            let Few { count, first, why } = few;
            match count - 1 {
                0 => format!("exported all the same: {first}: its {one} cannot be set: {why}"),
                n => format!(
                    "exported all the same: {first} and {n} more: their {all} cannot be set: {why}"
                ),
            }
        })
    }
}
