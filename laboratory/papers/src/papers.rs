//! The papers: one list, from which the command line, the report and the tests take them.
//!
//! Owns: [`LIBRARY`]. A new paper is a module with a static of its own and one row here.

use holdall_instrument::names::{Captions, caption};
use holdall_instrument::paper::Library;
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
    together: &TOGETHER,
    caption: |experiment, panel| caption(CAPTIONS.as_ref().ok()?, experiment, panel),
};

/// What is to be seen in each plot.
static CAPTIONS: LazyLock<Result<Captions, toml::de::Error>> =
    LazyLock::new(|| toml::from_str(include_str!("../captions.toml")));

/// Sentences, each with the numbers of the claims it rests on.
const TOGETHER: [(&str, &[&str]); 10] = [
    (
        "A large object is read fastest from few long segments, since seeks are what a read pays \
         for; the engine takes segments of any length from buddy spaces.",
        &["B8", "B13", "B18"],
    ),
    (
        "Bytes are inserted and deleted through a tree of byte counts, at a cost that hardly \
         depends on the object's size, while copying what lies behind them takes seconds for \
         10 MB; the engine's large objects are such trees.",
        &["B14", "B21", "B22"],
    ),
    (
        "Segments that edits make short are joined with their neighbours: small thresholds cost \
         nothing and keep pages full; the engine joins below eight pages.",
        &["B12", "B20"],
    ),
    (
        "A new small object needs no search for its page: a few pages known to have room keep a \
         file nearly full and take next to no memory; the engine places records that way.",
        &["M2", "M4", "M8"],
    ),
    (
        "A file to which objects are only appended grows on while they come and go; the engine \
         fills holes before its file grows.",
        &["M1", "M4"],
    ),
    (
        "Free space is kept in memory, where an allocation costs one access at most, and can be \
         found again from the disk after a crash; the engine derives buddy trees from bitmaps that \
         its log protects.",
        &["I1", "I2", "I3"],
    ),
    (
        "Space for many objects allocated at once lies together and is written as one stream; the \
         engine allocates for a whole transaction when it commits.",
        &["I7", "I8"],
    ),
    (
        "A logical id points straight into a table of places: the smallest of all mappings, and one \
         page at most to look at; the engine's handle table is one.",
        &["E1", "E2", "E4", "E9"],
    ),
    (
        "A number in each slot that is never given out twice tells an id whose object is gone from \
         one that lives; every OID of the engine carries it.",
        &["E10"],
    ),
    (
        "Stores age by the way they give out freed space: pages given out one by one leave an object \
         in half as many pieces as pages, runs leave it in few, and a large one in fewer yet where \
         its size is known before; the engine gives out runs and takes the size as a hint.",
        &["S2", "S3", "S5"],
    ),
];

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
    fn every_sentence_rests_on_claims_of_papers() {
        for (sentence, numbers) in TOGETHER {
            assert!(!numbers.is_empty(), "{sentence}");
            for number in numbers {
                assert!(LIBRARY.claiming(number).is_some(), "{number}");
                assert!(number[1..].parse::<u32>().is_ok(), "{number}");
            }
        }
    }
}
