//! The store's own threads: checkpoints, flushing of deferred commits, what can wait (emptying of
//! dropped collections, moving memory to huge pages), syncs of the volume beside those of the log,
//! and writing of new data while its transaction goes on.
//!
//! They hold the store weakly while they wait, but for the last two, which hold its pager.
//! [`Threads::stop`] ends and joins them, so
//! that nothing of the store, its file lock included, is held when its last handle is gone.

use crate::engine::{BackgroundRequests, Inner};
use crate::txn::Pager;
use crate::write::empty_dropped;
use holdall_core::{Error, Lsn};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often free space that nobody needs is given back.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);
/// How often pages are brought home while some lie elsewhere.
const HOME_EVERY: Duration = Duration::from_millis(20);

/// What emptying a dropped collection leaves to others between two transactions.
const DROP_PAUSE: Duration = Duration::from_millis(1);
/// For how long memory must not have grown before it is moved to huge pages, for how long it is
/// moved at once, and the pause before it goes on: others lose a twentieth at most.
const MOVE_AFTER: Duration = Duration::from_millis(200);
const MOVE_FOR: Duration = Duration::from_millis(5);
const MOVE_PAUSE: Duration = Duration::from_millis(100);

type Shared = Arc<(Mutex<BackgroundRequests>, Condvar)>;

/// The threads of an open store.
#[derive(Debug)]
pub(crate) struct Threads {
    shared: Shared,
    pager: Arc<Pager>,
    /// Waits for the others at its end.
    first: Option<JoinHandle<()>>,
}

impl Threads {
    /// Starts them: one here, which starts the others, so that opening a store does not wait
    /// for all. Without them, if the system gives none, the store works: commits meet
    /// full limits and help themselves, the next call flushes deferred commits whose time is over.
    pub(crate) fn start(inner: &Arc<Inner>) -> Self {
        let shared = inner.requests.clone();
        let (weak, requests, pager) = (Arc::downgrade(inner), shared.clone(), inner.pager.clone());
        let defer = inner.options.defer;
        let tell = shared.clone();
        inner.pager.memory().on_full(move || {
            let (requests, wake) = &*tell;
            requests.lock().memory = true;
            wake.notify_all();
        });
        let first = spawn("holdall-checkpoint", move || {
            let (theirs, flush) = (pager.clone(), (weak.clone(), requests.clone()));
            let later = flush.clone();
            let others = [
                spawn("holdall-sync", move || theirs.volume.run_syncs()),
                spawn("holdall-write", move || pager.behind.run(&pager.volume)),
                spawn("holdall-flush", move || flushes(&flush.0, &flush.1, defer)),
                spawn("holdall-later", move || later_work(&later.0, &later.1)),
            ];
            checkpoints(&weak, &requests);
            others.into_iter().flatten().for_each(wait_for);
        });
        Self { shared, pager: inner.pager.clone(), first }
    }

    /// Ends the threads and waits for them.
    pub(crate) fn stop(&mut self) {
        let (requests, wake) = &*self.shared;
        requests.lock().stop = true;
        wake.notify_all();
        self.pager.volume.end_syncs();
        self.pager.behind.end();
        self.first.take().into_iter().for_each(wait_for);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(work).ok()
}

fn wait_for(thread: JoinHandle<()>) {
    // A thread that panicked has nothing more to say.
    let _ = thread.join();
}

fn checkpoints(inner: &Weak<Inner>, shared: &Shared) {
    let (requests, wake) = &**shared;
    let (mut home, mut seen) = (false, Lsn(0));
    // The store may have been closed, or killed, while pages lay elsewhere.
    let mut spare = inner.upgrade().is_some_and(|inner| inner.has_images());
    loop {
        let mut w = requests.lock();
        let (mut idle, mut until) = (false, None);
        while !w.checkpoint && !w.stop && !idle {
            spare |= std::mem::take(&mut w.spare);
            if spare {
                // What others are asked for does not put it off.
                let every = if home { HOME_EVERY } else { GIVE_BACK_EVERY };
                let until = *until.get_or_insert_with(|| Instant::now() + every);
                idle = wake.wait_until(&mut w, until).timed_out();
            } else {
                wake.wait(&mut w);
            }
        }
        if w.stop {
            return;
        }
        let asked = std::mem::take(&mut w.checkpoint);
        drop(w);
        let Some(inner) = inner.upgrade() else { return };
        // Commits ask for one until the one under way is done, which mostly serves them too.
        if !asked {
            // What still lies elsewhere would be given back twice.
            home = inner.bring_home_paced();
            spare = home || inner.give_back_paced() | inner.give_log_back(&mut seen);
            // They rest while an older snapshot reads their places.
            spare |= inner.has_images();
            continue;
        }
        let Some(cause) = inner.wants_checkpoint() else { continue };
        if let Err(e) = inner.checkpoint(cause) {
            // The next commit meets the cause; a full disk or a poisoned store is reported there.
            inner.note_background_error("checkpoint", &e);
        }
        spare = inner.has_spare() || inner.has_large_log() || inner.has_images();
    }
}

/// What can wait, with pauses in which others have their turn.
fn later_work(inner: &Weak<Inner>, shared: &Shared) {
    let (requests, wake) = &**shared;
    let mut pause = MOVE_AFTER;
    loop {
        let mut w = requests.lock();
        while !w.drops && !w.memory && !w.stop {
            wake.wait(&mut w);
        }
        if !w.drops && !w.stop {
            // Not while memory grows: a load has no processor to spare.
            w.memory = false;
            let until = Instant::now() + pause;
            while !w.drops && !w.memory && !w.stop && !wake.wait_until(&mut w, until).timed_out() {}
            pause = if w.memory { MOVE_AFTER } else { pause };
            let goes_on = !w.drops && !w.memory;
            w.memory = true;
            if !goes_on {
                continue;
            }
        }
        if w.stop {
            return;
        }
        let drops = std::mem::take(&mut w.drops);
        w.memory &= drops;
        drop(w);
        let Some(inner) = inner.upgrade() else { return };
        if drops {
            empty(&inner);
        } else if move_memory(&inner) {
            let mut w = requests.lock();
            pause = if w.memory { MOVE_AFTER } else { MOVE_PAUSE };
            w.memory = true;
        } else {
            pause = MOVE_AFTER;
        }
    }
}

/// Empties what was dropped, in transactions.
fn empty(inner: &Arc<Inner>) {
    match empty_dropped(inner) {
        Ok(true) => {
            inner.ask_to_empty();
            std::thread::sleep(DROP_PAUSE);
        }
        Ok(false) => {}
        // It stays in the list. A closed store is opened again some day.
        Err(Error::Invalid(_)) => {}
        Err(e) => inner.note_background_error("emptying what was dropped", &e),
    }
}

/// Returns whether there is more to move.
fn move_memory(inner: &Inner) -> bool {
    let begun = Instant::now();
    while inner.pager.memory().collapse() {
        if begun.elapsed() > MOVE_FOR {
            return true;
        }
    }
    false
}

fn flushes(inner: &Weak<Inner>, shared: &Shared, defer: Duration) {
    let (requests, wake) = &**shared;
    // What was deferred before this thread was there waits for the next call, or for this.
    let Some(opened) = inner.upgrade() else { return };
    opened.deferred.set_flushed_by_thread(true);
    opened.ask_for_flush();
    drop(opened);
    loop {
        let mut w = requests.lock();
        while !w.flush && !w.stop {
            wake.wait(&mut w);
        }
        // Commits gather for as long as they may wait.
        let until = Instant::now() + defer;
        while !w.stop && !wake.wait_until(&mut w, until).timed_out() {}
        if w.stop {
            return;
        }
        w.flush = false;
        drop(w);
        let Some(inner) = inner.upgrade() else { return };
        if let Err(e) = inner.flush_unawaited() {
            inner.note_background_error("flush", &e);
        }
    }
}
