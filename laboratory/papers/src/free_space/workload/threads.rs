//! Creating and deleting by real threads (McAuliffe §5.4): each runs transactions of its own on one
//! heap file, and forces the log before each commits.
//!
//! Owns the mutex around the file and the table of objects, taken for one object at a time, and
//! the log, a real file. A thread waits for the log without that mutex, so that others go on; one
//! sync serves all who wait for it.

use super::churn::{Churn, Meter, World, open};
use super::clock::CpuClock;
use super::sample::Run;
use crate::free_space::algorithm::Kind;
use anyhow::{Result, anyhow};
use holdall_io::{FileStorage, Storage};
use holdall_testkit::CountedDisk;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// What the log did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Syncs {
    /// Records that are durable.
    pub records: u64,
    /// Syncs, and seconds that they took.
    pub count: u64,
    pub seconds: f64,
}

/// The log: records appended by each, synced for all.
struct Log {
    file: File,
    appended: Mutex<u64>,
    synced: Mutex<Syncs>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// Returns when `record` is durable.
    fn force(&self, record: &[u8]) -> Result<()> {
        let mine = {
            let mut appended = lock(&self.appended);
            (&self.file).write_all(record)?;
            *appended += 1;
            *appended
        };
        let mut synced = lock(&self.synced);
        if synced.records < mine {
            let (until, start) = (*lock(&self.appended), Instant::now());
            self.file.sync_data()?;
            synced.seconds += start.elapsed().as_secs_f64();
            (synced.records, synced.count) = (until, synced.count + 1);
        }
        Ok(())
    }
}

/// What the threads share.
struct Shared<'a> {
    world: World<'a>,
    meter: Meter,
    disk: Arc<CountedDisk>,
    begun: u64,
}

/// One thread: transactions until `transactions` have begun.
fn work(shared: &Mutex<Shared<'_>>, log: &Log, transactions: u64) -> Result<()> {
    let mut record = Vec::new();
    loop {
        let mut turn = {
            let mut shared = lock(shared);
            if shared.begun == transactions {
                return Ok(());
            }
            shared.begun += 1;
            shared.world.begin()?
        };
        record.clear();
        while turn.left > 0 {
            let world = &mut lock(shared).world;
            world.step(&mut turn)?;
            record.extend_from_slice(&world.bytes);
        }
        log.force(&record)?;
        let Shared { world, meter, disk, .. } = &mut *lock(shared);
        world.end(turn)?;
        meter.count(world, disk);
    }
}

/// Runs `params.transactions` on as many threads as `params.streams` says, on files in `dir`. The
/// time of the samples is that on the wall.
pub fn threads(kind: Kind, params: &Churn, dir: &Path) -> Result<(Run, Syncs)> {
    let volume = FileStorage::create(dir.join("volume"))?.volume();
    let disk = Arc::new(CountedDisk::new(volume, params.disk));
    let world = open(kind, params, disk.clone())?;
    let file = File::create(dir.join("log"))?;
    let log = Log { file, appended: Mutex::new(0), synced: Mutex::default() };
    let mut meter = Meter::new(kind, params, CpuClock::of_the_wall());
    meter.sample(&world, &disk);
    let shared = Mutex::new(Shared { world, meter, disk, begun: 0 });
    thread::scope(|scope| {
        let run = || work(&shared, &log, params.transactions);
        let all: Vec<_> = (0..params.streams).map(|_| scope.spawn(run)).collect();
        let ended = all.into_iter().map(|one| one.join());
        ended.map(|end| end.map_err(|_| anyhow!("a thread panicked"))).try_for_each(|end| end?)
    })?;
    let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((shared.meter.run, *lock(&log.synced)))
}
