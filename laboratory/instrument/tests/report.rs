//! The report as its readers see it, and the claims that a run keeps, with a library of its own.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not count as tests")]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use holdall_instrument::claim::{holds, note, ratio};
use holdall_instrument::cli;
use holdall_instrument::draw::{axis, lines, number, series, table};
use holdall_instrument::experiment::{Experiment, Figure, Outcome, Settings};
use holdall_instrument::paper::{Library, Obstacle, OutOfReach, Paper};

static LIBRARY: Library = Library {
    papers: &[&GRAY, &LOMET],
    together: Vec::new,
    caption: |experiment, panel| {
        (experiment == "gray-1").then(|| format!("What to see in {panel}."))
    },
    out_of_reach: |claim| (claim == "G2 second" || claim.starts_with("G1")).then(|| &*OUT_OF_REACH),
};

/// Of a row that fails, and of rows that hold all the same.
static OUT_OF_REACH: LazyLock<OutOfReach> = LazyLock::new(|| OutOfReach {
    claims: Vec::new(),
    obstacle: Obstacle::Omission,
    because: "The page <size> is not printed.".to_owned(),
});

static GRAY: Paper = Paper {
    name: "gray",
    letter: 'G',
    citation: "Gray 1993",
    reference: "J. Gray & A. Reuter: Transaction Processing. Morgan Kaufmann, 1993.",
    about: "transactions",
    question: "What is asked?",
    bearing: "",
    experiments: || Figure::list(&[FIRST, SECOND]),
};

static LOMET: Paper = Paper { name: "lomet", letter: 'L', experiments: none, ..GRAY };

fn none() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}

const FIRST: Figure = Figure::new("gray-1", "The first", |settings| outcome(settings, "first"));
const SECOND: Figure = Figure::new("gray-2", "The second", |settings| outcome(settings, "second"));

fn outcome(settings: &Settings<'_>, name: &str) -> anyhow::Result<Outcome> {
    let row = |id: &str, ours: f64| {
        let claim = ratio(&format!("{id} {name}"), "the cost", 10.0, ours, "ms", 0.05);
        claim.section("§4.2").judged_when_quick()
    };
    let dir = settings.dir.canonicalize()?;
    let because = format!("{} <accesses> more in {}/a/b.db", 7, dir.display());
    let claims = vec![
        row("G1", 10.0),
        row("G2", 12.0).because(because),
        row("G3", 10.0).by_assumption("the cache is warm"),
        note("G4 1 MB", "seen", "", number(f64::NAN)),
        note("G4 16 KB", "seen", "", number(0.0 / 1.0)),
        holds("own", "of ours", "", "1", "=", true).judged_when_quick(),
    ];
    let curve = vec![(96.0, 1.0), (97.0, 2.0)];
    let panels = vec![lines("cost", "Cost", axis("pages"), axis("ms"), vec![series("one", curve)])];
    let rows = vec![vec!["4 KB".into(), "7".into()]];
    let tables = vec![table("counts", "Counts", &["size", "n"], rows)];
    Ok(Outcome { panels, tables, claims, notes: vec![format!("kept in {}/x/y", dir.display())] })
}

/// Exit code, standard output and standard error.
fn run(args: &[&str]) -> (u8, String, String) {
    let args = std::iter::once("holdall-lab").chain(args.iter().copied()).map(Into::into);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(args.collect(), &LIBRARY, &LIBRARY.experiments(), &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

fn all(dir: &Path, more: &[&str]) -> (u8, String, String) {
    run(&[&["all", "--out", dir.to_str().unwrap()], more].concat())
}

#[test]
fn the_report_can_be_cited() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text, err) = all(dir.path(), &[]);
    assert_eq!((code, err.as_str()), (0, ""), "{text}");
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing: {page}"));
    at("J. Gray &amp; A. Reuter: Transaction Processing. Morgan Kaufmann, 1993.");
    at("<td class=\"where\" data-l=\"where\">§4.2</td>");
    // The day, the commit, the machine: once, as all ran together.
    assert_eq!(page.matches(", commit <code>").count(), 1);
    assert!(page.contains(" cores, ") && page.contains("Linux "));
    at("What to see in cost.");
    assert!(!page.contains("NaN") && !page.contains(dir.path().to_str().unwrap()));
    at("no value");
    at("more in b.db");
    at("kept in y");
    at("Axes: across from 95.98, not from 0");
    assert!(page.find(">G4 16 KB</td>") < page.find(">G4 1 MB</td>"), "sizes in their order");
    // The same cells once, then a reference to them.
    assert_eq!(page.matches(">4 KB</td>").count(), 1);
    at("The same as <a href=\"#table-gray-1-counts\">Counts</a> of <code>gray-1</code>");
}

#[test]
fn counts_and_failures_come_first() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(all(dir.path(), &[]).0, 0);
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    let cells = |row: [&str; 10]| row.map(|cell| format!("<td class=\"n\">{cell}</td>")).concat();
    let counts = page.find(&cells(["10", "6", "2", "2", "2", "1", "4", "33 %", "80 %", "1 of 2"]));
    assert!(counts.is_some(), "{page}");
    let own = page.find(&cells(["2", "2", "2", "0", "0", "0", "0", "100 %", "100 %", ""]));
    let paper = page.find("id=\"paper-gray\"").unwrap();
    let failing = page.find("2 of 6 judged rows fail:").unwrap();
    let question = page.find("What is asked?").unwrap();
    assert!(counts < own && own < Some(paper) && paper < failing && failing < question);
    let failing = &page[failing..question];
    assert!(failing.contains("7 &lt;accesses&gt; more in b.db"));
    let why = "Out of reach, the paper omits what decides it:</b> The page &lt;size&gt; is not";
    assert_eq!(failing.matches(why).count(), 1, "{failing}");
    assert!(page.contains("No judged row fails."), "those beside the lists");
}

#[test]
fn a_published_run_has_claims_alone() {
    let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target = into.path().join("results");
    let (code, text, err) = all(dir.path(), &["--into", target.to_str().unwrap()]);
    assert_eq!((code, err.as_str()), (0, ""), "{text}");
    let folders: Vec<_> = fs::read_dir(&target).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(folders.len(), 1);
    assert!(folders[0].to_str().unwrap().ends_with("-lab"), "{folders:?}");
    let text = fs::read_to_string(folders[0].join("claims.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(run["papers"][0]["citation"], "Gray 1993");
    assert_eq!(run["claims"].as_array().unwrap().len(), 12);
    let failed = run["claims"].as_array().unwrap().iter().find(|c| c["id"] == "G2 first").unwrap();
    for (name, value) in [
        ("of", "gray"),
        ("experiment", "gray-1"),
        ("section", "§4.2"),
        ("paper", "10 ms"),
        ("ours", "12 ms"),
        ("allowed", "5 %"),
        ("verdict", "fails"),
        ("because", "7 <accesses> more in b.db"),
    ] {
        assert_eq!(failed[name], value, "{name}");
    }
    // Beside the report lie the same rows as CSV, one a line with the head.
    let csv = fs::read_to_string(dir.path().join("claims.csv")).unwrap();
    assert_eq!(csv.lines().count(), 13, "{csv}");
    assert!(csv.contains("\nG2 first,gray,gray-1,§4.2,the cost,10 ms,12 ms,5 %,fails,"), "{csv}");
}

#[test]
fn a_run_is_kept_as_of_the_day_on_which_it_began() {
    let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert_eq!(all(dir.path(), &[]).0, 0);
    let path = dir.path().join("gray-2/outcome.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["origin"]["date"] = "2020-01-02".into();
    record["origin"]["commit"] = "abcdef1".into();
    fs::write(&path, record.to_string()).unwrap();
    let place = into.path().to_str().unwrap();
    assert_eq!(all(dir.path(), &["--into", place]).0, 0);
    assert!(into.path().join("2020-01-02-abcdef1-lab/claims.json").is_file());
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("1 of them: 2020-01-02, commit <code>abcdef1</code>"), "{page}");
    let (code, _, err) = run(&["figure", "gray-1", "--into", place]);
    assert_eq!(code, 2, "a part of the experiments is no run to keep: {err}");
}
