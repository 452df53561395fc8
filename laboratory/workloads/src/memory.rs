//! Memory: what stays resident with a large store and with one very large object.

use crate::report::{Goal, Row, Section};
use crate::run::Run;
use crate::{bare, data, system};
use anyhow::{Result, ensure};
use holdall::{Options, PutOptions, Store};
use std::io::Read;

/// Runs it with `gb` gigabytes twice: many objects, then one. Run alone: the figure is the
/// most this process ever had.
pub fn run(run: &mut Run, gb: u64) -> Result<()> {
    let mut section = Section::new(format!("Memory with {gb} GB"));
    let store = run.store("memory", &Options::default())?;
    many(run, &store, gb * 1_000_000_000)?;
    let goal = Goal::AtMost(300.0);
    let peak =
        || Ok::<_, anyhow::Error>([system::peak_memory(std::process::id())? as f64 / 1048576.0]);
    section.push(Row::alone("loading objects of 100 B to 8 MiB", "MiB", &peak()?).goal(goal));
    read_all(run, &store)?;
    section.push(Row::alone("and reading them all", "MiB", &peak()?).goal(goal));
    store.close()?;
    let store = run.store("memory", &Options::default())?;
    one(run, &store, gb * 1_000_000_000)?;
    section.push(Row::alone("and writing one object as large", "MiB", &peak()?).goal(goal));
    read_all(run, &store)?;
    section.push(Row::alone("and reading it", "MiB", &peak()?).goal(goal));
    store.close()?;
    run.finish(section);
    run.remove("memory")
}

fn many(run: &Run, store: &Store, bytes: u64) -> Result<()> {
    run.say("loading many objects");
    let content = data::bytes(8 << 20, 20);
    let mut rng = data::rng(21);
    let (mut done, mut i) = (0, 0);
    while done < bytes {
        store.write(|tx| {
            for _ in 0..1000 {
                // Sizes in even steps of their logarithm, with few of the largest.
                let len = data::log_len(&mut rng, 100, content.len());
                tx.put(data::name(i), &content[..len])?;
                done += len as u64;
                i += 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn one(run: &Run, store: &Store, bytes: u64) -> Result<()> {
    run.say("writing one object");
    let content = data::bytes(bare::CALL, 22);
    store.write(|tx| {
        let mut writer = tx.writer("one", PutOptions::default())?;
        while writer.len() < bytes {
            writer.push(&content)?;
        }
        writer.finish()
    })?;
    Ok(())
}

fn read_all(run: &Run, store: &Store) -> Result<()> {
    run.say("reading");
    let reader = store.read()?;
    let mut buf = vec![0; bare::CALL];
    let mut all = 0;
    for entry in reader.names("") {
        let mut object = reader.open(entry?.oid)?;
        loop {
            match object.read(&mut buf)? {
                0 => break,
                n => all += n as u64,
            }
        }
    }
    let stat = store.stat()?;
    ensure!(all == stat.logical_bytes, "{all} bytes read of {}", stat.logical_bytes);
    Ok(())
}
