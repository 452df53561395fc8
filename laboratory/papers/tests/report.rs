//! Running, resuming and reporting, with experiments made for the purpose.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which clippy does not count as tests"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{Does, command, made};

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn everything_of_a_figure_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/lab");
    let args = ["all", "--out", out.to_str().unwrap()];
    let (code, text, err) = command(vec![made("biliris-5", Does::Ends)], &args);
    assert_eq!((code, err.as_str()), (0, ""), "{text}");
    let want = [
        "cost-2.csv",
        "cost.csv",
        "cost.png",
        "cost.svg",
        "odd-name---.csv",
        "odd-name---.png",
        "odd-name---.svg",
        "outcome.json",
    ];
    assert_eq!(names(&out.join("biliris-5")), want.map(String::from).into());
    assert_eq!(names(&out), ["biliris-5", "claims.csv", "report.html"].map(String::from).into());
    assert!(text.contains("biliris-5: done in") && text.contains("1 of 2 claims hold, 1 note"));
    assert!(text.contains("B2     fails  11    10     5 %"), "{text}");
    assert!(text.contains("report.html"));
}

#[test]
fn a_finished_figure_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let one = made("biliris-5", Does::Ends);
    let runs = Arc::clone(&one.runs);
    let again = || vec![common::Made { runs: Arc::clone(&runs), ..made("biliris-5", Does::Ends) }];
    let times = |args: &[&str]| {
        let args: Vec<&str> =
            ["all", "--out", out].into_iter().chain(args.iter().copied()).collect();
        let (code, text, _) = command(again(), &args);
        assert_eq!(code, 0);
        (runs.load(Ordering::SeqCst), text)
    };
    assert_eq!(times(&[]).0, 1);
    let before = fs::read(dir.path().join("biliris-5/outcome.json")).unwrap();
    let (count, text) = times(&[]);
    assert_eq!(count, 1);
    assert!(text.contains("already done, kept"), "{text}");
    assert_eq!(fs::read(dir.path().join("biliris-5/outcome.json")).unwrap(), before);
    fs::remove_file(dir.path().join("biliris-5/cost.png")).unwrap();
    assert_eq!(times(&[]).0, 1, "a lost drawing is drawn from the record");
    assert!(dir.path().join("biliris-5/cost.png").is_file());
    assert_eq!(times(&["--force"]).0, 2);
    assert_eq!(times(&["--seed", "7"]).0, 3, "another seed runs");
    assert_eq!(times(&["--seed", "7", "--quick"]).0, 4, "another size runs");
    fs::write(dir.path().join("biliris-5/outcome.json"), b"{\"format\":").unwrap();
    assert_eq!(times(&["--seed", "7", "--quick"]).0, 5, "a torn record does not count");
}

#[test]
fn a_partial_run_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["all", "--out", dir.path().to_str().unwrap()];
    let list = |last| {
        vec![
            made("biliris-5", Does::Ends),
            made("biliris-6", Does::Halfway),
            made("biliris-7", last),
        ]
    };
    let (code, text, err) = command(list(Does::Fails), &args);
    assert_eq!(code, 1, "{text}");
    assert!(err.ends_with("not finished: biliris-6, biliris-7\n"), "{err}");
    let (code, text, err) = command(list(Does::Ends), &args);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(text.contains("biliris-5: already done, kept"), "{text}");
    assert!(text.contains("biliris-6: done in") && text.contains("biliris-7: done in"), "{text}");
    // Afresh, the part that was kept does not count.
    let force = [&args[..], &["--force"]].concat();
    assert_eq!(command(list(Does::Ends), &force).0, 1);
}

#[test]
fn a_figure_whose_place_is_taken_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("biliris-5"), b"not a directory").unwrap();
    let list = vec![made("biliris-5", Does::Ends), made("biliris-6", Does::Ends)];
    let (code, text, err) = command(list, &["all", "--out", dir.path().to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(err.contains("holdall-lab: biliris-5 failed: cannot use "), "{err}");
    assert_eq!(err.lines().count(), 2, "{err}");
    assert!(text.contains("biliris-6: done in"), "{text}");
}

#[test]
fn another_disk_runs_only_what_depends_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = |disk: &str| {
        let list = vec![made("biliris-5", Does::Ends), made("biliris-modern", Does::Ends)];
        let args = ["all", "--disk", disk, "--out", dir.path().to_str().unwrap()];
        let (code, text, err) = command(list, &args);
        assert_eq!((code, err.as_str()), (0, ""));
        text.matches(": done in").count()
    };
    assert_eq!([run("80,1500"), run("80,1500"), run("90,1500")], [2, 0, 1]);
}

#[test]
fn a_failure_leaves_the_others() {
    for jobs in ["1", "2"] {
        let dir = tempfile::tempdir().unwrap();
        let list = vec![
            made("biliris-5", Does::Fails),
            made("biliris-6", Does::Ends),
            made("mcauliffe-1", Does::Panics),
            made("mcauliffe-2", Does::Ends),
        ];
        let args = ["all", "--jobs", jobs, "--out", dir.path().to_str().unwrap()];
        let (code, text, err) = command(list, &args);
        assert_eq!(code, 1);
        assert!(err.contains("biliris-5 failed: the disk is full\n"), "{err}");
        assert!(
            err.contains("mcauliffe-1 failed: an internal error: a broken invariant\n"),
            "{err}"
        );
        assert!(err.ends_with("not finished: biliris-5, mcauliffe-1\n"), "{err}");
        assert!(text.contains("biliris-6: done") && text.contains("mcauliffe-2: done"), "{text}");
        let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
        assert!(page.contains("id=\"fig-biliris-6\"") && !page.contains("id=\"fig-biliris-5\""));
    }
}

#[test]
fn a_failed_rerun_keeps_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["all", "--force", "--out", dir.path().to_str().unwrap()];
    assert_eq!(command(vec![made("biliris-5", Does::Ends)], &args).0, 0);
    let before = fs::read(dir.path().join("biliris-5/outcome.json")).unwrap();
    assert_eq!(command(vec![made("biliris-5", Does::Fails)], &args).0, 1);
    assert_eq!(fs::read(dir.path().join("biliris-5/outcome.json")).unwrap(), before);
}

#[test]
fn the_report_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let list = || vec![made("biliris-5", Does::Ends), made("mcauliffe-2", Does::Ends)];
    assert_eq!(command(list(), &["paper", "mcauliffe", "--out", out]).0, 0);
    assert!(!dir.path().join("biliris-5").exists());
    assert_eq!(command(list(), &["figure", "biliris-5", "--out", out]).0, 0);
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert_alone(&page);
    // Both runs are in it, in the list's order, with all that belongs to them.
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    assert!(at("id=\"fig-biliris-5\"") < at("id=\"fig-mcauliffe-2\""));
    at("Biliris: The Performance of Three Database Storage Structures");
    at("what to see");
    at("because of &lt;that&gt;");
    at("says &lt;b&gt;something&lt;/b&gt;");
    at("an assumption &amp; a note");
    at("Counts &lt;i&gt;");
    at("seed 1");
    assert!(at(">B2</td>") < at(">B10</td>"), "claims are in their natural order");
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("no value").count(), 4, "the numbers stand beside each plot");
}

/// No source or link but to places in the page, which exist; no script.
pub fn assert_alone(page: &str) {
    assert!(!page.contains("<script") && !page.contains("@import") && !page.contains("url("));
    assert!(!page.contains("src=") && !page.contains("<link"));
    for part in page.split("href=\"").skip(1) {
        let target = part.split('"').next().unwrap();
        let name = target.strip_prefix('#').unwrap_or_else(|| panic!("{target} leaves the page"));
        assert!(page.contains(&format!("id=\"{name}\"")), "{name} is missing");
    }
}

#[test]
fn results_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let list = vec![made("biliris-5", Does::Ends), made("biliris-6", Does::Fails)];
    let args = ["all", "--json", "--out", dir.path().to_str().unwrap()];
    let (code, text, _) = command(list, &args);
    assert_eq!(code, 1);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["results"][0]["status"], "ran");
    assert_eq!(value["results"][0]["claims"][1]["verdict"], "Fails");
    assert_eq!(value["results"][1]["status"], "failed");
}

#[test]
fn near_names_are_suggested() {
    let list = vec![made("biliris-5", Does::Ends), made("mcauliffe-14", Does::Ends)];
    let (code, out, err) = command(list, &["figure", "bilris-5"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "holdall-lab: unknown figure 'bilris-5' (nearest: biliris-5, mcauliffe-14; `list` shows all)\n"
    );
}
