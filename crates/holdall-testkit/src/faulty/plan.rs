//! What a [`FaultyStorage`](super::FaultyStorage) is to do wrong, and what a crash leaves.
//!
//! Owns the plan's types and the decision, call by call, whether a fault is due ([`Planned`]), and
//! at a crash, change by change, which change survives ([`Chooser`]). Everything here is a
//! function of the plan, the seed and the calls.

use super::rng::Rng;

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyFile {
    /// The volume.
    Volume,
    /// The log that has the log's name at the moment.
    Log,
}

/// One bit that reads see inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flip {
    /// In which file.
    pub file: FaultyFile,
    /// Offset of the byte.
    pub byte: u64,
    /// Which bit of it, 0 to 7.
    pub bit: u8,
}

/// The faults of a storage. Numbers count calls from the moment the plan is set, from 1; a call
/// that a plan does not name is not disturbed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// This call, of any kind to any file, and all after it fail with "simulated crash". If it
    /// would change something, it has done so wholly, partly or not at all, by the seed.
    pub crash_at: Option<u64>,
    /// The same, counting only calls that change something: write, sync, grow, truncate, punch,
    /// fill, create, remove, `sync_dir`. Reads change no state: these are all the crash points that
    /// differ.
    pub crash_at_change: Option<u64>,
    /// This read fails.
    pub fail_read_at: Option<u64>,
    /// This read fills a part of its buffer and fails with `UnexpectedEof`.
    pub short_read_at: Option<u64>,
    /// This write fails, having written a part chosen by the seed.
    pub fail_write_at: Option<u64>,
    /// This sync (of either file, or of the directory) fails. What a file had not synced before is
    /// still readable, is not written by later syncs, and is at risk at the next power cut.
    pub fail_sync_at: Option<u64>,
    /// This one of the calls that grow, truncate, punch, fill, create, remove or open fails without
    /// effect.
    pub fail_other_at: Option<u64>,
    /// Bytes that both files together may have; what goes beyond fails with `StorageFull` (a write
    /// has then written what there was room for).
    pub full_at_bytes: Option<u64>,
    /// Bytes that there must be for [`create_log`](holdall_io::Storage::create_log), which it does
    /// not take: what XFS asks for.
    pub room_of_log_name: u64,
    /// Filling holes fails with `StorageFull` although writing there would not, if the range has
    /// blocks or there is room.
    pub refuse_fill: bool,
    /// The file system cannot punch holes.
    pub no_punch: bool,
    /// Reads see this bit inverted. The stored byte stays right, see
    /// [`flip_byte`](super::FaultyStorage::flip_byte) for damage that stays.
    pub flip: Option<Flip>,
    /// Syncs of the volume return `Ok` and make nothing durable: shows that a sync matters.
    pub ignore_volume_sync: bool,
    /// The same for the log.
    pub ignore_log_sync: bool,
    /// The same for the directory.
    pub ignore_dir_sync: bool,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashKind {
    /// The process dies, the machine lives: everything written can be read, and what was not
    /// synced is still not durable.
    ProcessKilled,
    /// The machine dies: what was not synced is at risk.
    PowerCut(LossPolicy),
}

/// What a power cut does to the changes that were not synced. Nothing durable is ever lost.
///
/// Changes are writes, changes of a length and changes of the log's name. Changes of length take
/// effect in order: if one is lost, so are all later ones of that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPolicy {
    /// All are lost.
    LoseAll,
    /// All are kept.
    KeepAll,
    /// Each is kept, lost, or (writes) torn: any subset of its sectors of 512 bytes is new, or
    /// of its units of eight sectors.
    Random,
    /// Bit `i` says whether change `i` is kept; changes from 64 on are lost. Changes are numbered
    /// from 0: the log's name, then the volume, then the log that has the name after the crash,
    /// each in order of the calls. Runs through all subsets of few changes.
    Chosen(u64),
}

/// What happens to one change at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Kept,
    Lost,
    Torn,
}

/// Decides the fate of change after change.
pub(super) struct Chooser {
    policy: LossPolicy,
    rng: Rng,
    next: u32,
    /// Of 8 changes, how many are kept.
    keep: u64,
    /// Sectors that a torn write keeps or loses together: devices write in larger units too.
    grain: u32,
    /// Sectors left of the present unit, and whether they are new.
    unit: (u32, bool),
}

impl Chooser {
    pub(super) fn new(policy: LossPolicy, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        // Few, half or most are kept: even odds alone would hardly ever lose just one of many.
        let keep = [1, 4, 7][rng.below(3) as usize];
        let grain = [1, 8][rng.below(2) as usize];
        Self { policy, rng, next: 0, keep, grain, unit: (0, false) }
    }

    pub(super) fn fate(&mut self) -> Fate {
        let index = self.next;
        self.next += 1;
        let kept = match self.policy {
            LossPolicy::LoseAll => false,
            LossPolicy::KeepAll => true,
            LossPolicy::Chosen(mask) => index < 64 && mask >> index & 1 == 1,
            LossPolicy::Random => {
                if self.rng.below(8) >= self.keep && self.rng.coin() {
                    self.unit.0 = 0;
                    return Fate::Torn;
                }
                self.rng.below(8) < self.keep
            }
        };
        if kept { Fate::Kept } else { Fate::Lost }
    }

    /// Whether the next sector of a torn write is new.
    pub(super) fn sector(&mut self) -> bool {
        if self.unit.0 == 0 {
            self.unit = (self.grain, self.rng.coin());
        }
        self.unit.0 -= 1;
        self.unit.1
    }
}

/// The kinds of calls that plans distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Sync,
    SyncDir,
    Len,
    Allocated,
    Grow,
    Truncate,
    Punch,
    Fill,
    Hint,
    OpenLog,
    CreateLog,
    RemoveLog,
}

/// Calls that change if a volume has blocks, or cut a log, those in which a crash struck
/// included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reshaped {
    /// To make it longer.
    pub grown: u64,
    /// To cut it.
    pub cut: u64,
    /// To give blocks of it back.
    pub punched: u64,
    /// To cut the log.
    pub log_cut: u64,
}

impl Reshaped {
    pub(super) fn count(&mut self, kind: Kind) {
        match kind {
            Kind::Grow => self.grown += 1,
            Kind::Truncate => self.cut += 1,
            Kind::Punch => self.punched += 1,
            _ => {}
        }
    }
}

impl Kind {
    fn is_change(self) -> bool {
        use Kind::{CreateLog, Fill, Grow, Punch, RemoveLog, Sync, SyncDir, Truncate, Write};
        matches!(
            self,
            Write | Sync | SyncDir | Grow | Truncate | Punch | Fill | CreateLog | RemoveLog
        )
    }
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// As asked.
    Run,
    /// A read that gives a part only.
    Short,
    /// It fails.
    Fail,
    /// The crash happens in it.
    Crash,
}

/// Calls by kind.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u64,
    changes: u64,
    reads: u64,
    writes: u64,
    syncs: u64,
    others: u64,
}

/// A plan, and how far its numbers have been counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    pub(super) plan: FaultPlan,
    since: Counts,
    /// All calls of the storage's life.
    pub(super) calls: u64,
    /// All calls that change something.
    pub(super) changes: u64,
}

impl Planned {
    /// A new plan; its numbers begin at 1.
    pub(super) fn set(&mut self, plan: FaultPlan) {
        self.plan = plan;
        self.since = Counts::default();
    }

    /// Counts a call and says what is to happen to it.
    pub(super) fn verdict(&mut self, kind: Kind) -> Verdict {
        let counts = &mut self.since;
        self.calls += 1;
        counts.calls += 1;
        if kind.is_change() {
            self.changes += 1;
            counts.changes += 1;
        }
        let due = |at: Option<u64>, now: u64| at == Some(now);
        let plan = &self.plan;
        if due(plan.crash_at, counts.calls)
            || (kind.is_change() && due(plan.crash_at_change, counts.changes))
        {
            return Verdict::Crash;
        }
        let (count, fail_at) = match kind {
            Kind::Read => (&mut counts.reads, plan.fail_read_at),
            Kind::Write => (&mut counts.writes, plan.fail_write_at),
            Kind::Sync | Kind::SyncDir => (&mut counts.syncs, plan.fail_sync_at),
            Kind::Len | Kind::Allocated | Kind::Hint => return Verdict::Run,
            _ => (&mut counts.others, plan.fail_other_at),
        };
        *count += 1;
        if due(fail_at, *count) {
            Verdict::Fail
        } else if kind == Kind::Read && due(plan.short_read_at, *count) {
            Verdict::Short
        } else {
            Verdict::Run
        }
    }
}
