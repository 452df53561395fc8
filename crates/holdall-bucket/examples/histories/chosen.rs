//! What is chosen by chance: contents, splices, ranges.

use crate::units::{UNIT, bytes_of, told};
use bytes::Bytes;
use holdall_bucket::Splice;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::ops::Range;

/// Units above which an object is rather cut than made longer.
const LONG: u64 = 30_000;

/// Chance, and the next marker.
pub(crate) struct Chance {
    pub(crate) random: SmallRng,
    marker: String,
    number: u32,
    /// Units of a content that lies in blobs, and of one that is sent in parts.
    blobs: u64,
    parts: u64,
}

impl Chance {
    /// `marker` has four letters that no other worker has.
    pub(crate) fn new(seed: u64, marker: String, blobs: u64, parts: u64) -> Self {
        Self { random: SmallRng::seed_from_u64(seed), marker, number: 0, blobs, parts }
    }

    pub(crate) fn one_in(&mut self, of: u32) -> bool {
        self.random.random_range(0..of) == 0
    }

    fn marker(&mut self) -> String {
        self.number += 1;
        format!("{}{:04x}", self.marker, self.number)
    }

    /// A new content: its bytes, and its form in a history.
    fn content(&mut self, units: u64) -> (Bytes, String) {
        let marker = self.marker();
        (bytes_of(&marker, units), told(&marker, units))
    }

    /// A new object: small, in blobs, rarely in parts of which several are under way.
    pub(crate) fn object(&mut self) -> (Bytes, String) {
        let units = match self.random.random_range(0..400) {
            0 => self.parts + self.random.random_range(0..self.parts / 8),
            1..140 => self.random.random_range(self.blobs / 3..self.blobs),
            _ => self.random.random_range(1..80),
        };
        self.content(units)
    }

    /// A range of an object of this size, at times one that goes beyond.
    pub(crate) fn range(&mut self, units: u64) -> Range<u64> {
        let end = if self.one_in(40) { units + 5 } else { units };
        let from = self.random.random_range(0..=end);
        let most = if self.one_in(3) { end - from } else { (end - from).min(40) };
        from..from + self.random.random_range(0..=most)
    }

    /// Splices of an object of this size, as one change: each also as a history has it; and the size since.
    pub(crate) fn splices(&mut self, mut units: u64) -> (Vec<Splice>, Vec<Value>, u64) {
        let (mut splices, mut all) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.random.random_range(0..6) / 3 {
            let (splice, told, after) = self.splice(units);
            splices.push(splice);
            all.push(told);
            units = after;
        }
        (splices, all, units)
    }

    /// A splice that leaves little of an object of this size, as [`Chance::splices`].
    pub(crate) fn thinned(&mut self, units: u64) -> (Vec<Splice>, Vec<Value>, u64) {
        let cut = units * self.random.random_range(55..90) / 100;
        let at = self.random.random_range(0..=units - cut);
        let splice = Splice::Replace(at * UNIT..(at + cut) * UNIT, Bytes::new());
        (vec![splice], vec![json!({"at": at, "cut": cut, "put": ""})], units - cut)
    }

    fn splice(&mut self, units: u64) -> (Splice, Value, u64) {
        let cuts = units > LONG;
        let range = self.range(units);
        let (at, cut) = (range.start, range.end - range.start);
        let bytes = range.start * UNIT..range.end * UNIT;
        let new = match self.random.random_range(0..30) {
            0 => self.random.random_range(self.blobs / 3..self.blobs),
            1..4 => self.random.random_range(100..600),
            _ => self.random.random_range(1..40),
        };
        let kind = if cuts { 9 } else { self.random.random_range(0..10) };
        if kind < 3 {
            let (put, told) = self.content(new);
            return (Splice::Append(put), json!({"cut": 0, "put": told}), units + new);
        }
        let (put, told) = match kind {
            9 if cut > 0 => (Bytes::new(), String::new()),
            8 => {
                let zeros = json!({"at": at, "cut": cut, "put": format!("0:0:{new}")});
                let after = units.saturating_sub(cut) + new;
                return (Splice::Zeros(bytes, new * UNIT), zeros, after);
            }
            _ => self.content(new),
        };
        let added = put.len() as u64 / UNIT;
        let (bytes, cut) = match kind {
            // An insertion.
            3..6 => (at * UNIT..at * UNIT, 0),
            _ => (bytes, cut),
        };
        let told = json!({"at": at, "cut": cut, "put": told});
        (Splice::Replace(bytes, put), told, units.saturating_sub(cut) + added)
    }
}
