//! A model of somebody who writes: a first text, then version after version.
//!
//! Owns the versions: the same seed gives the same ones. Text is ASCII words, lines and
//! paragraphs (parted by an empty line).

use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::ops::Range;

/// A change against the version before: `cut` bytes from `at` on become `insert`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Place in the version before.
    pub at: usize,
    /// Bytes that go.
    pub cut: usize,
    /// Bytes that come.
    pub insert: Vec<u8>,
}

/// The next version: `text` with `splices`, which are in order and do not touch.
pub fn apply(text: &[u8], splices: &[Splice]) -> Vec<u8> {
    let (mut new, mut done) = (Vec::with_capacity(text.len() + 1024), 0);
    for splice in splices {
        new.extend_from_slice(&text[done..splice.at]);
        new.extend_from_slice(&splice.insert);
        done = splice.at + splice.cut;
    }
    new.extend_from_slice(&text[done..]);
    new
}

/// Somebody who writes.
#[derive(Debug)]
pub struct Author {
    rng: SmallRng,
    words: Vec<String>,
    /// Bytes about which the text stays.
    target: usize,
}

impl Author {
    /// An author of texts of about `target` bytes.
    pub fn new(seed: u64, target: usize) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let word = |_| {
            let len = rng.random_range(1..=10);
            (0..len).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
        };
        let words = (0..2000).map(word).collect();
        Self { rng, words, target }
    }

    /// The first version.
    pub fn first(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        while text.len() < self.target {
            text.extend(self.paragraph());
        }
        text
    }

    /// What changes from `text` to the next version, in order.
    pub fn next(&mut self, text: &[u8]) -> Vec<Splice> {
        let mut splices: Vec<Splice> = Vec::new();
        for _ in 0..self.rng.random_range(1..=6) {
            let edit = self.edit(text);
            // Those that touch one chosen before are left out, a move as a whole.
            if edit.iter().all(|new| splices.iter().all(|old| apart(old, new))) {
                splices.extend(edit);
            }
        }
        splices.sort_by_key(|s| s.at);
        splices
    }

    /// One thing an author does.
    fn edit(&mut self, text: &[u8]) -> Vec<Splice> {
        let range = self.rng.random_range(0..=text.len());
        let (start, line) = (range, line(text, range));
        let grow = self.grows(text.len());
        match self.rng.random_range(0..100) {
            0..40 => {
                let space = text[start..].iter().position(|b| *b == b' ' || *b == b'\n');
                let at = start + space.unwrap_or(text.len() - start);
                let end = text.len().min(at + 1);
                let rest = text[end..].iter().position(|b| *b == b' ' || *b == b'\n');
                let cut = rest.map_or(0, |n| n + end - at);
                let word = format!(" {}", self.word()).into_bytes();
                match self.rng.random_range(0..4) {
                    0 => vec![Splice { at, cut, insert: word }],
                    _ if grow => vec![Splice { at, cut: 0, insert: word }],
                    _ => vec![Splice { at, cut, insert: Vec::new() }],
                }
            }
            40..70 if grow => {
                vec![Splice { at: line.start, cut: 0, insert: self.line() }]
            }
            40..70 => vec![Splice { at: line.start, cut: line.len(), insert: Vec::new() }],
            70..85 => self.moved(text, line),
            _ => {
                let old = paragraph(text, start);
                let insert = self.paragraph();
                vec![Splice { at: old.start, cut: old.len(), insert }]
            }
        }
    }

    /// A few lines cut at one place and put in elsewhere.
    fn moved(&mut self, text: &[u8], first: Range<usize>) -> Vec<Splice> {
        let mut end = first.end;
        for _ in 0..self.rng.random_range(0..10) {
            end = line(text, end).end;
        }
        let lines = first.start..end;
        let to = self.rng.random_range(0..=text.len());
        let to = line(text, to).start;
        let gone = Splice { at: lines.start, cut: lines.len(), insert: Vec::new() };
        let come = Splice { at: to, cut: 0, insert: text[lines].to_vec() };
        if apart(&gone, &come) { vec![gone, come] } else { Vec::new() }
    }

    /// Whether the next change adds; near the target, as chance has it.
    fn grows(&mut self, len: usize) -> bool {
        let share = len as f64 / self.target as f64;
        self.rng.random_bool((0.5 + (1.0 - share) * 5.0).clamp(0.0, 1.0))
    }

    fn word(&mut self) -> String {
        let at = self.rng.random_range(0..self.words.len());
        self.words[at].clone()
    }

    fn line(&mut self) -> Vec<u8> {
        let words: Vec<_> = (0..self.rng.random_range(5..=14)).map(|_| self.word()).collect();
        format!("{}\n", words.join(" ")).into_bytes()
    }

    fn paragraph(&mut self) -> Vec<u8> {
        let lines = self.rng.random_range(2..=9);
        let mut text: Vec<u8> = (0..lines).flat_map(|_| self.line()).collect();
        text.push(b'\n');
        text
    }
}

/// Whether two changes are so far from one another that their order does not matter.
fn apart(a: &Splice, b: &Splice) -> bool {
    a.at + a.cut < b.at || b.at + b.cut < a.at
}

/// The line that holds `at`, with its end.
fn line(text: &[u8], at: usize) -> Range<usize> {
    let start = text[..at].iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let end = text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |n| at + n + 1);
    start..end
}

/// The paragraph that holds `at`, with the empty line behind it.
fn paragraph(text: &[u8], at: usize) -> Range<usize> {
    let start = text[..at].windows(2).rposition(|w| w == b"\n\n").map_or(0, |n| n + 2);
    let end = text[at..].windows(2).position(|w| w == b"\n\n").map_or(text.len(), |n| at + n + 2);
    start..end
}
