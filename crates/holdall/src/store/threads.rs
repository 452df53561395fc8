//! The store's own threads: checkpoints, flushing of deferred commits, syncs of the volume
//! beside those of the log, and writing of new data while its transaction goes on.
//!
//! They hold the store weakly while they wait, but for the last two, which hold its pager.
//! [`Threads::stop`] ends and joins them, so
//! that nothing of the store, its file lock included, is held when its last handle is gone.

use super::inner::{Inner, Wishes};
use crate::pager::Pager;
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Shared = Arc<(Mutex<Wishes>, Condvar)>;

/// The threads of an open store.
#[derive(Debug)]
pub(super) struct Threads {
    shared: Shared,
    pager: Arc<Pager>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts them. Without them, where the system gives none, the store works: commits meet
    /// full limits and help themselves, deferred commits wait for the next durable one.
    pub(super) fn start(inner: &Arc<Inner>) -> Self {
        let shared = inner.wishes.clone();
        let defer = inner.options.defer;
        let spawn = |name: &str, work: fn(&Weak<Inner>, &Shared, Duration)| {
            let (weak, shared) = (Arc::downgrade(inner), shared.clone());
            let builder = std::thread::Builder::new().name(name.into());
            builder.spawn(move || work(&weak, &shared, defer)).ok()
        };
        let handles = [spawn("holdall-checkpoint", checkpoints), spawn("holdall-flush", flushes)];
        let serve = |name: &str, work: fn(&Pager)| {
            let pager = inner.pager.clone();
            let builder = std::thread::Builder::new().name(name.into());
            builder.spawn(move || work(&pager)).ok()
        };
        let syncs = serve("holdall-sync", |pager| pager.volume.run_syncs());
        let writes = serve("holdall-write", |pager| pager.behind.run(&pager.volume));
        let handles = handles.into_iter().chain([syncs, writes]).flatten().collect();
        Self { shared, pager: inner.pager.clone(), handles }
    }

    /// Ends the threads and waits for them.
    pub(super) fn stop(&mut self) {
        let (wishes, wake) = &*self.shared;
        wishes.lock().stop = true;
        wake.notify_all();
        self.pager.volume.end_syncs();
        self.pager.behind.end();
        for handle in self.handles.drain(..) {
            // A thread that panicked has nothing more to say.
            let _ = handle.join();
        }
    }
}

fn checkpoints(inner: &Weak<Inner>, shared: &Shared, _defer: Duration) {
    let (wishes, wake) = &**shared;
    loop {
        let mut w = wishes.lock();
        while !w.checkpoint && !w.stop {
            wake.wait(&mut w);
        }
        if w.stop {
            return;
        }
        w.checkpoint = false;
        drop(w);
        let Some(inner) = inner.upgrade() else { return };
        // Commits ask for one until the one under way is done, which mostly serves them too.
        if !inner.wants_checkpoint() {
            continue;
        }
        if let Err(e) = inner.checkpoint() {
            // The next commit meets the cause; a full disk or a poisoned store is told there.
            inner.note_background_error(&e);
        }
    }
}

fn flushes(inner: &Weak<Inner>, shared: &Shared, defer: Duration) {
    let (wishes, wake) = &**shared;
    loop {
        let mut w = wishes.lock();
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
        if let Err(e) = inner.pager.flush() {
            inner.note_background_error(&e);
        }
    }
}
