//! Open snapshots, and what they still need.
//!
//! Owns: the registry of snapshots. The horizon (rule 17) is looked at when something is
//! dropped or reused, never at commit.
//!
//! Threads: registering publishes a slot, then reads the visible LSN again until it has not
//! moved (rule 18), so that a later computation of the horizon sees the slot.

use super::threads::thread_number;
use super::times::Times;
use crate::metrics::Event;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, Lsn, Result};
use holdall_io::forks;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

const SLOTS: usize = 128;
const FREE: u64 = u64::MAX;

/// Whether a snapshot was given up, and its age at that moment.
#[derive(Debug, Default)]
struct Killed(AtomicU64);

impl Killed {
    fn set(&self, age: Duration) {
        let micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        self.0.store(micros.saturating_add(1), SeqCst);
    }

    /// Written only if it changes: a store to a shared line costs every processor a miss.
    fn clear(&self) {
        if self.is_set() {
            self.0.store(0, SeqCst);
        }
    }

    #[inline]
    fn is_set(&self) -> bool {
        self.0.load(SeqCst) != 0
    }

    #[inline]
    fn check(&self) -> Result<()> {
        match self.0.load(SeqCst) {
            0 => Ok(()),
            _ if mutation::is(Mutation::R20Killed) => Ok(()),
            micros => Err(Error::SnapshotTooOld { age: Duration::from_micros(micros - 1) }),
        }
    }
}

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    lsn: AtomicU64,
    killed: Killed,
    /// Number of the thread that opened it.
    thread: AtomicUsize,
}

/// One beyond the slots.
#[derive(Debug)]
struct Further {
    lsn: Lsn,
    killed: Arc<Killed>,
    thread: usize,
}

/// An open snapshot, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenSnapshot {
    /// What it sees.
    pub lsn: Lsn,
    /// The number of the thread that opened it.
    pub thread: usize,
}

/// Which page versions may still be read.
///
/// `upto` is the newest installed commit, read before the points. A state that becomes
/// visible later is one of the points or the end of a group that holds `upto`; so a version
/// replaced at or below `upto` is needed only by the points, however old this value is when
/// it is used.
#[derive(Debug, Clone)]
pub struct Needed {
    points: Vec<Lsn>,
    upto: Lsn,
}

impl Needed {
    /// Whether a version of `lsn` that was replaced at `until` must be kept.
    pub fn keeps(&self, lsn: Lsn, until: Lsn) -> bool {
        let forgets = mutation::is(Mutation::R20Keep);
        until > self.upto || !forgets && self.points.iter().any(|p| lsn <= *p && *p < until)
    }
}

/// The registry of open snapshots.
#[derive(Debug)]
pub struct Horizon {
    slots: Box<[Slot]>,
    /// Snapshots beyond the slots, by number.
    overflow: Mutex<BTreeMap<u64, Further>>,
    next: AtomicU64,
    /// The newest durable commit: where new snapshots open.
    visible: AtomicU64,
    /// The newest installed commit, durable or not.
    newest: AtomicU64,
    /// A running checkpoint's LSN, or [`FREE`].
    checkpoint: AtomicU64,
    /// When commits were made.
    times: Mutex<Times>,
    given_up: AtomicU64,
    /// As [`forks`] was when the store was opened.
    forks: u32,
}

#[derive(Debug)]
enum SlotKind {
    Slot(usize),
    Overflow(u64, Arc<Killed>),
}

/// A registered snapshot: nothing it can see is dropped or reused until it is closed.
#[derive(Debug)]
pub(crate) struct Registration {
    place: SlotKind,
    /// What the snapshot sees: every commit at or below.
    pub(crate) lsn: Lsn,
}

impl Horizon {
    /// No snapshots; everything up to `visible` is durable.
    pub fn new(visible: Lsn) -> Self {
        let slot = |_| Slot {
            lsn: AtomicU64::new(FREE),
            killed: Killed::default(),
            thread: AtomicUsize::new(0),
        };
        Self {
            slots: (0..SLOTS).map(slot).collect(),
            overflow: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
            visible: AtomicU64::new(visible.0),
            newest: AtomicU64::new(visible.0),
            checkpoint: AtomicU64::new(FREE),
            times: Mutex::default(),
            given_up: AtomicU64::new(0),
            forks: forks(),
        }
    }

    /// Refuses what the child of a fork would read: its parent's pages may be others by now, and
    /// locks may be held by threads that only the parent has.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub(crate) fn check_fork(&self) -> Result<()> {
        if forks() == self.forks { Ok(()) } else { Err(Error::Forked) }
    }

    /// Opens a snapshot of the newest durable state. The caller closes it.
    pub(crate) fn open(&self) -> Registration {
        let newest = mutation::is(Mutation::R11Deferred);
        self.register(if newest { &self.newest } else { &self.visible })
    }

    /// Opens a snapshot of the newest installed state, which a crash may still lose.
    pub(crate) fn open_newest(&self) -> Registration {
        self.register(&self.newest)
    }

    fn register(&self, source: &AtomicU64) -> Registration {
        let thread = thread_number();
        let first = thread * 5;
        for i in (0..SLOTS).map(|i| (first + i) % SLOTS) {
            let slot = &self.slots[i];
            let mut lsn = source.load(SeqCst);
            if slot.lsn.load(SeqCst) != FREE
                || slot.lsn.compare_exchange(FREE, lsn, SeqCst, SeqCst).is_err()
            {
                continue;
            }
            // A kill of the former owner may have come after it was gone.
            slot.killed.clear();
            slot.thread.store(thread, Relaxed);
            loop {
                let again = source.load(SeqCst);
                if again == lsn || mutation::is(Mutation::R18Register) {
                    break;
                }
                lsn = again;
                slot.lsn.store(lsn, SeqCst);
            }
            return Registration { place: SlotKind::Slot(i), lsn: Lsn(lsn) };
        }
        let mut overflow = self.overflow.lock();
        let (n, killed) = (self.next.fetch_add(1, SeqCst), Arc::new(Killed::default()));
        // The points are computed under this mutex too, so one read is enough.
        let lsn = Lsn(source.load(SeqCst));
        overflow.insert(n, Further { lsn, killed: killed.clone(), thread });
        drop(overflow);
        Registration { place: SlotKind::Overflow(n, killed), lsn }
    }

    /// # Errors
    /// [`Error::SnapshotTooOld`] once the snapshot was given up; those of
    /// [`Horizon::check_fork`].
    #[inline]
    pub(crate) fn check(&self, snapshot: &Registration) -> Result<()> {
        self.check_fork()?;
        match &snapshot.place {
            SlotKind::Slot(i) => self.slots.get(*i).map_or(Ok(()), |s| s.killed.check()),
            SlotKind::Overflow(_, killed) => killed.check(),
        }
    }

    /// Closes a snapshot, once.
    pub(crate) fn close(&self, snapshot: &Registration) {
        if self.check_fork().is_err() {
            // The child's registry is of no account, and its lock may be held for ever.
            return;
        }
        match &snapshot.place {
            SlotKind::Slot(i) => {
                if let Some(slot) = self.slots.get(*i) {
                    slot.killed.clear();
                    // Who finds the slot free knows that its reads are done. Who still finds it
                    // taken keeps too much, for a moment.
                    slot.lsn.store(FREE, Release);
                }
            }
            SlotKind::Overflow(n, _) => {
                self.overflow.lock().remove(n);
            }
        }
    }

    /// The newest durable commit.
    pub fn visible(&self) -> Lsn {
        Lsn(self.visible.load(SeqCst))
    }

    /// The newest installed commit.
    pub fn newest(&self) -> Lsn {
        Lsn(self.newest.load(SeqCst))
    }

    /// Everything up to `lsn` is durable.
    pub fn set_visible(&self, lsn: Lsn) {
        self.visible.fetch_max(lsn.0, SeqCst);
        self.newest.fetch_max(lsn.0, SeqCst);
    }

    /// Everything up to `lsn` is installed.
    pub fn set_newest(&self, lsn: Lsn) {
        self.newest.fetch_max(lsn.0, SeqCst);
    }

    /// A checkpoint at `lsn` runs, or none does.
    pub fn set_checkpoint(&self, lsn: Option<Lsn>) {
        self.checkpoint.store(lsn.map_or(FREE, |l| l.0), SeqCst);
    }

    /// Those that were not given up.
    fn snapshots(&self) -> impl Iterator<Item = Lsn> {
        self.open_snapshots().into_iter().map(|open| open.lsn)
    }

    /// The open snapshots that were not given up. Cost: a look at 128 slots.
    pub fn open_snapshots(&self) -> Vec<OpenSnapshot> {
        let live = self.slots.iter().filter(|s| s.lsn.load(SeqCst) != FREE && !s.killed.is_set());
        let mut all: Vec<OpenSnapshot> = live
            .map(|s| OpenSnapshot { lsn: Lsn(s.lsn.load(SeqCst)), thread: s.thread.load(Relaxed) })
            .filter(|open| open.lsn.0 != FREE)
            .collect();
        let overflow = self.overflow.lock();
        let further = overflow.values().filter(|f| !f.killed.is_set());
        all.extend(further.map(|f| OpenSnapshot { lsn: f.lsn, thread: f.thread }));
        all
    }

    /// What page versions are needed for. `visible_points` gives the log's durable LSN and
    /// the end of the group in flight. The order of reading matters: see `Needed`.
    pub fn needed(&self, visible_points: impl FnOnce() -> [Lsn; 2]) -> Needed {
        let upto = self.newest();
        let mut points = visible_points().to_vec();
        points.extend(self.points());
        points.sort_unstable();
        points.dedup();
        Needed { points, upto }
    }

    /// As [`Horizon::needed`], for a running checkpoint and for snapshots opened from now on
    /// alone.
    pub fn needed_by_new(&self, visible_points: impl FnOnce() -> [Lsn; 2]) -> Needed {
        let upto = self.newest();
        let mut points = visible_points().to_vec();
        points.push(self.visible());
        points.extend(self.checkpoint_point());
        Needed { points, upto }
    }

    /// The state that a running checkpoint writes.
    fn checkpoint_point(&self) -> Option<Lsn> {
        let checkpoint = self.checkpoint.load(SeqCst);
        (checkpoint != FREE).then_some(Lsn(checkpoint))
    }

    fn points(&self) -> Vec<Lsn> {
        // Visible first: who registers after the look at the slots then reads at least this.
        let newest = mutation::is(Mutation::R17Visible);
        let visible = if newest { self.newest() } else { self.visible() };
        let mut points: Vec<Lsn> = self.snapshots().collect();
        points.push(visible);
        if !mutation::is(Mutation::R17Checkpoint) {
            points.extend(self.checkpoint_point());
        }
        points
    }

    /// Oldest state that anyone may still read: space freed at or before it may be reused.
    pub fn oldest(&self) -> Lsn {
        self.points().into_iter().min().unwrap_or_default()
    }

    /// As [`Horizon::oldest`], but for the snapshots that are open.
    pub fn oldest_new(&self) -> Lsn {
        let visible = self.visible();
        self.checkpoint_point().map_or(visible, |at| at.min(visible))
    }

    /// The oldest open snapshot, if any.
    pub fn oldest_snapshot(&self) -> Option<Lsn> {
        self.snapshots().min()
    }

    /// Notes that everything up to `lsn` is installed at `now`.
    pub fn note_time(&self, lsn: Lsn, now: Duration) {
        self.times.lock().note(lsn, now);
    }

    /// How long before `now` the state was replaced that a snapshot at `lsn` sees.
    pub fn age(&self, lsn: Lsn, now: Duration) -> Duration {
        let mut times = self.times.lock();
        times.note(self.newest(), now);
        times.since_replaced(lsn)
    }

    /// Gives up all snapshots at the oldest LSN: their reads fail from now on.
    pub fn give_up_oldest(&self) {
        if let Some(oldest) = self.oldest_snapshot() {
            self.give_up(oldest);
        }
    }

    /// Snapshots that were given up.
    pub fn given_up(&self) -> u64 {
        self.given_up.load(Relaxed)
    }

    /// Gives up all snapshots at `lsn`.
    pub fn give_up(&self, lsn: Lsn) {
        let age = self.times.lock().since_replaced(lsn);
        let open = self.snapshots().filter(|open| *open == lsn).count();
        self.given_up.fetch_add(open as u64, Relaxed);
        if open > 0 {
            Event::Expiry { snapshots: open as u64, age }.tell();
        }
        for slot in &self.slots {
            if slot.lsn.load(SeqCst) == lsn.0 {
                slot.killed.set(age);
            }
        }
        for further in self.overflow.lock().values().filter(|f| f.lsn == lsn) {
            further.killed.set(age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_snapshot_holds_the_horizon_and_can_be_killed() {
        let h = Horizon::new(Lsn(10));
        let old = h.open();
        h.set_visible(Lsn(20));
        let many: Vec<_> = (0..300).map(|_| h.open()).collect();
        assert_eq!(h.oldest(), Lsn(10));
        let needed = h.needed(|| [Lsn(20), Lsn(24)]);
        assert_eq!(needed.points, [Lsn(10), Lsn(20), Lsn(24)]);
        assert!(needed.keeps(Lsn(10), Lsn(15)) && needed.keeps(Lsn(11), Lsn(30)));
        assert!(!needed.keeps(Lsn(11), Lsn(15)), "nobody reads at 11..15");
        for (lsn, second) in [(10, 1), (15, 2), (20, 5)] {
            h.note_time(Lsn(lsn), Duration::from_secs(second));
        }
        h.give_up_oldest();
        let three = Duration::from_secs(3);
        assert!(matches!(h.check(&old), Err(Error::SnapshotTooOld { age }) if age == three));
        assert!(many.iter().all(|s| h.check(s).is_ok()));
        assert_eq!(h.oldest(), Lsn(20));
        h.close(&old);
        let again = h.open();
        assert!(h.check(&again).is_ok(), "a reused slot is not killed");
        h.give_up_oldest();
        assert!(many.iter().all(|s| h.check(s).is_err()), "overflow too");
    }
}
