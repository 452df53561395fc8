//! The papers: one list, from which the command line, the report and the tests take them.
//!
//! Owns: [`LIBRARY`]. A new paper is a module with a static of its own and one row here. Which rows
//! cannot hold today is data, `out-of-reach.toml`.

use holdall_instrument::names::{Captions, caption};
use holdall_instrument::paper::{Library, OutOfReach, Sentence};
use serde::Deserialize;
use std::sync::LazyLock;

use crate::{aging, allocation, free_space, large, oid_map};

/// All of them, in the report's order, and what they say together about how to store objects.
pub static LIBRARY: Library = Library {
    papers: &[
        &large::PAPER,
        &free_space::PAPER,
        &allocation::PAPER,
        &oid_map::PAPER,
        &aging::PAPER,
    ],
    together,
    caption: |experiment, panel| caption(CAPTIONS.as_ref().ok()?, experiment, panel),
    out_of_reach: |claim| {
        let rows = &OUT_OF_REACH.as_ref().ok()?.row;
        rows.iter().find(|row| row.claims.iter().any(|name| name == claim))
    },
};

/// What is to be seen in each plot.
static CAPTIONS: LazyLock<Result<Captions, toml::de::Error>> =
    LazyLock::new(|| toml::from_str(include_str!("../captions.toml")));

/// The rows that cannot hold today.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unreachable {
    row: Vec<OutOfReach>,
}

static OUT_OF_REACH: LazyLock<Result<Unreachable, toml::de::Error>> =
    LazyLock::new(|| toml::from_str(include_str!("../out-of-reach.toml")));

/// The sentences of the file; none if it cannot be read, which a test notices.
fn together() -> Vec<Sentence> {
    #[derive(Deserialize)]
    struct File {
        sentence: Vec<Sentence>,
    }
    let file: Result<File, _> = toml::from_str(include_str!("../together.toml"));
    file.map_or_else(|_| Vec::new(), |file| file.sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_named_after_its_paper() {
        for paper in LIBRARY.papers {
            for experiment in (paper.experiments)() {
                let found = LIBRARY.of(experiment.id()).map(|p| p.name);
                assert_eq!(found, Some(paper.name), "{}", experiment.id());
            }
        }
    }

    #[test]
    fn letters_and_names_differ() {
        for (i, a) in LIBRARY.papers.iter().enumerate() {
            for b in &LIBRARY.papers[..i] {
                assert!(a.letter != b.letter && a.name != b.name, "{} {}", a.name, b.name);
            }
        }
    }

    #[test]
    fn every_caption_is_of_an_experiment() {
        let experiments = LIBRARY.experiments();
        for (id, panels) in CAPTIONS.as_ref().unwrap() {
            assert!(experiments.iter().any(|e| e.id() == id), "{id} is no experiment");
            for (panel, text) in panels {
                assert!(text.ends_with('.'), "{id}, {panel}: no sentence");
                assert!((LIBRARY.caption)(id, &panel.replace(['{', '}'], "")).is_some(), "{panel}");
            }
        }
        assert_eq!((LIBRARY.caption)("none", "none"), None);
    }

    #[test]
    fn what_is_out_of_reach_is_named_once_and_says_why() {
        let rows = &OUT_OF_REACH.as_ref().unwrap().row;
        let names: Vec<&String> = rows.iter().flat_map(|row| &row.claims).collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "'{name}' stands twice");
            assert!(crate::kit::claims::is_there(name), "claims.toml has no claim '{name}'");
            assert!((LIBRARY.out_of_reach)(name).is_some_and(|row| row.because.ends_with('.')));
        }
        assert!((LIBRARY.out_of_reach)("B1 nodes").is_none());
    }

    #[test]
    fn every_sentence_rests_on_claims_of_papers() {
        assert!(!together().is_empty());
        for Sentence { text, claims } in together() {
            assert!(!claims.is_empty(), "{text}");
            for number in claims {
                assert!(LIBRARY.claiming(&number).is_some(), "{number}");
                assert!(number[1..].parse::<u32>().is_ok(), "{number}");
            }
        }
    }
}
