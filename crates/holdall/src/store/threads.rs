//! The store's own threads: checkpoints and flushing of deferred commits.
//!
//! They hold the store weakly: it closes with its last handle, and they end with it.

use super::inner::{Inner, Wishes};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Starts the thread that serves checkpoints and deferred flushes.
pub(super) fn start(inner: &Arc<Inner>) {
    let (weak, wishes) = (Arc::downgrade(inner), inner.wishes.clone());
    let defer = inner.options.defer;
    let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
        // Without the thread the store works: commits then meet full limits and help
        // themselves, and deferred commits wait for the next durable one.
        let _ = std::thread::Builder::new().name(name.into()).spawn(work);
    };
    let (w, a) = (weak.clone(), wishes.clone());
    spawn("holdall-checkpoint", Box::new(move || checkpoints(&w, &a)));
    spawn("holdall-flush", Box::new(move || flushes(&weak, &wishes, defer)));
}

type Shared = Arc<(Mutex<Wishes>, Condvar)>;

fn checkpoints(inner: &Weak<Inner>, shared: &Shared) {
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
        if w.stop {
            return;
        }
        drop(w);
        // Commits gather for as long as they may wait.
        std::thread::sleep(defer);
        wishes.lock().flush = false;
        let Some(inner) = inner.upgrade() else { return };
        if let Err(e) = inner.pager.flush() {
            inner.note_background_error(&e);
        }
    }
}
