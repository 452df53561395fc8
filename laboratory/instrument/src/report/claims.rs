//! Claims counted and put in order.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::experiment::{Claim, Verdict};
use crate::paper::{Library, Paper};

use super::Record;

/// How many claims there are of each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// That hold by the paper's words.
    pub hold: usize,
    /// That hold by an assumption of ours.
    pub assumed: usize,
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
                Verdict::Assumed => count.assumed += 1,
                Verdict::Fails => count.fail += 1,
                Verdict::Note => count.notes += 1,
            }
        }
        count
    }

    /// `3 of 5 claims hold, 1 by an assumption, 2 notes`.
    #[must_use]
    pub fn words(self) -> String {
        let judged = self.hold + self.assumed + self.fail;
        let plural = |n: usize, one: &'static str, many| if n == 1 { one } else { many };
        let mut parts = Vec::new();
        if judged > 0 {
            let verb = plural(judged, "claim holds", "claims hold");
            parts.push(format!("{} of {judged} {verb}", self.hold));
        }
        if self.assumed > 0 {
            parts.push(format!("{} by an assumption", self.assumed));
        }
        if self.notes > 0 {
            parts.push(format!("{} {}", self.notes, plural(self.notes, "note", "notes")));
        }
        if parts.is_empty() { "no claims".to_owned() } else { parts.join(", ") }
    }
}

/// Whose claim it is: the paper's, by its number in the list of claims (`B13 10K`), or one that
/// we hold ourselves to beside it (`None`); those are counted apart.
#[must_use]
pub fn source(library: &Library, record: &Record, claim: &Claim) -> Option<&'static Paper> {
    let paper = library.named(&record.paper)?;
    let number = claim.id.strip_prefix(paper.letter)?;
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(paper)
}

/// The sources of claims in order: each paper, and our own.
pub fn sources(library: &Library) -> impl Iterator<Item = Option<&'static Paper>> {
    library.papers.iter().copied().map(Some).chain([None])
}

/// Whether two sources are one.
#[must_use]
pub fn same(a: Option<&Paper>, b: Option<&Paper>) -> bool {
    a.map(|p| p.letter) == b.map(|p| p.letter)
}

/// What the claims of a source are called.
#[must_use]
pub fn source_name(source: Option<&Paper>) -> &'static str {
    source.map_or("Beside the list of claims", |paper| paper.citation)
}

/// How many claims of the list hold in all their rows, of how many that are judged; the rows of
/// a claim begin with its number.
pub fn whole<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> (usize, usize) {
    let mut all: BTreeMap<&str, bool> = BTreeMap::new();
    let judged = |c: &&Claim| matches!(c.verdict, Verdict::Holds | Verdict::Fails);
    for claim in claims.into_iter().filter(judged) {
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

/// Every claim of a source with its record and its place there, in the natural order of their
/// names (B2 before B10).
#[must_use]
pub fn of_source<'r>(
    library: &Library,
    records: &'r [Record],
    from: Option<&Paper>,
) -> Vec<(&'r Record, usize, &'r Claim)> {
    let claims = |record: &'r Record| {
        let all = record.outcome.claims.iter().enumerate();
        all.map(move |(at, claim)| (record, at, claim))
    };
    let mut all: Vec<_> = records.iter().flat_map(claims).collect();
    all.retain(|(record, _, claim)| same(source(library, record, claim), from));
    all.sort_by(|a, b| natural(&a.2.id, &b.2.id));
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
        Verdict::Assumed => "holds by assumption",
        Verdict::Fails => "fails",
        Verdict::Note => "note",
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
            judged_when_quick: false,
        };
        let rows = [
            row("B1 leaves", Verdict::Holds),
            row("B1 nodes", Verdict::Fails),
            row("B10 1-page", Verdict::Holds),
            row("B10 4-page", Verdict::Note),
            row("B15", Verdict::Note),
            row("B10 both neighbours", Verdict::Assumed),
        ];
        assert_eq!(whole(&rows), (1, 2));
    }

    #[test]
    fn counts_in_words() {
        let count = |hold, fail, notes| Count { hold, assumed: 0, fail, notes }.words();
        assert_eq!(count(0, 0, 0), "no claims");
        assert_eq!(count(3, 1, 2), "3 of 4 claims hold, 2 notes");
        assert_eq!(count(1, 0, 0), "1 of 1 claim holds");
        assert_eq!(count(0, 0, 1), "1 note");
        let assumed = Count { hold: 1, assumed: 1, fail: 1, notes: 0 };
        assert_eq!(assumed.words(), "1 of 3 claims hold, 1 by an assumption");
    }
}
