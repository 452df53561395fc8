//! What experiments say of themselves below their tables, as data.
//!
//! Owns: the sentences of `notes.toml`. The code of an experiment names them and gives the words
//! for their places. Threads: any.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::LazyLock;

use holdall_instrument::names::filled;

type Notes = BTreeMap<String, Vec<String>>;

static NOTES: LazyLock<Result<Notes, toml::de::Error>> =
    LazyLock::new(|| toml::from_str(include_str!("../../notes.toml")));

/// The sentences called `name`, with `words` in their places; what is wrong if there are none.
#[must_use]
pub fn of(name: &str, words: &[&dyn Display]) -> Vec<String> {
    let notes = match NOTES.as_ref() {
        Ok(notes) => notes.get(name),
        Err(error) => return vec![format!("notes.toml: {error}")],
    };
    let Some(notes) = notes else { return vec![format!("notes.toml has nothing on '{name}'")] };
    notes.iter().map(|text| filled(text.trim(), words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_note_is_named_by_an_experiment() {
        let text = crate::kit::sources();
        for (name, notes) in NOTES.as_ref().unwrap() {
            assert!(text.contains(&format!("\"{name}\"")), "nothing names '{name}'");
            assert!(notes.iter().all(|note| note.trim().ends_with('.')), "'{name}': no sentence");
        }
    }

    #[test]
    fn sentences_take_words_and_a_missing_name_shows() {
        let mix = of("biliris mix", &[&20_000, &500, &1]);
        assert!(mix[0].starts_with("20000 operations, a mark every 500;"), "{mix:?}");
        assert!(mix[0].ends_with("seed 1."), "{mix:?}");
        assert_eq!(of("none", &[]), ["notes.toml has nothing on 'none'"]);
    }
}
