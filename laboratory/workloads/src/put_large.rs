//! Large objects: durable writes from memory, cold reads, bytes written.

use crate::report::{Goal, Row, Section};
use crate::run::{Run, interleave, seconds};
use crate::system::{self, Written};
use crate::{bare, data};
use anyhow::{Context as _, Result, ensure};
use holdall::{Options, PutOptions, Store, Target};
use std::cell::RefCell;
use std::io::Read;
use std::path::Path;

/// Bytes of an object that gets a commit of its own.
const MIB: usize = 1 << 20;

/// Runs all parts.
pub fn run(run: &mut Run) -> Result<()> {
    let mut section = Section::new("Large objects");
    let bytes = data::bytes(run.pick(1 << 30, 256 << 20), 4);
    one_object(run, &mut section, &bytes)?;
    one_commit_each(run, &mut section, &bytes[..MIB])?;
    cold_reads(run, &mut section, &bytes)?;
    section.remark(
        "Against: pwrite in calls of 1 MiB to a new file and one fdatasync; for 1 MiB objects \
         each appended with an fdatasync; cold reads: pread in calls of 1 MiB. Stores and \
         files are new each time and memory is touched before. What the device wrote \
         includes what others wrote.",
    );
    run.finish(section);
    Ok(())
}

/// Settles what was before, and sees that the page cache finds memory.
fn prepare(run: &Run, bytes: usize) -> Result<()> {
    system::sync_all(run.dir())?;
    system::touch_memory(bytes + (64 << 20));
    Ok(())
}

/// What was written per logical byte, by repetition: in calls, and at the device.
#[derive(Default)]
struct Shares(RefCell<(Vec<f64>, Vec<f64>)>);

impl Shares {
    fn rows(&self, what: &str, section: &mut Section) {
        let (calls, device) = self.0.take();
        let row = Row::alone(format!("{what}, written in calls ÷ logical"), "", &calls);
        section.push(row.goal(Goal::AtMost(1.1)));
        section.push(Row::alone(format!("{what}, written at the device ÷ logical"), "", &device));
    }
}

/// MB/s of `write`, which writes `len` bytes; what it writes per byte goes to `shares`.
fn speed(
    run: &Run,
    len: usize,
    shares: &Shares,
    write: impl FnOnce() -> Result<()>,
) -> Result<f64> {
    let before = Written::now(run.dir())?;
    let time = seconds(write)?;
    let (calls, device) = Written::now(run.dir())?.shares_since(before, len as f64);
    let mut all = shares.0.borrow_mut();
    all.0.push(calls);
    all.1.push(device);
    Ok(len as f64 / 1e6 / time)
}

/// Writes `bytes` through a writer that does not know what is to come.
fn stream(store: &Store, bytes: &[u8]) -> Result<()> {
    store.write(|tx| {
        let mut writer = tx.writer(Target::New, PutOptions::default())?;
        for piece in bytes.chunks(bare::CALL) {
            writer.push(piece)?;
        }
        writer.finish()
    })?;
    Ok(())
}

fn one_object(run: &Run, section: &mut Section, bytes: &[u8]) -> Result<()> {
    run.say("one large object");
    let (none, put_share, stream_share) = <(Shares, Shares, Shares)>::default();
    let path = run.path("bare");
    let plain = |write: fn(&Path, &[u8]) -> Result<()>| {
        run.remove("bare")?;
        prepare(run, bytes.len())?;
        let figure = speed(run, bytes.len(), &none, || write(&path, bytes));
        run.remove("bare")?;
        figure
    };
    let stored = |shares: &Shares, write: &dyn Fn(&Store) -> Result<()>| {
        let store = run.store("large", &Options::default())?;
        prepare(run, bytes.len())?;
        let figure = speed(run, bytes.len(), shares, || write(&store));
        store.close()?;
        run.remove("large")?;
        figure
    };
    let put = |store: &Store| Ok(store.write(|tx| tx.put("large", bytes).map(|_| ()))?);
    let figures = interleave(
        run.rounds.min(4),
        &mut [
            &mut || plain(bare::write_once),
            &mut || stored(&put_share, &put),
            &mut || plain(bare::write_paced),
            &mut || stored(&stream_share, &|store| stream(store, bytes)),
        ],
    )?;
    let [bare, put, paced, streamed] = &figures[..] else { anyhow::bail!("four sides") };
    let size = format!("one object of {} MiB", bytes.len() >> 20);
    let goal = Goal::AtLeast(0.85);
    section.push(Row::against(format!("{size}, put"), "MB/s", put, bare).goal(goal));
    let what = format!("{size}, put, against writing out every 4 MiB");
    section.push(Row::against(what, "MB/s", put, paced).goal(goal));
    section.push(Row::against(format!("{size}, through a writer"), "MB/s", streamed, bare));
    put_share.rows(&format!("{size}, put"), section);
    stream_share.rows(&format!("{size}, through a writer"), section);
    Ok(())
}

fn one_commit_each(run: &Run, section: &mut Section, bytes: &[u8]) -> Result<()> {
    run.say("objects of 1 MiB, one commit each");
    let count = run.pick(512, 128_u64);
    let len = bytes.len() * count as usize;
    let (none, put_share) = <(Shares, Shares)>::default();
    let path = run.path("bare");
    let figures = interleave(
        run.rounds,
        &mut [
            &mut || {
                run.remove("bare")?;
                prepare(run, len)?;
                let figure = speed(run, len, &none, || bare::append(&path, bytes, count));
                run.remove("bare")?;
                figure
            },
            &mut || {
                let store = run.store("many", &Options::default())?;
                prepare(run, len)?;
                let figure = speed(run, len, &put_share, || put_each(&store, bytes, count));
                store.close()?;
                run.remove("many")?;
                figure
            },
        ],
    )?;
    let what = "objects of 1 MiB, one commit each";
    let row = Row::against(what, "MB/s", &figures[1], &figures[0]);
    section.push(row.goal(Goal::AtLeast(0.85)));
    put_share.rows(what, section);
    Ok(())
}

/// Puts `bytes` under `count` names, one commit each.
pub fn put_each(store: &Store, bytes: &[u8], count: u64) -> Result<()> {
    for i in 0..count {
        store.write(|tx| tx.put(data::name(i), bytes))?;
    }
    Ok(())
}

/// Reads an object through `buf`.
pub fn read_through(store: &Store, name: &str, buf: &mut [u8]) -> Result<u64> {
    let mut object = store.read()?.open(name)?;
    let mut all = 0;
    loop {
        match object.read(buf)? {
            0 => return Ok(all),
            n => all += n as u64,
        }
    }
}

fn cold_reads(run: &Run, section: &mut Section, bytes: &[u8]) -> Result<()> {
    run.say("cold reads");
    let (file, volume) = (run.path("bare"), run.path("cold"));
    bare::write_once(&file, bytes)?;
    let store = run.store("cold", &Options::default())?;
    store.write(|tx| tx.put("large", bytes))?;
    put_each(&store, &bytes[..MIB], run.pick(256, 64))?;
    store.close()?;
    let how = RefCell::new("");
    // The store is opened before the clock runs: its own pages are not what is measured.
    let cold = |read: &mut dyn FnMut(&Store) -> Result<u64>| -> Result<f64> {
        let store = Store::open(&volume)?;
        let mut len = 0;
        *how.borrow_mut() = system::drop_caches(run.dir(), &[&volume, &file])?;
        let time = seconds(|| {
            len = read(&store)?;
            Ok(())
        })?;
        store.close()?;
        Ok(len as f64 / 1e6 / time)
    };
    let buf = RefCell::new(data::bytes(bare::CALL, 5));
    let count = run.pick(256, 64);
    let figures = interleave(
        run.rounds,
        &mut [
            &mut || cold(&mut |_| bare::read_through(&file, &mut buf.borrow_mut())),
            &mut || cold(&mut |store| read_through(store, "large", &mut buf.borrow_mut())),
            &mut || {
                system::touch_memory(2 * bytes.len());
                cold(&mut |_| Ok(std::fs::read(&file)?.len() as u64))
            },
            &mut || {
                system::touch_memory(2 * bytes.len());
                cold(&mut |store| {
                    let got = store.read()?.get("large")?.context("an object is missing")?;
                    Ok(got.len() as u64)
                })
            },
            &mut || cold(&mut |store| get_each(store, count)),
        ],
    )?;
    ensure!(run.path("cold").exists(), "the store is there");
    let [bare, ours, whole, get, each] = &figures[..] else { anyhow::bail!("five sides") };
    let goal = Goal::AtLeast(0.9);
    let what = "cold read through a buffer of 1 MiB";
    section.push(Row::against(what, "MB/s", ours, bare).goal(goal));
    let what = "cold get of the whole (against reading the file whole)";
    section.push(Row::against(what, "MB/s", get, whole).goal(goal));
    section.push(Row::against("cold gets of 1 MiB objects", "MB/s", each, bare));
    section.remark(format!("Cold: {}.", how.borrow()));
    run.remove("bare")?;
    run.remove("cold")
}

fn get_each(store: &Store, count: u64) -> Result<u64> {
    let reader = store.read()?;
    let mut all = 0;
    for i in 0..count {
        all += reader.get(data::name(i))?.context("an object is missing")?.len() as u64;
    }
    Ok(all)
}
