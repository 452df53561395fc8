//! Of the small runs in `testdata/figures`.

use super::*;

fn kept() -> Kept {
    let data = crate::root().unwrap().join("testdata");
    Kept::read(&data.join("figures"), &data.join("out-of-reach.toml")).unwrap()
}

const MARKED: &str =
    "# A\n\n<!-- figures\nw4/replace = replace web objects\nw8\n-->\n<!-- end -->\n\nB\n";

#[test]
fn tables_name_their_run_and_are_written_once() {
    let text = written(MARKED, &kept()).unwrap();
    let right = "# A\n\n<!-- figures\nw4/replace = replace web objects\nw8\n-->\n\n\
        Commit 1a2b3c4 of 2026-11-24, 3 rounds, on 2 cores, a virtual disk. † Other work disturbed \
        the machine.\n\n\
        | | Holdall by name / by OID | best other | ratio | disk ÷ logical; other |\n\
        |---|---|---|---|---|\n\
        | replace web objects, MB/s | 50 / 100 | fjall 200 | 0.25 / 0.5 | 1.14 / 1.13; 2.5 |\n\
        | W8 open after a clean close, ms † | 2 / – | redb 0.5 | 0.25 / – |  |\n\
        | W8 open after a kill, ms † | 50 / – | LMDB 0.4 | 0.008 / – |  |\n\n\
        <!-- end -->\n\nB\n";
    assert_eq!(text, right);
    assert_eq!(written(&text, &kept()).unwrap(), text);
}

#[test]
fn what_no_run_has_is_refused() {
    for rows in ["w5", "w4/load", "w4/replaced"] {
        let text = format!("<!-- figures: {rows} -->\n<!-- end -->\n");
        let error = format!("{:#}", written(&text, &kept()).unwrap_err());
        assert!(error.contains(&format!("no kept run has {rows}")), "{error}");
    }
}

/// Runs that are not complete, of small sizes or of changed sources are in the folder, too, and
/// newer; the older run has another value. Of one day the run that was begun later is newer, not
/// the one whose commit has the larger number.
#[test]
fn the_newest_run_that_counts_is_taken() {
    let kept = kept();
    let commits: Vec<_> = kept.runs.iter().map(|r| r.commit.as_deref().unwrap()).collect();
    assert_eq!(commits, ["1a2b3c4", "9f9f9f9", "0f0f0f0"]);
    // Only the older one has w2.
    let text = written("<!-- figures: w4/replace; w2 -->\n<!-- end -->\n", &kept).unwrap();
    assert!(text.contains("Commit 1a2b3c4 of 2026-11-24"), "{text}");
    assert!(text.contains("Commit 0f0f0f0 of 2026-11-20, 1 round, on another machine."), "{text}");
}

#[test]
fn claims_of_the_lab_are_counted_and_listed() {
    let counts = written("<!-- figures: lab -->\n<!-- end -->\n", &kept()).unwrap();
    let right = "<!-- figures: lab -->\n\nCommit 2b2b2b2 of 2026-11-25, seed 1, on 2 cores.\n\n\
        | claims of | rows | judged | hold | by assumption | fail | of these out of reach | notes \
        | hold, of those judged | of those in reach |\n|---|---|---|---|---|---|---|---|---|---|\n\
        | Biliris 1992 | 3 | 2 | 1 | 0 | 1 | 1 | 1 | 50 % | 100 % |\n\
        | Eickler 1995 | 1 | 1 | 0 | 1 | 0 | 0 | 0 | 0 % | 100 % |\n\
        | ours, beside them | 1 | 0 | 0 | 0 | 0 | 0 | 1 |  |  |\n\n\
        <!-- end -->\n";
    assert_eq!(counts, right);
    assert_eq!(written(&counts, &kept()).unwrap(), counts);

    let rows = written("<!-- figures: lab/B13; lab/eickler -->\n<!-- end -->\n", &kept()).unwrap();
    for line in [
        "| B13 100 | §4.4 | reads of 100 bytes | 37 ms | 37 ms | 5 % | holds |\n",
        "| B13 10240 | §4.4 | reads of a\\|b | 54 ms | 60 ms | 5 % | **fails** |\n",
        "| E3 | figure 7 | scans | 0.2 | 0.3 | 10 % | holds by assumption |\n",
        "\nOut of reach today:\n\n- *The paper contradicts itself.* Its table has 60 ms. **B13 10240** \
         (60 ms; paper: 54 ms).\n",
        "\n- **E3** holds by assumption: Assumed: warm\n",
    ] {
        assert!(rows.contains(line), "{line} in {rows}");
    }
    assert!(!rows.contains("B15"), "{rows}");

    let failing = "<!-- figures: lab/biliris failing; lab/E3 failing -->\n<!-- end -->\n";
    let rows = written(failing, &kept()).unwrap();
    for line in [
        "| claim | where | paper | ours | verdict | why |\n",
        "\n- *The paper contradicts itself.* Its table has 60 ms. **B13 10240** (60 ms; paper: 54 ms).\n",
        "| E3 | figure 7 | 0.2 | 0.3 | holds by assumption | Assumed: warm |\n",
    ] {
        assert!(rows.contains(line), "{line} in {rows}");
    }
    assert!(!rows.contains("B13 100 "), "{rows}");
}

#[test]
fn what_holds_is_not_out_of_reach() {
    let data = crate::root().unwrap().join("testdata");
    let dir = tempfile::tempdir().unwrap();
    let list = dir.path().join("list.toml");
    for claim in ["B13 100", "B15", "B99"] {
        let row = format!("[[row]]\nclaims = ['{claim}']\nobstacle = 'today'\nbecause = 'x.'\n");
        std::fs::write(&list, row).unwrap();
        let error = Kept::read(&data.join("figures"), &list).err().unwrap().to_string();
        assert!(error.contains(&format!("'{claim}' is listed as out of reach")), "{error}");
    }
    std::fs::write(&list, "[[row]]\nclaims = ['B15']\nbecause = 'no obstacle.'\n").unwrap();
    assert!(Kept::read(&data.join("figures"), &list).is_err());
}

#[test]
fn markers_of_the_lab_that_are_wrong_are_refused() {
    for rows in
        ["lab/B1", "lab/none failing", "lab; lab/B13", "lab/B13; w2", "lab/B13; lab/E3 failing"]
    {
        let text = format!("<!-- figures: {rows} -->\n<!-- end -->\n");
        assert!(written(&text, &kept()).is_err(), "{rows}");
    }
    let none = Kept { runs: Vec::new(), lab: None };
    let text = written("<!-- figures: lab -->\n<!-- end -->\n", &none).unwrap();
    assert!(text.contains("\nNo run of full size is kept yet.\n"), "{text}");
}

/// A tree with one document and the runs of testdata.
fn tree(text: &str) -> (tempfile::TempDir, Vec<File>) {
    let dir = tempfile::tempdir().unwrap();
    let from = crate::root().unwrap().join("testdata/figures");
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = dir.path().join(RUNS).join(entry.file_name());
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(entry.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    std::fs::create_dir(dir.path().join("docs")).unwrap();
    std::fs::write(dir.path().join("docs/index.md"), text).unwrap();
    (dir, vec![File { path: "docs/index.md".into(), text: text.to_owned() }])
}

#[test]
fn documents_that_differ_from_the_run_are_found_and_written() {
    let (dir, documents) = tree(MARKED);
    let found = problems(dir.path(), &documents).unwrap();
    assert!(found.len() == 1 && found[0].starts_with("docs/index.md:7:"), "{found:?}");
    assert_eq!(write(dir.path(), &documents).unwrap(), ["docs/index.md"]);
    let text = std::fs::read_to_string(dir.path().join("docs/index.md")).unwrap();
    assert_eq!(text, written(MARKED, &kept()).unwrap());
    let right = vec![File { path: "docs/index.md".into(), text: text.clone() }];
    assert!(problems(dir.path(), &right).unwrap().is_empty());
    assert!(write(dir.path(), &right).unwrap().is_empty());

    let one = text.replace("| 50 / 100 |", "| 51 / 100 |");
    let found = problems(dir.path(), &[File { path: "docs/index.md".into(), text: one }]).unwrap();
    assert!(found.len() == 1 && found[0].contains("cargo xtask figures"), "{found:?}");
    // The file is not as it was read: nothing is overwritten.
    let error = write(dir.path(), &documents).unwrap_err().to_string();
    assert!(error.contains("was changed"), "{error}");
    assert_eq!(std::fs::read_to_string(dir.path().join("docs/index.md")).unwrap(), text);
}

#[test]
fn runs_that_cannot_be_read_are_named() {
    let (dir, documents) = tree(MARKED);
    let broken = dir.path().join(RUNS).join("broken");
    std::fs::create_dir(&broken).unwrap();
    std::fs::write(broken.join("results.json"), "{}").unwrap();
    let error = format!("{:#}", problems(dir.path(), &documents).unwrap_err());
    assert!(error.contains("broken/results.json"), "{error}");
}
