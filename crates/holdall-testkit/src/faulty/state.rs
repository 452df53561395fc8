//! Everything a faulty storage locks: files, the log's name, plan, counters ([`State`]).
//!
//! Invariants: the log's name is a list of values, of which the first is durable and the last is
//! the present one; a log's content is kept as long as a value of the list or an open disk leads
//! to it. Threads: runs under the storage's lock.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::file::{SECTOR, SimFile};
use super::plan::{Chooser, CrashKind, Fate, FaultyFile, Kind, Planned, Reshaped, Verdict};
use super::rng::Rng;
use super::trace::{Call, FileId, Trace};
use holdall_io::bounds::MAX_LEN;

/// A log's content, and who has it open.
struct Log {
    file: SimFile,
    token: Arc<()>,
}

impl Log {
    fn new(file: SimFile) -> Self {
        Self { file, token: Arc::new(()) }
    }
}

/// What the log's name leads to.
#[derive(Clone, Default)]
struct Name {
    durable: Option<u32>,
    /// Values since, oldest first.
    changes: Vec<Option<u32>>,
}

impl Name {
    fn now(&self) -> Option<u32> {
        self.changes.last().copied().unwrap_or(self.durable)
    }

    fn may_be(&self, id: u32) -> bool {
        self.durable == Some(id) || self.changes.contains(&Some(id))
    }
}

pub(super) struct State {
    pub(super) volume: SimFile,
    logs: BTreeMap<u32, Log>,
    next_log: u32,
    name: Name,
    pub(super) planned: Planned,
    pub(super) crashed: bool,
    pub(super) trace: Trace,
    pub(super) now: Duration,
    pub(super) reshaped: Reshaped,
    /// The file system cannot punch holes, whatever is planned.
    pub(super) never_punches: bool,
    /// What the process that writes shows others; gone with it.
    pub(super) shown: Option<u64>,
    rng: Rng,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            volume: SimFile::default(),
            logs: BTreeMap::new(),
            next_log: 0,
            name: Name::default(),
            planned: Planned::default(),
            crashed: false,
            trace: Trace::default(),
            now: Duration::ZERO,
            reshaped: Reshaped::default(),
            never_punches: false,
            shown: None,
            rng: Rng::new(seed),
        }
    }

    pub(super) fn from_bytes(volume: &[u8], log: Option<&[u8]>, seed: u64) -> io::Result<Self> {
        let mut state = Self::new(seed);
        state.volume = SimFile::from_bytes(volume)?;
        if let Some(log) = log {
            let id = state.add_log(SimFile::from_bytes(log)?);
            state.name.durable = Some(id);
        }
        Ok(state)
    }

    fn add_log(&mut self, file: SimFile) -> u32 {
        let id = self.next_log;
        self.next_log += 1;
        self.logs.insert(id, Log::new(file));
        id
    }

    pub(super) fn can_punch(&self) -> bool {
        !self.never_punches && !self.planned.plan.no_punch
    }

    /// Counts and traces a call, decides about it, and lets `f` do it.
    pub(super) fn run<T>(
        &mut self,
        call: Call,
        f: impl FnOnce(&mut Self, Verdict) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.crashed {
            return Err(error(Verdict::Crash, call.kind));
        }
        let verdict = self.planned.verdict(call.kind);
        let number = self.planned.calls;
        self.crashed = verdict == Verdict::Crash;
        let result = f(self, verdict);
        // A call in which the crash strikes never returns as if nothing had happened.
        let result = if self.crashed { Err(error(verdict, call.kind)) } else { result };
        if call.file == Some(FileId::Volume) {
            self.reshaped.count(call.kind);
        } else if call.kind == Kind::Truncate {
            self.reshaped.log_cut += 1;
        }
        self.trace.push(number, call, result.as_ref().err().map(io::Error::kind));
        result
    }

    /// Whether a call that changes something takes effect: half of those that crash do, those that
    /// fail do not.
    pub(super) fn goes_on(&mut self, verdict: Verdict) -> bool {
        match verdict {
            Verdict::Run => true,
            Verdict::Crash => self.rng.coin(),
            Verdict::Fail | Verdict::Short => false,
        }
    }

    /// How much of a write that fails or crashes is done: all, nothing, or some sectors.
    pub(super) fn part_of_write(&mut self, offset: u64, len: u64) -> u64 {
        match self.rng.below(4) {
            0 => 0,
            1 => len,
            _ => {
                let end = (offset + self.rng.below(len + 1)) / SECTOR * SECTOR;
                end.saturating_sub(offset)
            }
        }
    }

    pub(super) fn file(&mut self, id: FileId) -> io::Result<&mut SimFile> {
        match id {
            FileId::Volume => Ok(&mut self.volume),
            FileId::Log(id) => match self.logs.get_mut(&id) {
                Some(log) => Ok(&mut log.file),
                None => Err(io::Error::other("a log that is open has no content")),
            },
        }
    }

    /// The file that `file` means now.
    pub(super) fn visible(&mut self, file: FaultyFile) -> Option<&mut SimFile> {
        match file {
            FaultyFile::Volume => Some(&mut self.volume),
            FaultyFile::Log => {
                let id = self.name.now()?;
                self.logs.get_mut(&id).map(|log| &mut log.file)
            }
        }
    }

    /// The log that the name leads to now.
    pub(super) fn named_log(&self) -> Option<&SimFile> {
        self.name.now().and_then(|id| self.logs.get(&id)).map(|log| &log.file)
    }

    /// The log that the durable name leads to.
    pub(super) fn durable_log(&self) -> Option<&SimFile> {
        self.name.durable.and_then(|id| self.logs.get(&id)).map(|log| &log.file)
    }

    pub(super) fn name(&self) -> Option<u32> {
        self.name.now()
    }

    pub(super) fn log_token(&self, id: u32) -> Option<Arc<()>> {
        self.logs.get(&id).map(|log| log.token.clone())
    }

    pub(super) fn unsynced(&self) -> usize {
        let log = self.named_log().map_or(0, SimFile::unsynced);
        self.name.changes.len() + self.volume.unsynced() + log
    }

    /// Bytes of blocks that the volume and the log take.
    pub(super) fn taken(&self) -> u64 {
        self.volume.taken() + self.named_log().map_or(0, SimFile::taken)
    }

    /// Bytes of blocks that this file can still get.
    pub(super) fn spare(&mut self, id: FileId) -> io::Result<u64> {
        let Some(capacity) = self.planned.plan.full_at_bytes else { return Ok(MAX_LEN) };
        let unnamed = match id {
            FileId::Log(log) if self.name.now() != Some(log) => self.file(id)?.taken(),
            _ => 0,
        };
        Ok(capacity.saturating_sub(self.taken() + unnamed))
    }

    /// Inverts the plan's bit in what a read of this file has got.
    pub(super) fn flip_read(&self, id: FileId, offset: u64, buf: &mut [u8]) {
        let Some(flip) = self.planned.plan.flip else { return };
        let meant = match flip.file {
            FaultyFile::Volume => Some(FileId::Volume),
            FaultyFile::Log => self.name.now().map(FileId::Log),
        };
        if meant == Some(id)
            && let Some(index) = flip.byte.checked_sub(offset)
            && index < buf.len() as u64
        {
            buf[index as usize] ^= 1 << (flip.bit & 7);
        }
    }

    pub(super) fn ignores_sync(&self, id: FileId) -> bool {
        match id {
            FileId::Volume => self.planned.plan.ignore_volume_sync,
            FileId::Log(_) => self.planned.plan.ignore_log_sync,
        }
    }

    /// Makes a log and gives it the name, which nothing has.
    pub(super) fn create_log(&mut self) -> io::Result<()> {
        if self.name.now().is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = self.add_log(SimFile::default());
        self.name.changes.push(Some(id));
        Ok(())
    }

    pub(super) fn remove_log(&mut self) {
        if self.name.now().is_some() {
            self.name.changes.push(None);
        }
    }

    pub(super) fn sync_dir(&mut self) {
        self.name = Name { durable: self.name.now(), changes: Vec::new() };
        let name = &self.name;
        self.logs.retain(|id, log| name.may_be(*id) || Arc::strong_count(&log.token) > 1);
    }

    pub(super) fn fork(&self) -> Self {
        let copy = |(id, log): (&u32, &Log)| (*id, Log::new(log.file.clone()));
        Self {
            volume: self.volume.clone(),
            logs: self.logs.iter().map(copy).collect(),
            next_log: self.next_log,
            name: self.name.clone(),
            planned: self.planned.clone(),
            crashed: self.crashed,
            trace: self.trace.clone(),
            now: self.now,
            reshaped: self.reshaped,
            never_punches: self.never_punches,
            shown: None,
            rng: self.rng.clone(),
        }
    }

    /// The state as found after a crash.
    pub(super) fn after(&self, kind: CrashKind, seed: u64) -> io::Result<Self> {
        // The crash and the life after it must not draw the same numbers.
        let mut state = Self::new(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        state.now = self.now;
        state.never_punches = self.never_punches;
        let CrashKind::PowerCut(policy) = kind else {
            let life = self.fork();
            state.volume = life.volume;
            state.logs = life.logs;
            state.name = life.name;
            state.next_log = life.next_log;
            let name = &state.name;
            state.logs.retain(|id, _| name.may_be(*id));
            return Ok(state);
        };
        let mut chooser = Chooser::new(policy, seed);
        let mut name = self.name.durable;
        for change in &self.name.changes {
            if chooser.fate() == Fate::Kept {
                name = *change;
            }
        }
        state.volume = self.volume.after_power_cut(&mut chooser)?;
        if let Some(log) = name.and_then(|id| self.logs.get(&id)) {
            let id = state.add_log(log.file.after_power_cut(&mut chooser)?);
            state.name.durable = Some(id);
        }
        Ok(state)
    }
}

/// The error that a verdict means.
pub(super) fn error(verdict: Verdict, kind: Kind) -> io::Error {
    match verdict {
        Verdict::Crash => io::Error::other("simulated crash"),
        _ => io::Error::other(format!("injected error: {kind:?}")),
    }
}

/// The result of a call that has done what it was going to do.
pub(super) fn done(verdict: Verdict, kind: Kind) -> io::Result<()> {
    match verdict {
        Verdict::Run | Verdict::Short => Ok(()),
        Verdict::Fail | Verdict::Crash => Err(error(verdict, kind)),
    }
}
