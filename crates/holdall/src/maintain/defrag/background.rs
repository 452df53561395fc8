//! Defragmentation by a thread of its own, as long as a handle on it lives.

use super::{DefragOptions, Moved, Work};
use crate::store::{Store, WeakStore};
use crate::write::MOST_IN_VAIN;
use holdall_core::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two rounds.
const EVERY: Duration = Duration::from_secs(5);
/// Handle pages whose objects one round looks at: some ten thousand objects.
const ROUND_PAGES: u32 = 32;
/// Bytes a second that a round moves unless the options say otherwise.
const RATE: u64 = 16 << 20;

#[derive(Debug, Default)]
struct Shared {
    stop: bool,
    moved: Moved,
}

type Both = Arc<(Mutex<Shared>, Condvar)>;

/// A thread that keeps a store in order; from [`Store::keep_in_order`]. It ends when this is
/// dropped or the store closes.
#[derive(Debug)]
pub struct Defragmenter {
    shared: Both,
    thread: Option<JoinHandle<()>>,
}

impl Defragmenter {
    /// What it has moved so far.
    pub fn moved(&self) -> Moved {
        self.shared.0.lock().moved
    }
}

impl Drop for Defragmenter {
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
    /// Keeps the store in order from now on, by a thread that every few seconds does a part of
    /// what [`Store::defrag`] does if something was written since: at most 16 MiB a second
    /// unless `options` say otherwise. It does not keep the store open.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// let keeper = store.keep_in_order(&holdall::DefragOptions::default())?;
    /// store.write(|tx| tx.put("a", b"some bytes"))?;
    /// println!("{} bytes moved so far", keeper.moved().bytes());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`] if the system gives no thread.
    pub fn keep_in_order(&self, options: &DefragOptions) -> Result<Defragmenter> {
        self.inner.check_writable()?;
        let shared = Both::default();
        let (theirs, store) = (shared.clone(), self.downgrade());
        let options = DefragOptions { rate: options.rate.or(Some(RATE)), ..*options };
        let thread = std::thread::Builder::new()
            .name("holdall-defrag".into())
            .spawn(move || rounds(&store, options, &theirs))
            .map_err(|e| Error::io("starting a thread", e))?;
        Ok(Defragmenter { shared, thread: Some(thread) })
    }
}

fn rounds(store: &WeakStore, options: DefragOptions, shared: &Both) {
    let (mut index, mut groups) = (0, None);
    loop {
        let mut state = shared.0.lock();
        if !state.stop {
            shared.1.wait_for(&mut state, EVERY);
        }
        if state.stop {
            return;
        }
        drop(state);
        let Some(store) = store.upgrade() else { return };
        let now = store.inner.pager.log.groups();
        // Its own moves are groups of the log too: what they leave is looked at once more.
        if groups == Some(now) && index == 0 {
            continue;
        }
        groups = Some(now);
        // What went wrong meets the next commit, or the next round.
        if let Err(e) = round(&store, options, &mut index, shared) {
            store.inner.failures.note("defragmentation", &e);
        }
    }
}

fn round(
    store: &Store,
    options: DefragOptions,
    index: &mut u32,
    shared: &Both,
) -> Result<ControlFlow<()>> {
    let before = shared.0.lock().moved;
    let mut progress = |moved: &Moved| {
        let mut state = shared.0.lock();
        state.moved = before.plus(moved);
        // The last handle closes the store: not while this holds one.
        if state.stop || store.is_last() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let mut work = Work::new(store, options, &mut progress);
    work.most_in_vain = MOST_IN_VAIN;
    if work.empty_heaps()?.is_continue() && options.join {
        return work.join_segments(index, ROUND_PAGES);
    }
    Ok(ControlFlow::Continue(()))
}
