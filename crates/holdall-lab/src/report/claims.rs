//! Claims counted and put in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::experiment::{Claim, Paper, Verdict};

use super::Record;

/// How many claims there are of each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// That hold.
    pub hold: usize,
    /// That fail.
    pub fail: usize,
    /// That are observations.
    pub notes: usize,
}

impl Count {
    /// Counts `claims`.
    pub fn of<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> Self {
        let mut count = Self::default();
        for claim in claims {
            match claim.verdict {
                Verdict::Holds => count.hold += 1,
                Verdict::Fails => count.fail += 1,
                Verdict::Note => count.notes += 1,
            }
        }
        count
    }

    /// `3 of 4 claims hold, 2 notes`.
    #[must_use]
    pub fn words(self) -> String {
        let judged = self.hold + self.fail;
        let plural = |n: usize, one: &'static str, many| if n == 1 { one } else { many };
        let notes = match self.notes {
            0 => String::new(),
            n => format!("{n} {}", plural(n, "note", "notes")),
        };
        match (judged, self.notes) {
            (0, 0) => "no claims".to_string(),
            (0, _) => notes,
            _ => {
                let verb = plural(judged, "claim holds", "claims hold");
                let notes = if notes.is_empty() { notes } else { format!(", {notes}") };
                format!("{} of {judged} {verb}{notes}", self.hold)
            }
        }
    }
}

/// Whose claim it is: the paper's, by its number in the list of claims (`B13 10K`), or one that
/// we hold ourselves to beside it; those are counted apart.
#[must_use]
pub fn source(record: &Record, claim: &Claim) -> Option<Paper> {
    let letter = match record.paper {
        Paper::Biliris => 'B',
        Paper::McAuliffe => 'M',
    };
    let number = claim.id.strip_prefix(letter)?;
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(record.paper)
}

/// What the claims of a source are called.
#[must_use]
pub fn source_name(source: Option<Paper>) -> &'static str {
    source.map_or("Beside the list of claims", paper_name)
}

/// How many claims of the list hold in all their rows, of how many that are judged; the rows of
/// a claim begin with its number.
pub fn whole<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> (usize, usize) {
    let mut all: BTreeMap<&str, bool> = BTreeMap::new();
    for claim in claims.into_iter().filter(|c| c.verdict != Verdict::Note) {
        let number = claim.id.split_whitespace().next().unwrap_or_default();
        *all.entry(number).or_insert(true) &= claim.verdict == Verdict::Holds;
    }
    (all.values().filter(|holds| **holds).count(), all.len())
}

/// Whether a claim is one of closed form: to be hit exactly, or within a few percent that its
/// tolerance then names behind the sign (`=`, `= 3 %`).
#[must_use]
pub fn is_exact(claim: &Claim) -> bool {
    claim.tolerance.trim_start().starts_with('=')
}

/// Every claim with its record, in the natural order of their names (B2 before B10), one
/// paper after the other, and our own additions last.
#[must_use]
pub fn in_order(records: &[Record]) -> Vec<(&Record, &Claim)> {
    let all = records.iter().flat_map(|r| r.outcome.claims.iter().map(move |c| (r, c)));
    let mut all: Vec<_> = all.collect();
    let place = |(record, claim): &(&Record, &Claim)| match source(record, claim) {
        Some(Paper::Biliris) => 0,
        Some(Paper::McAuliffe) => 1,
        None => 2,
    };
    all.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| natural(&a.1.id, &b.1.id)));
    all
}

/// Compares runs of digits by their number.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.chars().peekable(), b.chars().peekable());
    loop {
        match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let order = digits(&mut a).cmp(&digits(&mut b));
                if order != Ordering::Equal {
                    return order;
                }
            }
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) => return x.cmp(&y),
        }
    }
}

fn digits(text: &mut std::iter::Peekable<std::str::Chars<'_>>) -> u64 {
    let mut value = 0u64;
    while let Some(digit) = text.peek().and_then(|c| c.to_digit(10)) {
        value = value.saturating_mul(10).saturating_add(u64::from(digit));
        text.next();
    }
    value
}

/// What a verdict is called.
#[must_use]
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "fails",
        Verdict::Note => "note",
    }
}

/// A paper's name and year.
#[must_use]
pub fn paper_name(paper: Paper) -> &'static str {
    match paper {
        Paper::Biliris => "Biliris 1992",
        Paper::McAuliffe => "McAuliffe 1996",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = ["B10", "B2", "B2 4 pages", "B13 100 bytes", "B13 10 K", "B1"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["B1", "B2", "B2 4 pages", "B10", "B13 10 K", "B13 100 bytes"]);
    }

    #[test]
    fn a_claim_holds_whole_where_no_row_fails() {
        let row = |id: &str, verdict| Claim {
            id: id.into(),
            text: String::new(),
            paper: String::new(),
            ours: String::new(),
            ratio: None,
            tolerance: String::new(),
            verdict,
            explanation: String::new(),
        };
        let rows = [
            row("B1 leaves", Verdict::Holds),
            row("B1 nodes", Verdict::Fails),
            row("B10 1-page", Verdict::Holds),
            row("B10 4-page", Verdict::Note),
            row("B15", Verdict::Note),
        ];
        assert_eq!(whole(&rows), (1, 2));
    }

    #[test]
    fn counts_in_words() {
        let count = |hold, fail, notes| Count { hold, fail, notes }.words();
        assert_eq!(count(0, 0, 0), "no claims");
        assert_eq!(count(3, 1, 2), "3 of 4 claims hold, 2 notes");
        assert_eq!(count(1, 0, 0), "1 of 1 claim holds");
        assert_eq!(count(0, 0, 1), "1 note");
    }
}
