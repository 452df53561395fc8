//! Importing and exporting a real directory tree with the command `holdall`, beside `cp -r`.

use crate::report::{Goal, Row, Section};
use crate::run::{Run, interleave, seconds};
use crate::system;
use anyhow::{Context as _, Result, bail, ensure};
use holdall::Store;
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Trees that make up a default import, as many of them as it takes.
const TREES: [&str; 5] = ["/usr/share", "/usr/local", "/usr/lib", "/usr/include", "/usr/bin"];
/// What the default import has at least.
const LEAST: Size = Size { files: 50_000, bytes: 2_000_000_000 };

/// Regular files below some directories.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    files: u64,
    bytes: u64,
}

/// Runs it over `trees`, or over parts of /usr where none are named.
pub fn run(run: &mut Run, trees: &[PathBuf]) -> Result<()> {
    let cli = holdall_bench::product::command(true)?;
    let trees = if trees.is_empty() { choose(run)? } else { trees.to_vec() };
    let mut size = Size::default();
    for tree in &trees {
        measure(tree, &mut size)?;
    }
    let names: Vec<_> = trees.iter().map(|t| t.display().to_string()).collect();
    let mut section =
        Section::new(format!("Import of {} files, {:.2} GB", size.files, size.bytes as f64 / 1e9));
    let shown = names.join(", ");
    section.remark(format!("{shown}; against `cp -r` and `sync -f`, caches warm on both sides."));
    compare(run, &mut section, &cli, &trees)?;
    run.finish(section);
    Ok(())
}

fn choose(run: &Run) -> Result<Vec<PathBuf>> {
    let mut size = Size::default();
    let mut trees = Vec::new();
    for tree in TREES.map(PathBuf::from) {
        // A link would bring in the same files twice.
        if !fs::symlink_metadata(&tree).is_ok_and(|m| m.is_dir()) {
            continue;
        }
        measure(&tree, &mut size)?;
        trees.push(tree);
        if run.quick || size.files >= LEAST.files && size.bytes >= LEAST.bytes {
            break;
        }
    }
    Ok(trees)
}

/// Adds what is below `dir`; reads every file, which warms the caches.
fn measure(dir: &Path, size: &mut Size) -> Result<()> {
    let mut buf = vec![0; 1 << 20];
    each_file(dir, &mut |path| {
        let mut file = File::open(path)?;
        size.files += 1;
        loop {
            match file.read(&mut buf)? {
                0 => return Ok(()),
                n => size.bytes += n as u64,
            }
        }
    })
}

fn each_file(dir: &Path, found: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), found)?;
        } else if kind.is_file() {
            found(&entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}

fn compare(run: &Run, section: &mut Section, cli: &Path, trees: &[PathBuf]) -> Result<()> {
    run.say("import and copy");
    let (store, copy) = (run.path("imported"), run.path("copy"));
    let (memory, shares) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let figures = interleave(
        run.rounds.min(3),
        &mut [
            &mut || {
                remove_tree(&copy)?;
                system::sync_all(run.dir())?;
                fs::create_dir(&copy)?;
                let time = seconds(|| copy_trees(trees, &copy))?;
                remove_tree(&copy)?;
                Ok(time)
            },
            &mut || {
                run.remove("imported")?;
                system::sync_all(run.dir())?;
                let mut peak = 0;
                let time = seconds(|| {
                    for (i, tree) in trees.iter().enumerate() {
                        peak = peak.max(import(cli, &store, tree, i)?);
                    }
                    Ok(())
                })?;
                memory.borrow_mut().push(peak as f64 / f64::from(1 << 20));
                let opened = Store::open(&store)?;
                shares.borrow_mut().push(opened.stat()?.utilization);
                opened.close()?;
                Ok(time)
            },
        ],
    )?;
    section.push(Row::against("import, time", "s", &figures[1], &figures[0]));
    let memory = Row::alone("import, most memory resident", "MiB", &memory.take());
    section.push(memory.goal(Goal::AtMost(300.0)));
    let row = Row::alone("logical ÷ file after import", "", &shares.take());
    section.push(row.goal(Goal::AtLeast(0.95)));
    export(run, section, cli, trees)?;
    run.remove("imported")
}

fn copy_trees(trees: &[PathBuf], to: &Path) -> Result<()> {
    for (i, tree) in trees.iter().enumerate() {
        let status = Command::new("cp").arg("-r").arg(tree).arg(to.join(prefix(i))).status()?;
        ensure!(status.success(), "cp failed for {}", tree.display());
    }
    let status = Command::new("sync").arg("-f").arg(to).status()?;
    ensure!(status.success(), "sync failed");
    Ok(())
}

/// What the names of tree number `i` begin with.
fn prefix(i: usize) -> String {
    format!("tree-{i}")
}

fn import(cli: &Path, store: &Path, tree: &Path, i: usize) -> Result<u64> {
    let mut command = Command::new(cli);
    command.arg("import").arg(store).arg(tree).arg("--prefix").arg(prefix(i) + "/");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    watch(child, "holdall import")
}

/// Waits for a command; its memory, or its last words where it fails.
fn watch(mut child: std::process::Child, what: &str) -> Result<u64> {
    let errors = child.stderr.take().context("the child's errors")?;
    let reader = std::thread::spawn(move || std::io::read_to_string(errors));
    let result = system::wait_and_watch(&mut child);
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    result.with_context(|| format!("{what}: {}", text.trim_end()))
}

fn export(run: &Run, section: &mut Section, cli: &Path, trees: &[PathBuf]) -> Result<()> {
    run.say("export and comparison");
    let out = run.path("exported");
    let mut peak = 0;
    let time = seconds(|| {
        let mut command = Command::new(cli);
        command.arg("export").arg(run.path("imported")).arg(&out);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        peak = watch(child, "holdall export")?;
        Ok(())
    })?;
    section.push(Row::alone("export, time", "s", &[time]));
    let peak = peak as f64 / f64::from(1 << 20);
    let row = Row::alone("export, most memory resident", "MiB", &[peak]);
    section.push(row.goal(Goal::AtMost(300.0)));
    let mut count = 0;
    for (i, tree) in trees.iter().enumerate() {
        let there = out.join(prefix(i));
        each_file(tree, &mut |path| {
            count += 1;
            same(path, &there.join(path.strip_prefix(tree)?))
        })?;
    }
    section.remark(format!(
        "Export gave back {count} files with the same bytes, compared one by one."
    ));
    remove_tree(&out)
}

fn same(a: &Path, b: &Path) -> Result<()> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    ensure!(a.metadata()?.len() == b.metadata()?.len(), "the lengths differ");
    let (mut one, mut two) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    loop {
        let n = a.read(&mut one)?;
        if n == 0 {
            return Ok(());
        }
        b.read_exact(&mut two[..n])?;
        if one[..n] != two[..n] {
            bail!("the bytes differ");
        }
    }
}

fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.into()),
        _ => Ok(()),
    }
}
