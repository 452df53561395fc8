//! The folder of a published run, by the program itself.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What is kept of the store whose turn comes first.
const FIRST: &str = "w9-1-Holdall-by-OID.json";

fn run(dir: &Path, into: &Path, args: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    let command = command.args(args).arg("--quick").arg("--dir").arg(dir).arg("--into").arg(into);
    let out = command.output()?;
    assert!(out.status.success(), "{args:?}:\n{}", String::from_utf8_lossy(&out.stderr));
    Ok(out)
}

fn entries(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect()
}

fn only_entry(dir: &Path) -> std::io::Result<PathBuf> {
    let mut all = entries(dir)?;
    assert_eq!(all.len(), 1, "{all:?}");
    Ok(all.remove(0))
}

fn files(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for path in entries(dir)? {
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    Ok(all)
}

#[test]
fn a_run_writes_all_files_and_no_path() {
    let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let out = run(dir.path(), into.path(), &["w8", "--only", "holdall"]).unwrap();
    let folder = only_entry(into.path()).unwrap();
    let names: Vec<_> = files(&folder)
        .unwrap()
        .iter()
        .map(|f| f.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned())
        .collect();
    for name in ["results.json", "tables.md", "ratios.svg", "ratios.png"] {
        assert!(names.iter().any(|n| n == name), "{name}: {names:?}");
    }
    let tables = std::fs::read_to_string(folder.join("tables.md")).unwrap();
    let printed = String::from_utf8(out.stdout).unwrap();
    assert!(tables.ends_with(&printed), "{tables}\n---\n{printed}");
    let results = std::fs::read(folder.join("results.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    assert_eq!(results["complete"], true);
    let name =
        format!("{}-{}", results["date"].as_str().unwrap(), results["commit"].as_str().unwrap());
    assert_eq!(folder.file_name().unwrap().to_str().unwrap(), name);
    assert_eq!(results["workloads"][0]["probes"][0]["quiet"], Value::Null);
    let private: Vec<PathBuf> = [dir.path(), into.path()]
        .into_iter()
        .flat_map(|p| [p.to_path_buf(), p.canonicalize().unwrap()])
        .chain(std::env::current_dir())
        .collect();
    for file in files(&folder).unwrap() {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        for path in &private {
            assert!(!text.contains(path.to_str().unwrap()), "{}: {path:?}", file.display());
        }
    }
    assert_eq!(entries(dir.path()).unwrap().len(), 0, "nothing stays");
}

#[test]
fn a_published_run_draws_and_its_ratios_can_be_drawn_again() {
    let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(dir.path(), into.path(), &["w2"]).unwrap();
    let folder = only_entry(into.path()).unwrap();
    assert!(folder.join("plots/w2-latency-8.svg").exists());
    assert!(folder.join("plots/w2-latency-8.png").exists());
    let picture = folder.join("ratios.svg");
    let first = std::fs::read_to_string(&picture).unwrap();
    assert!(first.contains("W2 8 threads") && first.contains("files"), "{first}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    command.arg("ratios").arg(&folder).arg("--draw-into").arg(dir.path());
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read_to_string(dir.path().join("ratios.svg")).unwrap(), first);
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let args = ["w9", "--only", "holdall"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    command.args(args).arg("--quick").arg("--dir").arg(dir.path()).arg("--into").arg(into.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let kept = |file: &PathBuf| file.to_string_lossy().contains("kept") && file.ends_with(FIRST);
    let end = Instant::now() + Duration::from_secs(120);
    while !files(dir.path()).is_ok_and(|all| all.iter().any(kept)) {
        assert!(Instant::now() < end, "no cell was kept");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = only_entry(into.path()).unwrap();
    let out = run(dir.path(), into.path(), &args).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("was kept") && said.contains("took"), "{said}");
    assert_eq!(only_entry(into.path()).unwrap(), begun);
    assert_eq!(entries(dir.path()).unwrap().len(), 0, "nothing stays");
}
