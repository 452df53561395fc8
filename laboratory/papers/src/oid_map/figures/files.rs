//! Look-ups per second and space on a real file, beside the engine (ours, beyond the paper). Owns
//! no state.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use holdall::{Error, Oid, Reader, Store};
use holdall_io::{FileStorage, Storage};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::fs::Advice;

use super::super::pages::PAGE;
use super::super::workload::{Base, Technique};
use holdall_instrument::draw::{number, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::spread::Spread;

/// The part of a map that a small buffer holds.
const SMALL: usize = 10;

/// What a look-up asks.
enum Asked {
    /// A mapping of the lab.
    Lab(Base),
    /// The engine, by its public interface.
    Engine { reader: Option<(Store, Reader)>, oids: Vec<Oid>, whole: bool },
}

struct Subject {
    name: &'static str,
    dir: PathBuf,
    /// Bytes of the map, and of all that a look-up may need.
    map: usize,
    bytes: usize,
    asked: Asked,
}

impl Subject {
    fn lab(dir: PathBuf, technique: Technique, settings: &Settings<'_>) -> Result<Self> {
        fs::create_dir(&dir)?;
        let disk = FileStorage::create(dir.join("map"))?.volume();
        let mut base = Base::build(disk, technique, objects(settings), 0, settings.seed)?;
        base.mapping.flush()?;
        let map = base.mapping.used() as usize * PAGE;
        Ok(Self { name: technique.name(), dir, map, bytes: map, asked: Asked::Lab(base) })
    }

    /// Objects of 8 bytes. Asked for `whole` objects, or with another unique field, so that the
    /// handle table alone answers: there is no such object.
    fn engine(dir: PathBuf, whole: bool, settings: &Settings<'_>) -> Result<Self> {
        fs::create_dir(&dir)?;
        let store = Store::create(dir.join("store"))?;
        let mut oids: Vec<Oid> = Vec::new();
        for first in (0..objects(settings)).step_by(10_000) {
            let bytes = (first..first + 10_000).map(|n| n.to_le_bytes());
            oids.extend(store.write(|tx| tx.create_many(bytes))?);
        }
        store.checkpoint()?;
        let stat = store.stat()?;
        store.close()?;
        // Handle pages are numbered without gaps.
        let pages = oids.iter().map(|oid| oid.page as usize + 1).max().unwrap_or_default();
        let map = pages * stat.page_size;
        let bytes = if whole { stat.used_bytes as usize } else { map };
        if !whole {
            oids.iter_mut().for_each(|oid| oid.unique = u32::MAX - 1);
        }
        let name = if whole { "Holdall, objects" } else { "Holdall, handles" };
        Ok(Self { name, dir, map, bytes, asked: Asked::Engine { reader: None, oids, whole } })
    }

    /// Empties the buffer, which gets a part of what look-ups need.
    fn empty(&mut self, part: usize) -> Result<()> {
        match &mut self.asked {
            Asked::Lab(base) => base.mapping.pages().set_buffer(self.bytes / PAGE / part + 1),
            Asked::Engine { reader, .. } => {
                if let Some((store, reader)) = reader.take() {
                    drop(reader);
                    store.close()?;
                }
                // Beside pages, the engine keeps what finds them.
                let cache = if part == 1 { self.bytes * 2 } else { self.bytes / part };
                let store = Store::builder().cache_bytes(cache).open(self.dir.join("store"))?;
                let read = store.read()?;
                *reader = Some((store, read));
                Ok(())
            }
        }
    }

    fn look_up(&mut self, object: usize, bytes: &mut Vec<u8>) -> Result<()> {
        match &mut self.asked {
            Asked::Lab(base) => base.look_up(object),
            Asked::Engine { reader: Some((_, reader)), oids, whole } => {
                match reader.get_into(oids[object], bytes) {
                    Ok(true) => ensure!(*whole && *bytes == object.to_le_bytes(), "wrong bytes"),
                    Err(Error::Dangling(_) | Error::NotFound(_)) if !*whole => {}
                    other => bail!("object {object}: {other:?}"),
                }
                Ok(())
            }
            Asked::Engine { .. } => bail!("the store is not open"),
        }
    }

    /// Look-ups per second: `count` of any objects, or of one after the other.
    fn rate(&mut self, all: usize, count: usize, random: bool, seed: u64) -> Result<f64> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut bytes = Vec::new();
        let start = Instant::now();
        for n in 0..count {
            let object = if random { rng.random_range(0..all) } else { n % all };
            self.look_up(object, &mut bytes)?;
        }
        Ok(count as f64 / start.elapsed().as_secs_f64())
    }
}

fn objects(settings: &Settings<'_>) -> usize {
    if settings.quick { 100_000 } else { 1_000_000 }
}

/// Drops the files of `dir` from the page cache.
fn forget(dir: &Path) -> Result<()> {
    for file in fs::read_dir(dir)? {
        let file = File::open(file?.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

pub fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let scratch = settings.scratch()?;
    let dir = |name: &str| scratch.path().join(name);
    let all = objects(settings);
    let mut subjects = Vec::new();
    for technique in [Technique::Hash, Technique::ClusteredTree, Technique::LinearDirect] {
        subjects.push(Subject::lab(dir(technique.name()), technique, settings)?);
    }
    for (name, whole) in [("handles", false), ("objects", true)] {
        subjects.push(Subject::engine(dir(name), whole, settings)?);
    }
    // By subject; cold, small buffer and whole buffer, of each random and sequential.
    let mut rates = vec![[const { Vec::new() }; 6]; subjects.len()];
    for turn in 0..settings.repetitions {
        (settings.progress)(u64::from(turn), u64::from(settings.repetitions));
        for (subject, rates) in subjects.iter_mut().zip(&mut rates) {
            for (n, rates) in rates.iter_mut().enumerate() {
                let random = n % 2 == 0;
                subject.empty(if n / 2 == 1 { SMALL } else { 1 })?;
                let count = if n < 2 {
                    forget(&subject.dir)?;
                    all / 100
                } else {
                    let warm = if n < 4 { all / 5 } else { all };
                    subject.rate(all, warm, random && n < 4, 0)?;
                    all / 5
                };
                rates.push(subject.rate(all, count, random, settings.seed + u64::from(turn))?);
            }
        }
    }
    let rows = subjects.iter().zip(&rates).map(|(subject, rates)| {
        let mut row = vec![
            subject.name.to_owned(),
            number(subject.map as f64 / 1e6),
            number(subject.map as f64 / all as f64),
        ];
        row.extend(rates.iter().map(|rates| {
            let thousands: Vec<f64> = rates.iter().map(|rate| rate / 1000.0).collect();
            Spread::of(&thousands).to_string()
        }));
        row
    });
    let head = [
        "map",
        "MB",
        "bytes for an object",
        "cold, random",
        "cold, in order",
        "small buffer, random",
        "small buffer, in order",
        "whole buffer, random",
        "whole buffer, in order",
    ];
    let tables = vec![table("files", "Thousands of look-ups per second", &head, rows.collect())];
    let notes = vec![format!(
        "{all} objects. Cold: {} look-ups with an empty buffer, the file dropped from the page \
         cache. Small buffer: a {SMALL}th of the map, pages from the page cache. Whole buffer: \
         the map in memory. {} repetitions, in turns. A look-up of the lab's maps gives a handle, \
         with 4 KiB pages read by one thread. \"Holdall, handles\" asks the engine for OIDs whose \
         unique field is wrong: its handle table alone, with pages of 8 KiB, checksums and \
         snapshots, says that there is no such object. \"Holdall, objects\" gets objects of 8 \
         bytes by OID: handle table and record; its buffers are for both. MB are of the handle \
         pages alone.",
        all / 100,
        settings.repetitions,
    )];
    Ok(Outcome { tables, notes, ..Outcome::default() })
}
