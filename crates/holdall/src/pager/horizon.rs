//! Open snapshots, and what they still need.
//!
//! Owns: the registry of snapshots. The horizon (rule 17) is looked at when something is
//! dropped or reused, never at commit.
//!
//! Threads: registering publishes a slot, then reads the visible LSN again until it has not
//! moved (rule 18), so that whoever computes the horizon afterwards sees the slot.

use holdall_core::{Error, Lsn, Result};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Release, Ordering::SeqCst};

const SLOTS: usize = 128;
const FREE: u64 = u64::MAX;

#[derive(Debug)]
#[repr(align(64))]
struct Slot {
    lsn: AtomicU64,
    killed: AtomicBool,
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
        until > self.upto || self.points.iter().any(|p| lsn <= *p && *p < until)
    }
}

/// The registry of open snapshots.
#[derive(Debug)]
pub struct Horizon {
    slots: Box<[Slot]>,
    /// Snapshots beyond the slots: LSN by number, and whether killed.
    overflow: Mutex<BTreeMap<u64, (Lsn, Arc<AtomicBool>)>>,
    next: AtomicU64,
    /// The newest durable commit: where new snapshots open.
    visible: AtomicU64,
    /// The newest installed commit, durable or not.
    newest: AtomicU64,
    /// A running checkpoint's LSN, or [`FREE`].
    checkpoint: AtomicU64,
}

#[derive(Debug)]
enum Place {
    Slot(usize),
    Overflow(u64, Arc<AtomicBool>),
}

/// A registered snapshot: nothing it can see is dropped or reused until it is closed.
#[derive(Debug)]
pub(super) struct Registration {
    place: Place,
    /// What the snapshot sees: every commit at or below.
    pub(super) lsn: Lsn,
}

thread_local! {
    static NUMBER: usize = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, SeqCst) as usize
    };
}

/// The number of this thread: threads begin in different places of what they share.
pub(crate) fn thread_number() -> usize {
    NUMBER.with(|n| *n)
}

impl Horizon {
    /// No snapshots; everything up to `visible` is durable.
    pub fn new(visible: Lsn) -> Self {
        let slot = |_| Slot { lsn: AtomicU64::new(FREE), killed: AtomicBool::new(false) };
        Self {
            slots: (0..SLOTS).map(slot).collect(),
            overflow: Mutex::new(BTreeMap::new()),
            next: AtomicU64::new(0),
            visible: AtomicU64::new(visible.0),
            newest: AtomicU64::new(visible.0),
            checkpoint: AtomicU64::new(FREE),
        }
    }

    /// Opens a snapshot of the newest durable state. The caller closes it.
    pub(super) fn open(&self) -> Registration {
        self.register(&self.visible)
    }

    /// Opens a snapshot of the newest installed state, which a crash may still lose.
    pub(super) fn open_newest(&self) -> Registration {
        self.register(&self.newest)
    }

    fn register(&self, source: &AtomicU64) -> Registration {
        let first = thread_number() * 5;
        for i in (0..SLOTS).map(|i| (first + i) % SLOTS) {
            let slot = &self.slots[i];
            let mut lsn = source.load(SeqCst);
            if slot.lsn.load(SeqCst) != FREE
                || slot.lsn.compare_exchange(FREE, lsn, SeqCst, SeqCst).is_err()
            {
                continue;
            }
            // A kill of the former owner may have come after it was gone. Written only where it
            // changes: a store that all processors must see is dear.
            if slot.killed.load(SeqCst) {
                slot.killed.store(false, SeqCst);
            }
            loop {
                let again = source.load(SeqCst);
                if again == lsn {
                    break;
                }
                lsn = again;
                slot.lsn.store(lsn, SeqCst);
            }
            return Registration { place: Place::Slot(i), lsn: Lsn(lsn) };
        }
        let mut overflow = self.overflow.lock();
        let (n, killed) = (self.next.fetch_add(1, SeqCst), Arc::new(AtomicBool::new(false)));
        // The points are computed under this mutex too, so one read is enough.
        let lsn = Lsn(source.load(SeqCst));
        overflow.insert(n, (lsn, killed.clone()));
        drop(overflow);
        Registration { place: Place::Overflow(n, killed), lsn }
    }

    /// # Errors
    /// [`Error::SnapshotTooOld`] once old page versions went over their budget and this
    /// snapshot was the oldest.
    #[inline]
    pub(super) fn check(&self, snapshot: &Registration) -> Result<()> {
        let killed = match &snapshot.place {
            Place::Slot(i) => self.slots.get(*i).is_some_and(|s| s.killed.load(SeqCst)),
            Place::Overflow(_, killed) => killed.load(SeqCst),
        };
        if killed { Err(Error::SnapshotTooOld) } else { Ok(()) }
    }

    /// Closes a snapshot, once.
    pub(super) fn close(&self, snapshot: &Registration) {
        match &snapshot.place {
            Place::Slot(i) => {
                if let Some(slot) = self.slots.get(*i) {
                    if slot.killed.load(SeqCst) {
                        slot.killed.store(false, SeqCst);
                    }
                    // Who finds the slot free knows that its reads are done. Who still finds it
                    // taken keeps too much, for a moment.
                    slot.lsn.store(FREE, Release);
                }
            }
            Place::Overflow(n, _) => {
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

    /// Whether a checkpoint runs now: no more than a hint.
    pub fn checkpoint_runs(&self) -> bool {
        self.checkpoint.load(SeqCst) != FREE
    }

    fn snapshots(&self) -> Vec<Lsn> {
        let mut all: Vec<Lsn> = self
            .slots
            .iter()
            .filter(|s| s.lsn.load(SeqCst) != FREE && !s.killed.load(SeqCst))
            .map(|s| Lsn(s.lsn.load(SeqCst)))
            .filter(|l| l.0 != FREE)
            .collect();
        let overflow = self.overflow.lock();
        all.extend(overflow.values().filter(|(_, k)| !k.load(SeqCst)).map(|(l, _)| *l));
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

    fn points(&self) -> Vec<Lsn> {
        // Visible first: who registers after the look at the slots then reads at least this.
        let visible = self.visible();
        let mut points = self.snapshots();
        points.push(visible);
        let checkpoint = self.checkpoint.load(SeqCst);
        if checkpoint != FREE {
            points.push(Lsn(checkpoint));
        }
        points
    }

    /// Oldest state that anyone may still read: space freed at or before it may be reused.
    pub fn oldest(&self) -> Lsn {
        self.points().into_iter().min().unwrap_or_default()
    }

    /// The oldest open snapshot, if any.
    pub fn oldest_snapshot(&self) -> Option<Lsn> {
        self.snapshots().into_iter().min()
    }

    /// Gives up all snapshots at the oldest LSN: their reads fail from now on.
    pub fn kill_oldest(&self) {
        let Some(oldest) = self.oldest_snapshot() else { return };
        for slot in &self.slots {
            if slot.lsn.load(SeqCst) == oldest.0 {
                slot.killed.store(true, SeqCst);
            }
        }
        for (lsn, killed) in self.overflow.lock().values() {
            if *lsn == oldest {
                killed.store(true, SeqCst);
            }
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
        h.kill_oldest();
        assert!(matches!(h.check(&old), Err(Error::SnapshotTooOld)));
        assert!(many.iter().all(|s| h.check(s).is_ok()));
        assert_eq!(h.oldest(), Lsn(20));
        h.close(&old);
        let again = h.open();
        assert!(h.check(&again).is_ok(), "a reused slot is not killed");
        h.kill_oldest();
        assert!(many.iter().all(|s| h.check(s).is_err()), "overflow too");
    }
}
