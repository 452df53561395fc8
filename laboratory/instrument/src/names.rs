//! Names with places: one row of a data file stands for several claims or plots.
//!
//! Owns: the form of such names. `{0}`, `{1}` .. are their places, and a text beside takes what
//! stands there.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Captions of plots: for each experiment, its panels by their names.
pub type Captions = BTreeMap<String, BTreeMap<String, String>>;

/// The caption of a panel: its own, or that of a name with places that fits.
#[must_use]
pub fn caption(captions: &Captions, experiment: &str, panel: &str) -> Option<String> {
    let panels = captions.get(experiment)?;
    panels.get(panel).cloned().or_else(|| {
        panels.iter().find_map(|(name, text)| Some(filled(text, &matched(name, panel)?)))
    })
}

/// `text` with `words` in its places.
#[must_use]
pub fn filled<W: Display>(text: &str, words: &[W]) -> String {
    let mut text = text.to_owned();
    for (n, word) in words.iter().enumerate() {
        text = text.replace(&format!("{{{n}}}"), &word.to_string());
    }
    text
}

/// What stands in the places of `name` in `id`; `None` if `id` is not `name` with its places
/// filled.
#[must_use]
pub fn matched<'i>(name: &str, id: &'i str) -> Option<Vec<&'i str>> {
    let mut parts = name.split(['{', '}']).step_by(2);
    let mut rest = id.strip_prefix(parts.next()?)?;
    let mut words = Vec::new();
    for part in parts {
        let at = if part.is_empty() { rest.len() } else { rest.find(part)? };
        words.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    (rest.is_empty() && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_take_what_stands_there() {
        assert_eq!(matched("B4 {0} KiB", "B4 3 KiB"), Some(vec!["3"]));
        assert_eq!(matched("{0}-time of {1}", "n-time of HY"), Some(vec!["n", "HY"]));
        for (name, id) in [("B4 {0} KiB", "B4 3 MiB"), ("B4", "B4"), ("a{0}b", "axbc")] {
            assert_eq!(matched(name, id), None, "{name} {id}");
        }
        assert_eq!(filled("{1} of {0}", &["a", "b"]), "b of a");
    }

    #[test]
    fn a_panels_own_caption_comes_first() {
        let row = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let panels = [row("{0}", "any"), row("again-{0}", "figure {0}"), row("cost", "own")];
        let captions = Captions::from([("x".to_owned(), BTreeMap::from(panels))]);
        let of = |panel| caption(&captions, "x", panel);
        assert_eq!(of("cost").as_deref(), Some("own"));
        assert_eq!(of("again-4").as_deref(), Some("figure 4"));
        assert_eq!(of("other").as_deref(), Some("any"));
        assert_eq!(caption(&captions, "y", "cost"), None);
    }
}
