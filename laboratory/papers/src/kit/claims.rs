//! The papers' claims as data: what each says, the paper's figure and what is allowed of ours.
//!
//! Owns: the rows of `claims.toml`. The code of an experiment measures and names its row; it
//! repeats neither the sentence nor the bounds. A row whose name has `{0}`, `{1}` .. stands for
//! several claims, and those places take the caller's words; a row with one of their full names
//! adds to it, or replaces parts of it. Threads: any.

use std::fmt::Display;
use std::sync::LazyLock;

use holdall_instrument::claim::{between, holds, ratio};
use holdall_instrument::experiment::Claim;
use holdall_instrument::names::filled;
use serde::Deserialize;
use toml::Table;

static ROWS: LazyLock<Result<Table, toml::de::Error>> =
    LazyLock::new(|| include_str!("../../claims.toml").parse());

/// What the file says of a claim.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Row {
    /// Of the paper.
    section: String,
    /// What the paper says, in our words.
    text: String,
    /// The paper's figure in words.
    paper: String,
    /// What is allowed, in words; the code judges it.
    allowed: String,
    /// The paper's figure, and how far from it ours may be, as a share.
    figure: Option<f64>,
    within: Option<f64>,
    /// Bounds of ours.
    least: Option<f64>,
    most: Option<f64>,
    unit: String,
    /// An observation, neither a pass nor a failure.
    note: bool,
    /// Quick runs judge it too.
    quick: bool,
    /// As [`Claim::because`], [`Claim::remark`] and [`Claim::by_assumption`].
    because: String,
    remark: String,
    assumed: String,
}

impl Row {
    /// The row called `name`, with a remark on the one claim `id` besides.
    fn of(name: &str, id: &str) -> Result<Self, String> {
        let rows = ROWS.as_ref().map_err(|e| format!("claims.toml: {e}"))?;
        let part = |key: &str| rows.get(key).and_then(toml::Value::as_table).cloned();
        let mut row = part(name).ok_or_else(|| format!("claims.toml has no claim '{name}'"))?;
        row.extend(part(id).into_iter().flatten());
        row.try_into().map_err(|e| format!("claims.toml, claim '{id}': {e}"))
    }

    fn finish(&self, claim: Claim, words: &[&dyn Display]) -> Claim {
        let claim = claim.section(&self.section);
        let mut claim = if self.quick { claim.judged_when_quick() } else { claim };
        if self.note {
            claim = claim.as_note();
        }
        for (text, add) in [
            (&self.because, Claim::because as fn(Claim, String) -> Claim),
            (&self.remark, Claim::remark),
            (&self.assumed, |claim, text| claim.by_assumption(&text)),
        ] {
            if !text.is_empty() {
                claim = add(claim, filled(text, words));
            }
        }
        claim
    }
}

/// A claim that the file lacks, or gives in another form. It fails in quick runs too, so that no
/// run of all experiments passes.
fn missing(id: &str, why: &str) -> Claim {
    holds(id, why, "", "", "=", false).judged_when_quick().because(why)
}

/// The claim called `name` in the file, its places filled with `words`: whether it is `so`, shown
/// as `ours`.
#[must_use]
pub fn says(name: &str, words: &[&dyn Display], ours: impl Into<String>, so: bool) -> Claim {
    let id = filled(name, words);
    let row = match Row::of(name, &id) {
        Ok(row) => row,
        Err(why) => return missing(&id, &why),
    };
    let [paper, allowed] = [&row.paper, &row.allowed].map(|text| filled(text, words));
    row.finish(holds(&id, &filled(&row.text, words), &paper, ours, &allowed, so), words)
}

/// The claim called `name` in the file, its places filled with `words`, judged by the figure or
/// the bounds there. A figure beside bounds gives the ratio.
#[must_use]
pub fn measures(name: &str, words: &[&dyn Display], ours: f64) -> Claim {
    let id = filled(name, words);
    let row = match Row::of(name, &id) {
        Ok(row) => row,
        Err(why) => return missing(&id, &why),
    };
    let text = filled(&row.text, words);
    let claim = match (row.figure, row.within, row.least, row.most) {
        (Some(figure), Some(within), None, None) => {
            ratio(&id, &text, figure, ours, &row.unit, within)
        }
        (figure, None, Some(least), Some(most)) => {
            let paper = filled(&row.paper, words);
            let claim = between(&id, &text, &paper, ours, &row.unit, least, most);
            figure.map_or(claim.clone(), |figure| claim.ratio(ours / figure))
        }
        _ => missing(&id, &format!("claims.toml, claim '{id}': a figure or bounds are missing")),
    };
    row.finish(claim, words)
}

/// Whether the file has the claim `id`, by its full name or by one with places.
#[cfg(test)]
pub(crate) fn is_there(id: &str) -> bool {
    let fits = |name: &String| name == id || holdall_instrument::names::matched(name, id).is_some();
    ROWS.as_ref().is_ok_and(|rows| rows.keys().any(fits))
}

#[cfg(test)]
mod tests {
    use holdall_instrument::experiment::Verdict;
    use holdall_instrument::names::matched;

    use super::*;

    #[test]
    fn every_row_is_whole_and_named_by_an_experiment() {
        let rows = ROWS.as_ref().unwrap();
        let text = crate::kit::sources();
        let named = |name: &str| text.contains(&format!("\"{name}\""));
        for id in rows.keys() {
            let general = rows.keys().find(|name| named(name) && matched(name, id).is_some());
            let row = Row::of(general.map_or(id, |name| name), id).unwrap();
            assert!(!row.text.is_empty(), "{id}");
            let of_paper = id.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
            assert!(!row.section.is_empty() || !of_paper, "'{id}' names no section");
            assert!(named(id) || general.is_some(), "no experiment names '{id}'");
        }
    }

    #[test]
    fn a_row_of_one_claim_adds_to_the_row_of_all() {
        let claim = measures("B13 {0}", &[&100], 37.0);
        assert_eq!((claim.id.as_str(), claim.paper.as_str()), ("B13 100", "37 ms"));
        assert!(claim.text.contains("of 100 bytes"), "{}", claim.text);
        assert_eq!(claim.verdict, Verdict::Holds);
        assert_eq!(measures("B13 {0}", &[&10_240], 37.0).verdict, Verdict::Fails);
    }

    #[test]
    fn a_claim_without_a_row_fails_in_quick_runs_too() {
        for claim in [says("B0", &[], "1", true), measures("M6", &[], 1.0)] {
            assert_eq!(claim.verdict, Verdict::Fails);
            assert!(claim.judged_when_quick && claim.tolerance == "=", "{claim:?}");
        }
    }
}
