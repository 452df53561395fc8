//! Write-behind: new data of a transaction on its way to its place while the transaction goes on.
//!
//! Owns: [`WriteBehind`], the queue between the one transaction that has the writer's lock and
//! the store's writing thread. What is handed over is new, lies in pages that are free in every
//! durable state, and may be written at any time before the commit; nothing depends on it
//! until [`WriteBehind::finish`] has returned (docs/recovery.md, "One sync").
//!
//! Invariants:
//! - batches are written one after the other, in the order they were handed over: what is
//!   handed over later for the same page ends on top;
//! - after `finish` or `wait` nothing is under way: pages may be given back then, not before.
//!
//! Threads: one transaction at a time hands over; one thread writes, or the transaction itself
//! if there is none, which keeps a simulated store deterministic.

use crate::txn::Volume;
use holdall_core::{PageNo, PageRef, PageRun, Result};
use holdall_io::WriteOut;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;

/// A batch of this many bytes is handed over: with less the calls cost more than they spare,
/// with more the device waits for the first (docs/design.md).
pub(super) const BATCH_BYTES: usize = 128 << 10;
/// Batches waiting; beyond, the transaction writes one itself.
const MOST_WAITING: usize = 64;

/// New bytes of neighbouring pages.
#[derive(Debug)]
pub(super) enum NewBytes {
    /// A sealed page.
    Page(PageRef),
    /// Segment data, whole pages.
    Data(Vec<u8>),
}

impl NewBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Page(page) => page,
            Self::Data(data) => data,
        }
    }
}

/// Pieces by their first page.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pieces: Vec<(u64, NewBytes)>,
    bytes: usize,
}

impl Batch {
    pub(super) fn push(&mut self, first: PageNo, piece: NewBytes) {
        self.bytes += piece.bytes().len();
        self.pieces.push((first.0, piece));
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Writes piece by piece, in order. With `hint` the device is set to work on what went to
    /// the page cache: a sync follows, but not at once.
    fn write(mut self, volume: &Volume, hint: bool) -> Result<()> {
        // Stable: of two pieces for one page the later one stays on top.
        self.pieces.sort_by_key(|(first, _)| *first);
        let size = volume.page_size() as u64;
        let follows =
            |a: &(u64, NewBytes), b: &(u64, NewBytes)| a.0 + a.1.bytes().len() as u64 / size == b.0;
        for run in self.pieces.chunk_by(follows) {
            for (first, piece) in run {
                volume.write_pages(PageNo(*first), piece.bytes())?;
            }
            if hint {
                let bytes: usize = run.iter().map(|(_, piece)| piece.bytes().len()).sum();
                let run = PageRun::new(PageNo(run[0].0), bytes as u64 / size);
                volume.write_out(run, WriteOut::Start)?;
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<Batch>,
    /// A batch is being written.
    busy: bool,
    /// The first failure since the last [`WriteBehind::finish`].
    failed: Option<holdall_core::Error>,
    /// Whether the writing thread is there.
    helper: bool,
    ended: bool,
}

/// The queue of a pager.
#[derive(Debug, Default)]
pub struct WriteBehind {
    state: Mutex<QueueState>,
    wanted: Condvar,
    done: Condvar,
}

impl WriteBehind {
    /// Hands a batch over. Without a writing thread it is written here. Failures are returned by
    /// [`WriteBehind::finish`].
    pub(super) fn send(&self, volume: &Volume, batch: Batch) {
        let mut s = self.state.lock();
        s.waiting.push_back(batch);
        if s.helper && s.waiting.len() <= MOST_WAITING {
            self.wanted.notify_one();
        } else {
            drop(self.drain(volume, s));
        }
    }

    /// Writes what is waiting, then `last`. Nothing is under way afterwards.
    ///
    /// # Errors
    /// The first failure of anything handed over since the last call: nothing of it may be
    /// relied on.
    pub(super) fn finish(&self, volume: &Volume, last: Batch) -> Result<()> {
        let mut s = self.state.lock();
        if !last.is_empty() {
            s.waiting.push_back(last);
        }
        s = self.drain(volume, s);
        s.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until nothing is under way; what was not begun is dropped. For transactions that
    /// end without a commit.
    pub(super) fn abandon(&self) {
        let mut s = self.state.lock();
        s.waiting.clear();
        while s.busy {
            self.done.wait(&mut s);
        }
        s.failed = None;
    }

    /// Writes batch after batch; returns when none waits and none is being written.
    fn drain<'a>(
        &'a self,
        volume: &Volume,
        mut s: MutexGuard<'a, QueueState>,
    ) -> MutexGuard<'a, QueueState> {
        loop {
            if s.busy {
                self.done.wait(&mut s);
            } else if let Some(batch) = s.waiting.pop_front() {
                s = self.write(volume, s, batch, false);
            } else {
                return s;
            }
        }
    }

    fn write<'a>(
        &'a self,
        volume: &Volume,
        mut s: MutexGuard<'a, QueueState>,
        batch: Batch,
        hint: bool,
    ) -> MutexGuard<'a, QueueState> {
        s.busy = true;
        let result = MutexGuard::unlocked(&mut s, || batch.write(volume, hint));
        s.busy = false;
        if let Err(e) = result {
            s.failed.get_or_insert(e);
        }
        self.done.notify_all();
        s
    }

    /// Writes what transactions hand over, on a thread of its own, until [`WriteBehind::end`].
    pub fn run(&self, volume: &Volume) {
        let mut s = self.state.lock();
        s.helper = !s.ended;
        while !s.ended {
            if s.busy {
                // The transaction writes one itself.
                self.done.wait(&mut s);
            } else if let Some(batch) = s.waiting.pop_front() {
                s = self.write(volume, s, batch, true);
            } else {
                self.wanted.wait(&mut s);
            }
        }
        s.helper = false;
    }

    /// Ends [`WriteBehind::run`]. Transactions then write themselves.
    pub fn end(&self) {
        let mut s = self.state.lock();
        s.ended = true;
        s.helper = false;
        self.wanted.notify_all();
        self.done.notify_all();
    }
}

#[cfg(test)]
mod tests;
