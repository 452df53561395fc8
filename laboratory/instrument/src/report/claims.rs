//! Claims counted and put in order.

use std::collections::BTreeMap;

use crate::experiment::{Claim, Verdict};
use crate::paper::{Library, Paper};

use super::Record;
use super::order::natural;

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

    /// All of them.
    #[must_use]
    pub fn all(self) -> usize {
        self.judged() + self.notes
    }

    /// Those that can fail.
    #[must_use]
    pub fn judged(self) -> usize {
        self.hold + self.assumed + self.fail
    }

    /// `3 of 5 claims hold, 1 by an assumption, 2 notes`.
    #[must_use]
    pub fn words(self) -> String {
        let judged = self.judged();
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
    fn a_claim_holds_whole_where_no_row_fails() {
        let row = |id: &str, verdict| Claim {
            id: id.into(),
            text: String::new(),
            section: String::new(),
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
