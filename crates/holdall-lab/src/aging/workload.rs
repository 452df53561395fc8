//! A store that is filled and then ages by safe writes (Sears §4.5, §4.6).
//!
//! Owns: the case, the ages at which it is looked at, and what is measured there. Storage age
//! is bytes of safe writes over live bytes; which object is replaced is drawn evenly. Each case
//! has a fresh volume. What it took is kept as a part, so that a run that was broken off goes on.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::fs::Advice;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::markers::{Content, Mark, Places, check, marks_of};
use super::places::{files_below, of_files, of_image};
use super::system::postgres::Server;
use super::system::{Ask, Kind, System, is_full};
use super::volume::{FileSystem, Volume};
use crate::experiment::Settings;

/// Bytes read for one figure of throughput.
const READ: u64 = 64 << 20;
/// Share of an object's markers that must be found: rows and pages cut a few.
const FOUND: f64 = 0.75;

/// Sizes of objects in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Constant(usize),
    /// Even between a tenth and nineteen tenths of the mean, drawn anew with each version.
    Uniform(usize),
}

impl Sizes {
    fn draw(self, rng: &mut SmallRng) -> usize {
        match self {
            Self::Constant(size) => size,
            Self::Uniform(mean) => rng.random_range(mean / 10..=mean * 19 / 10),
        }
    }
}

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// On which system.
    pub kind: Kind,
    /// Objects.
    pub sizes: Sizes,
    /// Bytes of the volume.
    pub volume: u64,
    /// Share of it that live objects take.
    pub occupancy: f64,
    /// How bytes come.
    pub ask: Ask,
    /// Objects that are appended to in turns, each append durable; 1 for safe writes.
    pub together: usize,
    /// At which it is measured, rising; the filled store is age 0.
    pub ages: Vec<u32>,
    /// Seconds of writing after which it is cut off.
    pub limit: u64,
}

impl Case {
    /// All that a result depends on, for the name of a part.
    fn name(&self, settings: &Settings<'_>) -> String {
        let mut name = format!("aging {} {:?} ", self.kind.name(), self.sizes);
        let ages = self.ages.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
        // Writing to a string cannot fail.
        let _ = write!(
            name,
            "v{} o{} r{} h{} t{} a{ages} l{} s{}",
            self.volume,
            self.occupancy,
            self.ask.request,
            self.ask.hint,
            self.together,
            self.limit,
            settings.seed,
        );
        name
    }
}

/// A store at an age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of safe writes over live bytes.
    pub age: f64,
    /// Fragments of an object, mean.
    pub fragments: f64,
    /// Fragments of the object that has most.
    pub most: u32,
    /// MB of 10^6 per second that random objects are read at, from the disk.
    pub read: f64,
    /// MB of 10^6 per second that were written since the point before.
    pub write: f64,
}

/// A case's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The system's name.
    pub system: String,
    /// By age; none where the system was skipped.
    pub points: Vec<Point>,
    /// Objects in the store.
    pub objects: usize,
    /// Why it was skipped, or ended early, or how it was measured.
    pub remarks: Vec<String>,
}

impl Run {
    /// The last point at or before `age`, give or take a tenth.
    #[must_use]
    pub fn at(&self, age: f64) -> Option<&Point> {
        self.points.iter().rev().find(|p| p.age <= age + 0.1)
    }

    /// The last point.
    #[must_use]
    pub fn last(&self) -> Option<&Point> {
        self.points.last()
    }
}

/// What the runs of an experiment share.
pub struct Bench<'a> {
    settings: &'a Settings<'a>,
    content: Content,
    server: OnceCell<std::result::Result<Server, String>>,
    /// Behind the server, which stops before its directory goes.
    scratch: TempDir,
}

impl<'a> Bench<'a> {
    /// With a directory of its own.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(settings: &'a Settings<'a>) -> Result<Self> {
        let content = Content::new(settings.seed);
        Ok(Self { settings, scratch: settings.scratch()?, content, server: OnceCell::new() })
    }

    /// The server, started when it is first asked for.
    fn server(&self) -> std::result::Result<&Server, String> {
        let start = || Server::start(self.scratch.path()).map_err(|e| format!("{e:#}"));
        self.server.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    /// Runs `case`, or takes what was kept of an earlier run.
    ///
    /// # Errors
    /// The store or the disk fails; a store that is missing or full is no error.
    pub fn run(&self, case: &Case) -> Result<Run> {
        let name = case.name(self.settings);
        let kept = self.settings.parts.load(&name);
        if let Some(run) = kept.and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok(run);
        }
        let context = || format!("{}, {:?}", case.kind.name(), case.sizes);
        let run = self.fresh(case).with_context(context)?;
        // What is missing today may be installed tomorrow.
        if !run.points.is_empty() {
            self.settings.parts.save(&name, &serde_json::to_string(&run)?)?;
        }
        Ok(run)
    }

    fn fresh(&self, case: &Case) -> Result<Run> {
        let mut run = Run {
            system: case.kind.name().into(),
            points: Vec::new(),
            objects: 0,
            remarks: Vec::new(),
        };
        let server = match case.kind.is_postgres().then(|| self.server()).transpose() {
            Ok(server) => server,
            Err(missing) => {
                run.remarks.push(format!("skipped: {missing}"));
                return Ok(run);
            }
        };
        let Some(volume) = self.volume(case, &mut run.remarks)? else { return Ok(run) };
        let mut store = Aged::new(self, case, &volume, server)?;
        let aged = store.age(&mut run);
        run.objects = store.objects.len();
        drop(store);
        // Before the volume goes, also after an error.
        let forgotten = server.map_or(Ok(()), Server::forget);
        aged?;
        forgotten?;
        Ok(run)
    }

    /// A fresh volume for `case`; none where it is skipped, which a remark says.
    fn volume(&self, case: &Case, remarks: &mut Vec<String>) -> Result<Option<Volume>> {
        let system = case.kind.file_system();
        if let Some(missing) = system.missing().filter(|_| system != FileSystem::Ext4) {
            remarks.push(format!("skipped: {missing}"));
            return Ok(None);
        }
        if case.volume < system.least_bytes() {
            let least = system.least_bytes() >> 20;
            remarks.push(format!("skipped: {} takes {least} MiB and more", system.name()));
            return Ok(None);
        }
        let why = match Volume::mounted(self.scratch.path(), system, case.volume) {
            Ok(volume) => return Ok(Some(volume)),
            Err(error) => format!("{error:#}"),
        };
        if system != FileSystem::Ext4 {
            remarks.push(format!("skipped: {why}"));
            return Ok(None);
        }
        remarks.push(format!("in a directory, no volume of its own: {why}"));
        Volume::directory(self.scratch.path(), case.volume).map(Some)
    }
}

#[derive(Debug, Clone, Copy)]
struct Object {
    key: u64,
    version: u32,
    size: usize,
}

/// A store while it ages.
struct Aged<'r> {
    bench: &'r Bench<'r>,
    case: &'r Case,
    volume: &'r Volume,
    server: Option<&'r Server>,
    store: Option<Box<dyn System>>,
    objects: Vec<Object>,
    live: u64,
    next_key: u64,
    rng: SmallRng,
    /// In calls that write, since the last point and in all.
    writing: Duration,
    spent: Duration,
    written: u64,
    /// Of them, at the last point.
    measured: u64,
}

impl<'r> Aged<'r> {
    fn new(
        bench: &'r Bench<'r>,
        case: &'r Case,
        volume: &'r Volume,
        server: Option<&'r Server>,
    ) -> Result<Self> {
        let store = case.kind.open(volume.dir(), volume.bytes(), server)?;
        Ok(Self {
            bench,
            case,
            volume,
            server,
            store: Some(store),
            objects: Vec::new(),
            live: 0,
            next_key: 0,
            rng: SmallRng::seed_from_u64(bench.settings.seed),
            writing: Duration::ZERO,
            spent: Duration::ZERO,
            written: 0,
            measured: 0,
        })
    }

    fn store(&mut self) -> Result<&mut Box<dyn System>> {
        self.store.as_mut().context("the store is closed")
    }

    /// Fills the store and ages it; what it reached is in `run`.
    fn age(&mut self, run: &mut Run) -> Result<()> {
        let ended = self.ages(run);
        if let Some(full) = full(ended)? {
            let objects = self.objects.len();
            let age =
                if run.points.is_empty() { 0.0 } else { self.written as f64 / self.live as f64 };
            run.remarks.push(format!("full with {objects} objects at age {age:.1}: {full}"));
        }
        Ok(())
    }

    fn ages(&mut self, run: &mut Run) -> Result<()> {
        let limit = Duration::from_secs(self.case.limit);
        self.fill()?;
        run.points.push(self.measure(0.0)?);
        for &age in &self.case.ages {
            while self.written < u64::from(age) * self.live && self.spent < limit {
                self.replace()?;
            }
            let reached = self.written as f64 / self.live as f64;
            if self.written > 0 {
                run.points.push(self.measure(reached)?);
            }
            if self.spent >= limit {
                run.remarks.push(format!("cut off at age {reached:.1} after {limit:?} of writing"));
                return Ok(());
            }
        }
        self.store.take().map_or(Ok(()), System::close)
    }

    /// Bytes that live objects may take.
    fn wanted(&self) -> u64 {
        (self.volume.bytes() as f64 * self.case.occupancy * self.case.kind.share()) as u64
    }

    /// Bulk load up to the occupancy.
    fn fill(&mut self) -> Result<()> {
        let wanted = self.wanted();
        let mut sizes = Vec::new();
        let mut sum = 0;
        loop {
            let size = self.case.sizes.draw(&mut self.rng);
            sum += size as u64;
            if sum > wanted {
                break;
            }
            sizes.push(size);
        }
        if sizes.is_empty() {
            sizes.push(usize::try_from(wanted)?);
        }
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
        self.live = self.objects.iter().map(|o| o.size as u64).sum();
        self.written = 0;
        self.spent = Duration::ZERO;
        Ok(())
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
            self.spend(started.elapsed());
        }
        Ok(())
    }

    fn spend(&mut self, time: Duration) {
        self.writing += time;
        self.spent += time;
    }

    /// Writes the current versions of `chosen`: one by a safe write, several by appends in turns.
    fn write(&mut self, chosen: &[usize]) -> Result<()> {
        let ask = self.case.ask;
        let mut bytes = vec![Vec::new(); chosen.len()];
        for (out, &at) in bytes.iter_mut().zip(chosen) {
            let Object { version, size, .. } = self.objects[at];
            self.bench.content.fill(at as u32, version, size, out);
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
        self.spend(started.elapsed());
        self.written += bytes.iter().map(|b| b.len() as u64).sum::<u64>();
        Ok(())
    }

    /// Counts fragments and reads objects, after the store was closed and opened again.
    fn measure(&mut self, age: f64) -> Result<Point> {
        let seconds = self.writing.as_secs_f64();
        let since = if age == 0.0 { self.live } else { self.written - self.measured };
        self.measured = self.written;
        self.writing = Duration::ZERO;
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
        let (mut sum, mut most) = (0, 0);
        for (at, object) in self.objects.iter().enumerate() {
            let (fragments, found) = places.fragments(at as u32);
            let all = marks_of(object.size);
            if (found as f64) < FOUND * all as f64 {
                bail!("object {at}: {found} of {all} markers found on the volume");
            }
            sum += u64::from(fragments);
            most = most.max(fragments);
        }
        Ok((sum as f64 / self.objects.len() as f64, most))
    }

    /// MB/s of random objects, each read once and checked.
    fn read(&mut self) -> Result<f64> {
        let count = self.objects.len();
        let order = rand::seq::index::sample(&mut self.rng, count, count).into_vec();
        let (mut bytes, mut time, mut out) = (0, Duration::ZERO, Vec::new());
        for at in order {
            let Object { key, version, size } = self.objects[at];
            let started = Instant::now();
            self.store()?.read(key, &mut out)?;
            time += started.elapsed();
            check(&out, at as u32, version, size)?;
            bytes += size as u64;
            if bytes >= READ {
                break;
            }
        }
        Ok(bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9))
    }
}

/// What a store that is full said; other errors stay errors.
fn full(ended: Result<()>) -> Result<Option<String>> {
    match ended {
        Ok(()) => Ok(None),
        Err(error) if is_full(&error) => Ok(Some(format!("{error:#}"))),
        Err(error) => Err(error),
    }
}
