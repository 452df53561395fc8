//! A million small objects: loading, density, opening after a close and after a kill.

use crate::report::{Goal, Row, Section};
use crate::run::{Run, interleave, seconds};
use crate::system::{self, Written};
use crate::{bare, data};
use anyhow::{Context as _, Result, ensure};
use holdall::{Durability, Options, Store};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Objects of a durable commit.
const BATCH: u64 = 10_000;

/// Runs all parts.
pub fn run(run: &mut Run) -> Result<()> {
    let count = run.pick(1_000_000, 100_000);
    let mut section = Section::new(format!("{count} objects of 100 to 300 bytes"));
    loads(run, &mut section, count)?;
    opens(run, &mut section, count)?;
    section.remark(
        "Against: the same bytes appended to a file with an fdatasync for every 10,000 objects. \
         The kill comes with the log full of small commits, before a checkpoint; opening \
         includes recovery and one get.",
    );
    run.finish(section);
    Ok(())
}

/// Loads `count` small objects, 10,000 to a commit.
pub fn load(store: &Store, count: u64, named: bool) -> Result<()> {
    let bytes = data::bytes(300, 6);
    let mut rng = data::rng(7);
    for first in (0..count).step_by(BATCH as usize) {
        store.write(|tx| {
            for i in first..count.min(first + BATCH) {
                let len = data::small_len(&mut rng);
                if named {
                    tx.put(data::name(i), &bytes[..len])?;
                } else {
                    tx.create(&bytes[..len])?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn load_bare(path: &Path, count: u64) -> Result<()> {
    let bytes = data::bytes(300, 6);
    let mut rng = data::rng(7);
    let file = bare::create(path)?;
    let (mut at, mut batch) = (0, Vec::new());
    for first in (0..count).step_by(BATCH as usize) {
        batch.clear();
        for _ in first..count.min(first + BATCH) {
            batch.extend_from_slice(&bytes[..data::small_len(&mut rng)]);
        }
        file.write_all_at(&batch, at)?;
        file.sync_data()?;
        at += batch.len() as u64;
    }
    Ok(())
}

fn loads(run: &Run, section: &mut Section, count: u64) -> Result<()> {
    run.say("loading small objects");
    let path = run.path("bare");
    let details = RefCell::new(vec![Vec::new(); 8]);
    let ours = |named: bool| -> Result<f64> {
        let store = run.store("million", &Options::default())?;
        let before = Written::now(run.dir())?;
        let time = seconds(|| load(&store, count, named))?;
        store.checkpoint()?;
        let after = Written::now(run.dir())?;
        store.close()?;
        let store = Store::open(run.path("million"))?;
        let stat = store.stat()?;
        ensure!(stat.objects == count, "{} objects, not {count}", stat.objects);
        let logical = stat.logical_bytes as f64;
        let (calls, device) = after.shares_since(before, logical);
        let all = [stat.file_bytes as f64 / logical, stat.heap_utilization, calls, device];
        let mut details = details.borrow_mut();
        for (i, figure) in all.into_iter().enumerate() {
            details[i * 2 + usize::from(named)].push(figure);
        }
        store.close()?;
        run.remove("million")?;
        Ok(count as f64 / time)
    };
    let figures = interleave(
        run.rounds.min(3),
        &mut [
            &mut || {
                run.remove("bare")?;
                system::sync_all(run.dir())?;
                Ok(count as f64 / seconds(|| load_bare(&path, count))?)
            },
            &mut || ours(false),
            &mut || ours(true),
        ],
    )?;
    run.remove("bare")?;
    let [bare, unnamed, named] = &figures[..] else { anyhow::bail!("three sides") };
    section.push(Row::against("load, unnamed", "objects/s", unnamed, bare));
    section.push(Row::against("load, named in order", "objects/s", named, bare));
    let details = details.into_inner();
    let parts = [
        "file ÷ logical",
        "heap utilization",
        "written in calls ÷ logical",
        "written at the device ÷ logical",
    ];
    for (i, figures) in details.iter().enumerate() {
        let part = parts[i / 2];
        let row = Row::alone(format!("{}, {part}", ["unnamed", "named"][i % 2]), "", figures);
        section.push(if i / 2 == 1 { row.goal(Goal::AtLeast(0.93)) } else { row });
    }
    Ok(())
}

fn opens(run: &Run, section: &mut Section, count: u64) -> Result<()> {
    run.say("opening after a close and after a kill");
    let path = run.path("opened");
    let open = || -> Result<f64> {
        let mut store = None;
        let time = seconds(|| {
            let opened = Store::open(&path)?;
            let got = opened.read()?.get(data::name(1))?;
            ensure!(got.is_some_and(|got| got.len() >= 100), "an object is whole");
            store = Some(opened);
            Ok(())
        })?;
        let stat = store.as_ref().map(Store::stat).transpose()?;
        ensure!(stat.is_some_and(|s| s.objects >= count), "all objects are there");
        store.map_or(Ok(()), Store::close)?;
        Ok(time * 1e3)
    };
    let store = run.store("opened", &Options::default())?;
    load(&store, count, true)?;
    store.close()?;
    let (mut clean, mut killed, mut logs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..run.rounds {
        system::drop_caches(run.dir(), &[&path])?;
        clean.push(open()?);
        logs.push(fill_log_and_die(&path)? / 1e6);
        killed.push(open()?);
    }
    let row = Row::alone("open after a clean close, caches dropped, and one get", "ms", &clean);
    section.push(row.goal(Goal::AtMost(5.0)));
    let row = Row::alone("open after a kill, and one get", "ms", &killed);
    section.push(row.goal(Goal::AtMost(500.0)));
    section.push(Row::alone("log in use when killed", "MB", &logs));
    run.remove("opened")
}

/// Lets a child fill the store's log, then kills it. Returns the bytes of log it had in use.
fn fill_log_and_die(store: &Path) -> Result<f64> {
    let own = std::env::current_exe()?;
    let mut child = Command::new(own).arg("fill-log").arg(store).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().context("the child's output")?;
    let mut line = String::new();
    let read = BufReader::new(out).read_line(&mut line);
    child.kill()?;
    child.wait()?;
    read?;
    line.trim().parse().with_context(|| format!("the child said {line:?}"))
}

/// What the child does: replaces objects in a part of the store that fits the dirty limit,
/// until the log is full, says how full and waits to be killed.
pub fn fill_log(path: &Path) -> Result<()> {
    let options = Options::default().auto_checkpoint(false).background(false);
    let store = options.open(path)?;
    let bytes = data::bytes(300, 8);
    let mut rng = data::rng(9);
    let (mut i, mut before, mut settled) = (0, (0, 0), false);
    let used = loop {
        store.write(|tx| {
            tx.set_durability(Durability::Deferred);
            for _ in 0..100 {
                // Neighbours in steps: many commits change each page, and many pages change.
                i = (i + 7) % 50_000;
                tx.put(data::name(i), &bytes[..data::small_len(&mut rng)])?;
            }
            Ok(())
        })?;
        let log = store.stat()?;
        // A log that proves short grows: it has its size once it was emptied without that.
        settled |= log.log_used < before.0 && log.log_capacity == before.1;
        before = (log.log_used, log.log_capacity);
        if settled && log.log_used * 100 > log.log_capacity * 90 {
            store.flush()?;
            break log.log_used;
        }
    };
    let mut out = std::io::stdout();
    writeln!(out, "{used}")?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}
