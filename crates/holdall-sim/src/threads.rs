//! Real threads beside each other, for meetings in the midst of calls.
//!
//! Owns: one round ([`round`]): writers with names of their own, staged objects, readers, a mover, a
//! checkpointing thread, and the store's own threads, in a small store that is short of space.
//! Nothing here repeats: a seed draws the options and what each thread does, not how they
//! interleave. Every read is held against the history of its name; at the end all contents are
//! compared, verified, and compared again after an opening.

use holdall::{
    Cancel, DefragOptions, Error, Options, PutOptions, Reader, Store, Wait, WriteOptions, WriteTx,
};
use holdall_io::MemoryStorage;
use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Writing threads.
const WRITERS: usize = 3;
/// Names of each.
const NAMES: usize = 3;
/// Commits of each writer in a round.
const COMMITS: usize = 150;

/// What a name has stood for: a hash for each commit that was begun, 0 for nothing.
#[derive(Debug, Default)]
struct History {
    begun: Vec<u64>,
    /// How many of them were there when the last commit was acknowledged.
    acknowledged: usize,
}

struct Shared {
    store: Store,
    histories: Vec<Mutex<History>>,
    /// Objects are but replaced, by others of their size.
    replacing: bool,
    done: AtomicBool,
    failure: Mutex<Option<String>>,
}

fn hash(bytes: Option<&[u8]>) -> u64 {
    let Some(bytes) = bytes else { return 0 };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish() | 1
}

fn name(n: usize) -> String {
    format!("object {n}")
}

impl Shared {
    fn fail(&self, what: String) {
        self.failure.lock().get_or_insert(what);
        self.done.store(true, SeqCst);
    }

    /// Holds a read against the history of its name, of which `from` commits and more may show.
    fn check(&self, n: usize, from: usize, found: Option<&[u8]>) {
        let (found, history) = (hash(found), self.histories[n].lock());
        let may_be = &history.begun[from.saturating_sub(1)..];
        let blank = from == 0 && found == 0;
        if !blank && !may_be.contains(&found) {
            let older = history.begun.iter().rposition(|h| *h == found);
            let text = format!("{}: commit {from} was acknowledged, {older:?} is read", name(n));
            drop(history);
            self.fail(text);
        }
    }
}

/// Options of a store that is short of everything.
fn options(rng: &mut SmallRng, replacing: bool) -> Options {
    let pages: u64 = rng.random_range(if replacing { 500..1200 } else { 700..2500 });
    let short = replacing || rng.random_bool(0.7);
    Options::default()
        .page_size(4096)
        .tuning(|t| {
            t.space_pages([64, 128, 512][rng.random_range(0..3)]).growth_bytes(4096).spare_bytes(0)
        })
        .cache_bytes(if rng.random_bool(0.5) { 64 << 10 } else { 8 << 20 })
        .old_version_bytes(if rng.random_bool(0.5) { 0 } else { 1 << 20 })
        .pinned_bytes(rng.random_bool(0.7).then(|| rng.random_range(0..1_000_000)))
        .tuning(|t| t.log_data_bytes([0, 16 << 10, 128 << 10][rng.random_range(0..3)]))
        .max_bytes(short.then_some(pages * 4096))
        .debug_sums(rng.random_bool(0.5))
}

/// Plays one round; the number of commits.
///
/// # Errors
/// What was wrong first.
pub fn round(seed: u64) -> Result<u64, String> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let replacing = rng.random_bool(0.5);
    let (storage, options) = (Arc::new(MemoryStorage::new()), options(&mut rng, replacing));
    let store = options.create_on(storage.clone()).map_err(|e| format!("creating: {e}"))?;
    let histories = (0..WRITERS * NAMES).map(|_| Mutex::default()).collect();
    let (done, failure) = (AtomicBool::new(false), Mutex::default());
    let shared = Shared { store, histories, replacing, done, failure };
    let seeds = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
    let commits = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| (w, rng.next_u64()))
            .map(|(w, seed)| {
                let shared = &shared;
                scope.spawn(move || writer(shared, w, SmallRng::seed_from_u64(seed)))
            })
            .collect();
        scope.spawn(|| reader(&shared, SmallRng::seed_from_u64(seeds[0])));
        scope.spawn(|| mover(&shared, SmallRng::seed_from_u64(seeds[2])));
        scope.spawn(|| checkpoints(&shared, SmallRng::seed_from_u64(seeds[1])));
        let commits = writers.into_iter().map(|w| w.join().unwrap_or(0)).sum();
        shared.done.store(true, SeqCst);
        commits
    });
    if let Some(what) = shared.failure.lock().take() {
        return Err(what);
    }
    at_the_end(&shared, &shared.store)?;
    shared.store.clone().close().map_err(|e| format!("closing: {e}"))?;
    let again = options.open_on(storage).map_err(|e| format!("opening again: {e}"))?;
    at_the_end(&shared, &again)?;
    Ok(commits)
}

/// All names have what their last commits gave them, and the store is sound.
fn at_the_end(shared: &Shared, store: &Store) -> Result<(), String> {
    let reader = store.read_newest().map_err(|e| format!("reading at the end: {e}"))?;
    for n in 0..shared.histories.len() {
        let found = reader.get(name(n)).map_err(|e| format!("{} at the end: {e}", name(n)))?;
        let acknowledged = shared.histories[n].lock().acknowledged;
        shared.check(n, acknowledged, found.as_deref());
    }
    let report = store.verify().map_err(|e| format!("verifying: {e}"))?;
    if let Some(problem) = report.problems.first() {
        return Err(format!("verification: {problem}"));
    }
    shared.failure.lock().take().map_or(Ok(()), Err)
}

fn writer(shared: &Shared, number: usize, mut rng: SmallRng) -> u64 {
    let mut commits = 0;
    let mut bytes: Vec<Option<Vec<u8>>> = vec![None; NAMES];
    for _ in 0..COMMITS {
        let mine = rng.random_range(0..NAMES);
        let n = number * NAMES + mine;
        let old = bytes[mine].take();
        if shared.done.load(SeqCst) {
            break;
        }
        let (new, change) = match shared.replacing {
            true => (Some(fresh(&mut rng, 4096 * (33 + 11 * mine))), Change::Put),
            false => draw(&mut rng, old.as_deref()),
        };
        shared.histories[n].lock().begun.push(hash(new.as_deref()));
        match change.commit(&shared.store, n, new.as_deref(), &mut rng) {
            Ok(()) => {
                let mut history = shared.histories[n].lock();
                history.acknowledged = history.begun.len();
                (bytes[mine], commits) = (new, commits + 1);
            }
            Err(Error::Busy(by)) if by.is_own => {
                shared.fail(format!("{}: {by}", name(n)));
                break;
            }
            Err(Error::Full(_) | Error::Busy(_) | Error::Cancelled) => {
                // It did not happen: what was before is the newest still.
                let mut history = shared.histories[n].lock();
                history.begun.push(hash(old.as_deref()));
                history.acknowledged = history.begun.len();
                bytes[mine] = old;
            }
            Err(e) => {
                shared.fail(format!("{}: {e}", name(n)));
                break;
            }
        }
    }
    commits
}

/// How the bytes of a name change.
enum Change {
    Put,
    /// Staged, with pauses.
    Stage,
    /// These bytes give way to some in the new ones.
    Splice(std::ops::Range<usize>, std::ops::Range<usize>),
    Remove,
}

fn fresh(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn draw(rng: &mut SmallRng, old: Option<&[u8]>) -> (Option<Vec<u8>>, Change) {
    let kind = rng.random_range(0..20);
    match (kind, old) {
        (0, Some(_)) => (None, Change::Remove),
        (1..8, Some(old)) if !old.is_empty() => {
            let at = rng.random_range(0..old.len());
            let end = (at + rng.random_range(0..20_000)).min(old.len());
            let n = rng.random_range(1..20_000);
            let part = fresh(rng, n);
            let mut new = old.to_vec();
            let to = at..at + part.len();
            new.splice(at..end, part);
            (Some(new), Change::Splice(at..end, to))
        }
        // Mostly one of few sizes, so that what is freed fits what comes.
        (8..16, _) => {
            let len = 4096 * [20, 33, 66][rng.random_range(0..3)];
            (Some(fresh(rng, len)), Change::Put)
        }
        _ => {
            let len = rng.random_range(1..1_200_000);
            (Some(fresh(rng, len)), Change::Stage)
        }
    }
}

impl Change {
    fn commit(
        self,
        store: &Store,
        n: usize,
        new: Option<&[u8]>,
        rng: &mut SmallRng,
    ) -> Result<(), Error> {
        let (name, new) = (name(n), new.unwrap_or_default());
        match self {
            Self::Put => waited(store, rng, |tx| tx.put(&name, new).map(drop)),
            Self::Stage => {
                let mut staged = store.stage(&name, PutOptions::default())?;
                for part in new.chunks(200_000) {
                    staged.push(part)?;
                    std::thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
                }
                waited(store, rng, |tx| staged.finish(tx).map(drop))
            }
            Self::Splice(old, part) => waited(store, rng, |tx| {
                let old = old.start as u64..old.end as u64;
                tx.splice(&name, old, &new[part]).map(drop)
            }),
            Self::Remove => waited(store, rng, |tx| tx.remove(&name).map(drop)),
        }
    }
}

/// A transaction that waits for the others for ever, for a while, or not at all, or until another
/// thread ends its wait.
fn waited(
    store: &Store,
    rng: &mut SmallRng,
    work: impl FnOnce(&mut WriteTx) -> Result<(), Error>,
) -> Result<(), Error> {
    let short = Duration::from_micros(rng.random_range(0..3000));
    let mut options = WriteOptions::default();
    match rng.random_range(0..16) {
        0 => options.wait = Wait::Not,
        1 | 2 => options.wait = Wait::For(short),
        3 => {
            let cancel = Cancel::new();
            options.cancel = Some(cancel.clone());
            std::thread::spawn(move || {
                std::thread::sleep(short);
                cancel.cancel();
            });
        }
        4 => {
            let begun = Instant::now();
            options.cancel = Some(Cancel::when(move || begun.elapsed() > short));
        }
        _ => return store.write(work),
    }
    store.write_with(&options, work)
}

fn reader(shared: &Shared, mut rng: SmallRng) {
    while !shared.done.load(SeqCst) {
        let acknowledged = |n: usize| shared.histories[n].lock().acknowledged;
        let from: Vec<usize> = (0..shared.histories.len()).map(acknowledged).collect();
        let read = |rng: &mut SmallRng, reader: &Reader| {
            for _ in 0..rng.random_range(1..4) {
                let n = rng.random_range(0..from.len());
                let found = reader.get(name(n))?;
                shared.check(n, from[n], found.as_deref());
                std::thread::sleep(Duration::from_micros(rng.random_range(0..2000)));
            }
            Ok(())
        };
        match shared.store.read().and_then(|reader| read(&mut rng, &reader)) {
            Ok(()) | Err(Error::SnapshotTooOld { .. }) => {}
            Err(e) => shared.fail(format!("reading: {e}")),
        }
    }
}

fn mover(shared: &Shared, mut rng: SmallRng) {
    while !shared.done.load(SeqCst) {
        let mut progress = |_: &holdall::Moved| {
            // What was copied waits for its exchange.
            std::thread::sleep(Duration::from_micros(rng.random_range(0..8000)));
            match shared.done.load(SeqCst) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        if let Err(e) = shared.store.defrag(&DefragOptions::default(), &mut progress) {
            shared.fail(format!("defragmentation: {e}"));
        }
    }
}

fn checkpoints(shared: &Shared, mut rng: SmallRng) {
    while !shared.done.load(SeqCst) {
        std::thread::sleep(Duration::from_micros(rng.random_range(0..5000)));
        let result = match rng.random_range(0..8) {
            0 => match shared.store.verify() {
                Ok(report) => match report.problems.first() {
                    Some(problem) => Err(Error::Other(problem.to_string().into())),
                    None => Ok(()),
                },
                Err(Error::SnapshotTooOld { .. }) => Ok(()),
                Err(e) => Err(e),
            },
            _ => shared.store.checkpoint(),
        };
        if let Err(e) = result {
            shared.fail(format!("maintenance: {e}"));
        }
    }
}
