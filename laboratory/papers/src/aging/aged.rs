//! A store that is filled and then ages by safe writes (Sears §4.5, §4.6).
//!
//! Owns: what is measured at each age. Storage age is bytes of safe writes over live bytes;
//! which object is replaced is drawn evenly.

use std::fs::File;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rustix::fs::Advice;

use super::case::{Case, Point, Run};
use super::gaps::lay;
use super::markers::{Content, Mark, Places, check, marks_of};
use super::places::{extents, files_below, of_files, of_image, runs};
use super::system::{System, is_full};
use super::volume::Volume;
use crate::kit::calls;
use crate::kit::postgres::Server;
use holdall_instrument::draw::number;

/// Bytes read for one figure of throughput.
const READ: u64 = 64 << 20;
/// Share of an object's markers that must be found: rows and pages cut a few.
const FOUND: f64 = 0.75;

#[derive(Debug, Clone, Copy)]
struct Object {
    key: u64,
    version: u32,
    size: usize,
}

/// A store while it ages.
pub(super) struct Aged<'r> {
    content: &'r Content,
    case: &'r Case,
    volume: &'r Volume,
    server: Option<&'r Server>,
    store: Option<Box<dyn System>>,
    objects: Vec<Object>,
    live: u64,
    next_key: u64,
    rng: SmallRng,
    /// In calls that write, and bytes that they wrote; both at the last point too.
    spent: Duration,
    written: u64,
    last: (Duration, u64),
    /// Read calls of an object at the last point, `None` if another process reads.
    calls: Option<f64>,
}

impl<'r> Aged<'r> {
    pub(super) fn new(
        content: &'r Content,
        seed: u64,
        case: &'r Case,
        volume: &'r Volume,
        server: Option<&'r Server>,
    ) -> Result<Self> {
        let store = case.kind.open(volume.dir(), volume.bytes(), server)?;
        Ok(Self {
            content,
            case,
            volume,
            server,
            store: Some(store),
            objects: Vec::new(),
            live: 0,
            next_key: 0,
            rng: SmallRng::seed_from_u64(seed),
            spent: Duration::ZERO,
            written: 0,
            last: (Duration::ZERO, 0),
            calls: None,
        })
    }

    fn store(&mut self) -> Result<&mut Box<dyn System>> {
        self.store.as_mut().context("the store is closed")
    }

    /// Fills the store and ages it; what it reached is in `run`, also if it was full.
    pub(super) fn age(mut self, run: &mut Run) -> Result<()> {
        let ended = self.ages(run);
        run.objects = self.objects.len();
        match ended {
            Err(error) if is_full(&error) => {
                let age = if run.points.is_empty() { 0.0 } else { self.reached() };
                let objects = run.objects;
                run.remarks.push(format!("full with {objects} objects at age {age:.1}: {error:#}"));
                Ok(())
            }
            ended => ended,
        }
    }

    fn ages(&mut self, run: &mut Run) -> Result<()> {
        let limit = Duration::from_secs(self.case.limit);
        self.fill()?;
        run.points.push(self.measure(0.0)?);
        // The age counts safe writes only.
        (self.spent, self.written, self.last) = (Duration::ZERO, 0, (Duration::ZERO, 0));
        for &age in &self.case.ages {
            while self.written < u64::from(age) * self.live && self.spent < limit {
                self.replace()?;
            }
            let reached = self.reached();
            if self.written > 0 {
                run.points.push(self.measure(reached)?);
            }
            if self.spent >= limit {
                run.remarks.push(format!("cut off at age {reached:.1} after {limit:?} of writing"));
                break;
            }
        }
        run.account = self.account()?;
        self.store.take().map_or(Ok(()), System::close)
    }

    /// What store and file system count themselves.
    fn account(&mut self) -> Result<String> {
        let keys: Vec<u64> = self.objects.iter().map(|o| o.key).collect();
        let mut own = self.store()?.account(&keys)?;
        if let Some(calls) = self.calls {
            own = format!("{own}; {} calls to read one", number(calls));
        }
        let files = files_below(self.volume.dir())?;
        let largest = files.iter().max_by_key(|file| file.metadata().map_or(0, |m| m.len()));
        let Some(extents) = largest.and_then(|file| extents(file).ok()) else { return Ok(own) };
        Ok(format!("{own}; the largest file in {} extents", runs(&extents)))
    }

    /// Storage age.
    fn reached(&self) -> f64 {
        self.written as f64 / self.live as f64
    }

    /// Bytes that live objects may take.
    fn wanted(&self) -> u64 {
        (self.volume.bytes() as f64 * self.case.occupancy * self.case.kind.share()) as u64
    }

    /// Bulk load up to the occupancy.
    fn fill(&mut self) -> Result<()> {
        let gaps = self.case.in_gaps;
        let (content, bytes) = (self.content, self.volume.bytes());
        let small = if gaps { lay(self.store()?.as_mut(), content, bytes)? } else { Vec::new() };
        let sizes = self.case.sizes.filling(self.wanted(), &mut self.rng);
        for batch in sizes.chunks(self.case.together) {
            let first = self.objects.len();
            for &size in batch {
                self.objects.push(Object { key: self.next_key, version: 0, size });
                self.next_key += 1;
            }
            if let Err(error) = self.write(&(first..self.objects.len()).collect::<Vec<_>>()) {
                self.objects.truncate(first);
                return Err(error);
            }
        }
        self.live = self.written;
        small.into_iter().try_for_each(|key| self.store()?.delete(key))
    }

    /// New versions of as many objects as are written together, drawn evenly.
    fn replace(&mut self) -> Result<()> {
        let count = self.case.together.min(self.objects.len());
        let chosen = rand::seq::index::sample(&mut self.rng, self.objects.len(), count).into_vec();
        let most = self.wanted();
        let mut old = Vec::new();
        for &at in &chosen {
            let object = self.objects[at];
            // A size that keeps the occupancy; after a few tries the one it has.
            let rest = self.live - object.size as u64;
            let mut drawn = (0..8).map(|_| self.case.sizes.draw(&mut self.rng));
            let size = drawn.find(|s| rest + *s as u64 <= most).unwrap_or(object.size);
            self.live = rest + size as u64;
            let key = if count > 1 { self.next_key } else { object.key };
            self.next_key += 1;
            self.objects[at] = Object { key, version: object.version + 1, size };
            old.push(object.key);
        }
        self.write(&chosen)?;
        if count > 1 {
            let started = Instant::now();
            for key in old {
                self.store()?.delete(key)?;
            }
            self.spent += started.elapsed();
        }
        Ok(())
    }

    /// Writes the current versions of `chosen`: one by a safe write, several by appends in turns.
    fn write(&mut self, chosen: &[usize]) -> Result<()> {
        let ask = self.case.ask;
        let mut bytes = vec![Vec::new(); chosen.len()];
        for (out, &at) in bytes.iter_mut().zip(chosen) {
            let Object { version, size, .. } = self.objects[at];
            self.content.fill(at as u32, version, size, out);
        }
        let keys: Vec<u64> = chosen.iter().map(|&at| self.objects[at].key).collect();
        let started = Instant::now();
        let together = self.case.together;
        let store = self.store()?;
        if together == 1 {
            for (bytes, &key) in bytes.iter().zip(&keys) {
                store.put(key, bytes, ask)?;
            }
        } else {
            let most = bytes.iter().map(Vec::len).max().unwrap_or(0);
            for from in (0..most).step_by(ask.request) {
                for (bytes, &key) in bytes.iter().zip(&keys).filter(|(b, _)| from < b.len()) {
                    let expected = ask.hint.then_some(bytes.len() as u64);
                    let part = &bytes[from..bytes.len().min(from + ask.request)];
                    store.append(key, part, expected)?;
                }
            }
        }
        self.spent += started.elapsed();
        self.written += bytes.iter().map(|b| b.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Counts fragments and reads objects, after the store was closed and opened again.
    fn measure(&mut self, age: f64) -> Result<Point> {
        let seconds = (self.spent - self.last.0).as_secs_f64();
        let since = self.written - self.last.1;
        self.last = (self.spent, self.written);
        self.store()?.settle()?;
        self.volume.settle()?;
        let (fragments, most) = self.fragments()?;
        if let Some(store) = self.store.take() {
            store.close()?;
        }
        for file in files_below(self.volume.dir())? {
            // The server removes files of its own while it is idle.
            match File::open(file) {
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                file => rustix::fs::fadvise(&file?, 0, None, Advice::DontNeed)?,
            }
        }
        let (dir, bytes) = (self.volume.dir(), self.volume.bytes());
        self.store = Some(self.case.kind.open(dir, bytes, self.server)?);
        let read = self.read()?;
        Ok(Point { age, fragments, most, read, write: since as f64 / 1e6 / seconds.max(1e-9) })
    }

    /// Mean and most fragments of an object.
    fn fragments(&mut self) -> Result<(f64, u32)> {
        let logs = self.store()?.logs()?;
        let versions: Vec<u32> = self.objects.iter().map(|o| o.version).collect();
        let live = |mark: Mark| versions.get(mark.object as usize) == Some(&mark.version);
        let mut places: Places = match self.volume.image() {
            Some(image) => of_image(image, &logs, &live)?,
            None => {
                let mut files = files_below(self.volume.dir())?;
                files.retain(|file| !logs.contains(file));
                of_files(&files, &live)?
            }
        };
        let (mut sum, mut most) = (0.0, 0);
        for (at, object) in self.objects.iter().enumerate() {
            let (fragments, found) = places.fragments(at as u32);
            let marks = marks_of(object.size);
            if (found as f64) < FOUND * marks as f64 {
                bail!("object {at}: {found} of {marks} markers found on the volume");
            }
            sum += f64::from(fragments);
            most = most.max(fragments);
        }
        Ok((sum / self.objects.len() as f64, most))
    }

    /// MB/s of random objects, each read once and checked.
    fn read(&mut self) -> Result<f64> {
        let count = self.objects.len();
        let order = rand::seq::index::sample(&mut self.rng, count, count).into_vec();
        let (mut bytes, mut time, mut out) = (0, Duration::ZERO, Vec::new());
        let (mut read, before) = (0, calls::reads());
        for at in order {
            let Object { key, version, size } = self.objects[at];
            let started = Instant::now();
            self.store()?.read(key, &mut out)?;
            time += started.elapsed();
            check(&out, at as u32, version, size)?;
            bytes += size as u64;
            read += 1;
            if bytes >= READ {
                break;
            }
        }
        let own = calls::reads().zip(before).filter(|_| !self.case.kind.is_postgres());
        self.calls = own.map(|(now, before)| (now - before) as f64 / f64::from(read));
        Ok(bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9))
    }
}
