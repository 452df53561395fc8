//! Claims, made with few words.
//!
//! Owns: how a claim is judged. The column of the paper holds the paper's figure or nothing.

use super::draw::number;
use crate::experiment::{Claim, Outcome, Verdict};

/// A claim that something is so; `tolerance` says in words what is asked of `ours`.
#[must_use]
pub fn holds(
    id: &str,
    text: &str,
    paper: &str,
    ours: impl Into<String>,
    tolerance: &str,
    so: bool,
) -> Claim {
    Claim {
        id: id.to_owned(),
        text: text.to_owned(),
        section: String::new(),
        paper: paper.to_owned(),
        ours: ours.into(),
        ratio: None,
        tolerance: tolerance.to_owned(),
        verdict: if so { Verdict::Holds } else { Verdict::Fails },
        explanation: String::new(),
        judged_when_quick: false,
    }
}

/// A claim of two numbers whose ratio must be within `tolerance` (a share) of 1; with 0 the
/// numbers must be equal.
#[must_use]
pub fn ratio(id: &str, text: &str, paper: f64, ours: f64, unit: &str, tolerance: f64) -> Claim {
    let of = ours / paper;
    let allowed = match tolerance {
        t if t < 1e-9 => "=".to_owned(),
        t => format!("{:.0} %", t * 100.0),
    };
    let so = (of - 1.0).abs() <= tolerance + 1e-9;
    let with = |n: f64| format!("{} {unit}", number(n)).trim_end().to_owned();
    holds(id, text, &with(paper), with(ours), &allowed, so).ratio(of)
}

/// A claim of closed form: both numbers are equal, and quick runs judge it too.
#[must_use]
pub fn equal(id: &str, text: &str, paper: f64, ours: f64, unit: &str) -> Claim {
    ratio(id, text, paper, ours, unit, 0.0).judged_when_quick()
}

/// A claim that a number lies between two, which the tolerance shows.
#[must_use]
pub fn between(
    id: &str,
    text: &str,
    paper: &str,
    ours: f64,
    unit: &str,
    least: f64,
    most: f64,
) -> Claim {
    let allowed = format!("{}–{} {unit}", number(least), number(most));
    let so = (least..=most).contains(&ours);
    let ours = format!("{} {unit}", number(ours));
    holds(id, text, paper, ours.trim_end(), allowed.trim_end(), so)
}

/// An observation: neither holds nor fails.
#[must_use]
pub fn note(id: &str, text: &str, paper: &str, ours: impl Into<String>) -> Claim {
    Claim { verdict: Verdict::Note, ..holds(id, text, paper, ours, "", true) }
}

impl Claim {
    /// With ours ÷ the paper's.
    #[must_use]
    pub fn ratio(self, ratio: f64) -> Self {
        Self { ratio: Some(ratio), ..self }
    }

    /// With the section of the paper that says it.
    #[must_use]
    pub fn section(self, section: &str) -> Self {
        Self { section: section.to_owned(), ..self }
    }

    /// What looking into a failure found, behind what was said before; kept only if the claim
    /// fails.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        if self.verdict != Verdict::Fails {
            return self;
        }
        let both = format!("{} {}", self.explanation, why.into());
        self.remark(both.trim())
    }

    /// Something to say in any case.
    #[must_use]
    pub fn remark(self, remark: impl Into<String>) -> Self {
        Self { explanation: remark.into(), ..self }
    }

    /// Another reading than the paper's words: if it holds, then by this assumption.
    #[must_use]
    pub fn by_assumption(self, assumption: &str) -> Self {
        let verdict = match self.verdict {
            Verdict::Holds => Verdict::Assumed,
            other => other,
        };
        Self { verdict, explanation: format!("Assumed: {assumption}"), ..self }
    }

    /// Quick runs are large enough to judge it.
    #[must_use]
    pub fn judged_when_quick(self) -> Self {
        Self { judged_when_quick: true, ..self }
    }

    /// As an observation.
    #[must_use]
    pub fn as_note(self) -> Self {
        Self { verdict: Verdict::Note, ..self }
    }
}

/// What a run found, with what a quick one is too small to judge as observations.
#[must_use]
pub fn finish(mut outcome: Outcome, quick: bool) -> Outcome {
    if quick {
        for claim in outcome.claims.iter_mut().filter(|c| !c.judged_when_quick) {
            claim.verdict = Verdict::Note;
        }
        outcome.notes.push(
            "A quick run: shorter than the paper's. Claims that depend on the length are not \
             judged."
                .to_owned(),
        );
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_judged_by_their_tolerance() {
        let verdict = |paper, ours, tolerance| ratio("B1", "", paper, ours, "s", tolerance).verdict;
        assert_eq!(verdict(10.0, 10.5, 0.05), Verdict::Holds);
        assert_eq!(verdict(10.0, 10.6, 0.05), Verdict::Fails);
        assert_eq!(verdict(10.0, 10.0, 0.0), Verdict::Holds);
        assert_eq!(verdict(10.0, 10.001, 0.0), Verdict::Fails);
        let between = between("B1", "", "80–90", 79.9, "%", 80.0, 90.0);
        assert_eq!((between.verdict, between.tolerance.as_str()), (Verdict::Fails, "80–90 %"));
    }

    #[test]
    fn an_assumption_is_no_plain_success() {
        let claim = holds("M2", "", "", "", "shape", true).by_assumption("the fullest goes");
        assert_eq!(claim.verdict, Verdict::Assumed);
        let fails = holds("M2", "", "", "", "shape", false).by_assumption("the fullest goes");
        assert_eq!(fails.verdict, Verdict::Fails);
    }

    #[test]
    fn quick_runs_judge_what_does_not_depend_on_size() {
        let claims = vec![equal("B1", "", 1.0, 2.0, ""), holds("B2", "", "", "", "", false)];
        let outcome = finish(Outcome { claims, ..Outcome::default() }, true);
        let verdicts: Vec<_> = outcome.claims.iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts, [Verdict::Fails, Verdict::Note]);
    }
}
