//! Reading all of a store now and then, so that damage is found before it is met.
//!
//! Owns: [`Scrubber`], a thread. A pass first walks the structure of one snapshot, which has all
//! pages and with them all small objects. Then it reads large objects, a snapshot for each: what
//! writers replace meanwhile is kept from being used again no longer than a pass of the first takes.

use super::verify::{Problem, VerifyOptions};
use crate::metrics::Event;
use crate::object::Layout;
use crate::store::{Store, WeakStore};
use holdall_core::{Error, Oid, Result};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often all of a store is read, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Time from the beginning of a pass to that of the next. Default: 30 days.
    pub period: Duration,
    /// Bytes a second that it reads at most; a pass may take longer than the period then.
    /// Default: 16 MiB.
    pub rate: u64,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        Self { period: Duration::from_secs(30 * 24 * 3600), rate: 16 << 20 }
    }
}

/// Bytes of an object read at a time.
const PIECE: usize = 1 << 20;
/// Seconds after which a slow pace looks again whether to end.
const MOST_PAUSE: Duration = Duration::from_millis(500);
/// Before a pass that failed is begun again, if that is less than the period.
const AGAIN: Duration = Duration::from_secs(60);
/// Problems that are kept; the others are counted.
const MOST_KEPT: usize = 1000;

/// What one pass has found: the first problems, and how many more.
#[derive(Debug, Default)]
struct Found {
    problems: Vec<Problem>,
    more: u64,
}

#[derive(Debug, Default)]
struct Shared {
    stop: bool,
    /// By the last pass that came to its end; known until the next does, too.
    last: Found,
    /// By the one under way.
    now: Found,
}

impl Shared {
    fn found(&mut self, problem: Problem) {
        if self.now.problems.len() < MOST_KEPT {
            self.now.problems.push(problem);
        } else {
            self.now.more += 1;
        }
    }

    /// What only the last pass has found so far; what is at one place is one problem.
    fn older(&self) -> impl Iterator<Item = &Problem> {
        let again = |old: &Problem| self.now.problems.iter().any(|new| new.place == old.place);
        self.last.problems.iter().filter(move |old| !again(old))
    }

    fn problems(&self) -> Vec<Problem> {
        self.older().chain(&self.now.problems).cloned().collect()
    }

    fn count(&self) -> u64 {
        (self.older().count() + self.now.problems.len()) as u64 + self.last.more.max(self.now.more)
    }
}

type Both = Arc<(Mutex<Shared>, Condvar)>;

/// A thread that reads all of a store now and then; from [`Store::scrub`]. It ends when this is
/// dropped or the store closes.
#[derive(Debug)]
pub struct Scrubber {
    shared: Both,
    thread: Option<JoinHandle<()>>,
}

impl Scrubber {
    /// What is damaged: what the last pass and the one under way have found, the first 1,000 of
    /// each. What was mended is left out once a pass that no longer found it came to its end.
    pub fn problems(&self) -> Vec<Problem> {
        self.shared.0.lock().problems()
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        self.shared.0.lock().stop = true;
        self.shared.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

impl Store {
    /// Reads all of the store once in a while from now on, by a thread, and holds it against its
    /// checksums. What is damaged is reported by [`Scrubber::problems`], by
    /// [`Metrics::damage`](crate::Metrics::damage) and as events of the feature `tracing`. It does not
    /// keep the store open. Cost: a pass reads every page in use once, a page of a record of a large
    /// object twice, at the rate given.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// let scrubber = store.scrub(&holdall::ScrubOptions::default())?;
    /// assert!(scrubber.problems().is_empty());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Invalid`] for a rate of 0; [`Error::Io`] if the system gives no
    /// thread.
    pub fn scrub(&self, options: &ScrubOptions) -> Result<Scrubber> {
        self.inner.check_writable()?;
        if options.rate == 0 {
            return Err(Error::Invalid("a scrub at 0 bytes a second reads nothing".into()));
        }
        let shared = Both::default();
        let (theirs, store, options) = (shared.clone(), self.downgrade(), *options);
        let thread = std::thread::Builder::new()
            .name("holdall-scrub".into())
            .spawn(move || passes(&store, options, &theirs))
            .map_err(|e| Error::io("starting a thread", e))?;
        Ok(Scrubber { shared, thread: Some(thread) })
    }
}

fn passes(store: &WeakStore, options: ScrubOptions, shared: &Both) {
    loop {
        let begun = Instant::now();
        let Some(open) = store.upgrade() else { return };
        let mut pass = Pass { store: &open, shared, rate: options.rate, begun, bytes: 0 };
        let pause = match pass.run() {
            Ok(ControlFlow::Break(())) => return,
            Ok(ControlFlow::Continue(())) => options.period,
            Err(e) => {
                open.inner.failures.note("scrub", &e);
                options.period.min(AGAIN)
            }
        };
        drop(open);
        let until = begun.checked_add(pause);
        let mut state = shared.0.lock();
        while !state.stop && until.is_none_or(|until| Instant::now() < until) {
            let left = until.map_or(AGAIN, |until| until.saturating_duration_since(Instant::now()));
            shared.1.wait_for(&mut state, left.min(AGAIN));
        }
        if state.stop {
            return;
        }
    }
}

/// One pass over the store.
struct Pass<'a> {
    store: &'a Store,
    shared: &'a Both,
    rate: u64,
    begun: Instant,
    bytes: u64,
}

impl Pass<'_> {
    fn run(&mut self) -> Result<ControlFlow<()>> {
        self.shared.0.lock().now = Found::default();
        let options = VerifyOptions { data: false };
        let (store, mut told) = (self.store, 0);
        let walked = store.verify_once(&options, &mut |progress| {
            let more = progress.done.saturating_sub(told);
            told = progress.done.max(told);
            self.read(more)
        });
        let walked = match walked {
            Err(Error::Cancelled) => return Ok(ControlFlow::Break(())),
            walked => walked?,
        };
        walked.report.problems.into_iter().for_each(|problem| self.found(problem));
        let flow = self.large(&walked.large)?;
        if flow.is_continue() {
            let mut state = self.shared.0.lock();
            state.last = std::mem::take(&mut state.now);
            store.inner.scrubbed.passed(state.count());
        }
        Ok(flow)
    }

    /// Reads the large objects of these handle pages.
    fn large(&mut self, pages: &BTreeSet<u32>) -> Result<ControlFlow<()>> {
        for page in pages {
            // What damage keeps from being found stands in the report of the structure.
            let Ok(Some(all)) = super::handles(self.store, *page) else { continue };
            for oid in all {
                match self.object(oid) {
                    Err(Error::Corrupt { place, detail }) => {
                        let place = format!("object {oid}: {place}");
                        self.found(Problem { place, detail });
                    }
                    // It is gone, or was replaced while it was read: the next pass has it.
                    Err(Error::NotFound(_) | Error::Dangling(_) | Error::SnapshotTooOld { .. }) => {
                    }
                    flow => {
                        if flow?.is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn object(&mut self, oid: Oid) -> Result<ControlFlow<()>> {
        let reader = self.store.read_newest()?;
        let data = reader.metadata(oid)?;
        if matches!(data.layout, Layout::Small) {
            return Ok(ControlFlow::Continue(()));
        }
        let object = reader.open(oid)?;
        let (mut piece, mut at) = (vec![0; PIECE], 0);
        while at < object.size() {
            // A hole has nothing to be read.
            match object.hole(at..object.size())? {
                Some(hole) if hole.start == at => at = hole.end,
                next => {
                    let most = next.map_or(object.size(), |hole| hole.start) - at;
                    let most = usize::try_from(most).unwrap_or(PIECE).min(PIECE);
                    let n = object.read_at(at, &mut piece[..most])? as u64;
                    at += n.max(1);
                    if self.read(n).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn found(&self, problem: Problem) {
        Event::Damage { place: &problem.place, why: &problem.detail }.tell();
        let mut state = self.shared.0.lock();
        state.found(problem);
        self.store.inner.scrubbed.found(state.count());
    }

    /// After a read: keeps the pace, and says whether to go on.
    fn read(&mut self, bytes: u64) -> ControlFlow<()> {
        self.store.inner.scrubbed.read(bytes);
        self.bytes += bytes;
        let due =
            self.begun.checked_add(Duration::from_secs_f64(self.bytes as f64 / self.rate as f64));
        let mut state = self.shared.0.lock();
        loop {
            // The last handle closes the store: not while this holds one.
            if state.stop || self.store.is_last() {
                return ControlFlow::Break(());
            }
            let early = due.map_or(MOST_PAUSE, |due| due.saturating_duration_since(Instant::now()));
            if early.is_zero() {
                return ControlFlow::Continue(());
            }
            self.shared.1.wait_for(&mut state, early.min(MOST_PAUSE));
        }
    }
}
