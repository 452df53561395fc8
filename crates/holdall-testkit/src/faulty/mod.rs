//! A storage that fails on purpose, the same way for the same seed and calls:
//! [`FaultyStorage`]. Shared by all tests of crashes and errors.
//!
//! Owns two simulated files, the log's name, a [`FaultPlan`] and one lock over all of it. A file
//! has a durable content and a cached one, which reads see; a sync makes the cached one durable. A
//! crash gives the storage as found at the reboot. Nothing durable is ever lost, and nothing that
//! is not durable can be relied on.
//!
//! A sector never has the bytes of a later write without those of an earlier one. Not modelled:
//! sectors that hold neither old nor new content after a power cut, and devices that lose what
//! they acknowledged (`ignore_volume_sync` and its like do, to show that each sync matters).
//!
//! Invariants: all state changes run under the lock; random decisions come from seeds alone (the
//! storage's for half-done calls, the crash's for what survives). Threads: safe from any, but
//! deterministic only as far as the order of the calls is.

mod file;
mod holes;
mod image;
mod plan;
mod rng;
mod state;
#[cfg(test)]
mod tests;
mod trace;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

pub use plan::{CrashKind, FaultPlan, FaultyFile, Flip, LossPolicy, Reshaped};

use holdall_io::bounds::{check_len, full, read_end, write_end};
use holdall_io::{Disk, MemoryDisk, Storage, WriteOut};
use plan::{Kind, Verdict};
use state::State;
use trace::{Call, FileId};

/// A volume and a log in memory that lose what is not synced, and fail as planned.
pub struct FaultyStorage {
    state: Arc<Mutex<State>>,
    volume: Arc<FaultyDisk>,
    sums: Mutex<Option<Arc<MemoryDisk>>>,
}

impl FaultyStorage {
    /// An empty volume without a log. `seed` decides how far calls get in which a fault strikes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with(State::new(seed))
    }

    /// A storage with this content, all durable.
    ///
    /// # Errors
    /// `StorageFull` if there is not enough memory.
    pub fn from_bytes(volume: &[u8], log: Option<&[u8]>, seed: u64) -> io::Result<Self> {
        Ok(Self::with(State::from_bytes(volume, log, seed)?))
    }

    fn with(state: State) -> Self {
        let state = Arc::new(Mutex::new(state));
        let volume = FaultyDisk { state: state.clone(), file: FileId::Volume, _alive: None };
        Self { state, volume: Arc::new(volume), sums: Mutex::default() }
    }

    /// With a copy of what `from` has as its sums.
    fn with_sums(self, from: &Self) -> Self {
        let sums = from.sums.lock().as_ref().map(|sums| Arc::new(MemoryDisk::clone(sums)));
        Self { sums: Mutex::new(sums), ..self }
    }

    /// From here on, and after every crash, the file system cannot punch holes.
    pub fn never_punch(&self) {
        self.state.lock().never_punches = true;
    }

    /// Replaces the plan; its numbers count from the next call on. Ends a simulated crash.
    pub fn set_plan(&self, plan: FaultPlan) {
        let mut state = self.state.lock();
        state.planned.set(plan);
        state.crashed = false;
    }

    /// Removes the plan: no more faults. Calls work again if a planned crash had struck.
    pub fn heal(&self) {
        self.set_plan(FaultPlan::default());
    }

    /// The storage as found after this crash, now. It shares nothing with this one, has no plan,
    /// and its counters begin at zero.
    ///
    /// # Errors
    /// `StorageFull` if there is not enough memory.
    pub fn crash(&self, kind: CrashKind, seed: u64) -> io::Result<Self> {
        Ok(Self::with(self.state.lock().after(kind, seed)?).with_sums(self))
    }

    /// The process that writes dies now: what it does further fails, until [`heal`](Self::heal).
    /// Others that have the storage open go on after that, and find all that was written.
    pub fn kill_writer(&self) {
        let mut state = self.state.lock();
        state.crashed = true;
        state.shown = None;
    }

    /// A deep copy of everything, plan and counters included; later calls go their own ways.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::with(self.state.lock().fork()).with_sums(self)
    }

    /// Calls so far that could fail, of any kind; calls after a planned crash are not counted.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.state.lock().planned.calls
    }

    /// Calls so far that change something (see [`FaultPlan::crash_at_change`]).
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.state.lock().planned.changes
    }

    /// How often the volume was to be grown, cut and punched.
    #[must_use]
    pub fn reshaped(&self) -> Reshaped {
        self.state.lock().reshaped
    }

    /// Whether a planned crash has struck.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.state.lock().crashed
    }

    /// Changes that are not durable: of the log's name, of the volume, of the log.
    #[must_use]
    pub fn unsynced(&self) -> usize {
        self.state.lock().unsynced()
    }

    /// Bytes of blocks that both files take.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.state.lock().taken()
    }

    /// What reads see: the volume, and the log if it has its name.
    #[must_use]
    pub fn snapshot(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let state = self.state.lock();
        (state.volume.cached.to_vec(), state.named_log().map(|log| log.cached.to_vec()))
    }

    /// What is durable: what a power cut that loses everything else leaves.
    #[must_use]
    pub fn durable(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let state = self.state.lock();
        (state.volume.durable.to_vec(), state.durable_log().map(|log| log.durable.to_vec()))
    }

    /// Damages the medium: inverts the bits of `mask` in one byte, durable and cached, for good.
    ///
    /// # Errors
    /// `InvalidInput` if reads do not reach that byte.
    pub fn flip_byte(&self, file: FaultyFile, offset: u64, mask: u8) -> io::Result<()> {
        let mut state = self.state.lock();
        match state.visible(file) {
            Some(file) if offset < file.cached.len() => {
                file.flip(offset, mask);
                Ok(())
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{file:?} has no byte {offset}"),
            )),
        }
    }

    /// Sets what [`Storage::now`] gives; zero before.
    pub fn set_now(&self, now: Duration) {
        self.state.lock().now = now;
    }

    /// The last calls (256 at most) as text: number, kind, file, offset and length, error.
    #[must_use]
    pub fn trace(&self) -> String {
        self.state.lock().trace.to_string()
    }

    /// Runs a call about names.
    fn run<T>(
        &self,
        kind: Kind,
        f: impl FnOnce(&mut State, Verdict) -> io::Result<T>,
    ) -> io::Result<T> {
        self.state.lock().run(Call { kind, file: None, offset: 0, len: 0 }, f)
    }

    fn log_disk(&self, state: &State, id: u32) -> Arc<dyn Disk> {
        let alive = state.log_token(id);
        Arc::new(FaultyDisk { state: self.state.clone(), file: FileId::Log(id), _alive: alive })
    }
}

impl std::fmt::Debug for FaultyStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.lock();
        f.debug_struct("FaultyStorage")
            .field("plan", &state.planned.plan)
            .field("calls", &state.planned.calls)
            .field("crashed", &state.crashed)
            .field("unsynced", &state.unsynced())
            .finish_non_exhaustive()
    }
}

impl Storage for FaultyStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn has_writer(&self) -> io::Result<bool> {
        Ok(self.state.lock().shown.is_some())
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        self.run(Kind::OpenLog, |state, verdict| match verdict {
            Verdict::Run => Ok(state.name().map(|id| self.log_disk(state, id))),
            _ => Err(state::error(verdict, Kind::OpenLog)),
        })
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        self.run(Kind::CreateLog, |state, verdict| {
            let room = state.planned.plan.room_of_log_name;
            if state.spare(FileId::Volume)? < room {
                return Err(full(room));
            }
            if state.goes_on(verdict) {
                state.create_log()?;
            }
            match (verdict, state.name()) {
                (Verdict::Run, Some(id)) => Ok(self.log_disk(state, id)),
                _ => Err(state::error(verdict, Kind::CreateLog)),
            }
        })
    }

    fn room_of_log_name(&self) -> u64 {
        self.state.lock().planned.plan.room_of_log_name
    }

    fn remove_log(&self, _log: &dyn Disk) -> io::Result<()> {
        self.run(Kind::RemoveLog, |state, verdict| {
            if state.goes_on(verdict) {
                state.remove_log();
            }
            state::done(verdict, Kind::RemoveLog)
        })
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.run(Kind::SyncDir, |state, verdict| {
            if verdict == Verdict::Run && !state.planned.plan.ignore_dir_sync {
                state.sync_dir();
            }
            state::done(verdict, Kind::SyncDir)
        })
    }

    fn open_sums(&self, create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        let mut sums = self.sums.lock();
        if create && sums.is_none() {
            *sums = Some(Arc::default());
        }
        Ok(sums.clone().map(|sums| sums as Arc<dyn Disk>))
    }

    fn name(&self) -> String {
        "faulty".to_owned()
    }

    fn now(&self) -> Duration {
        self.state.lock().now
    }
}

/// One file of a [`FaultyStorage`].
struct FaultyDisk {
    state: Arc<Mutex<State>>,
    file: FileId,
    /// Keeps a log's content while its name is gone.
    _alive: Option<Arc<()>>,
}

impl std::fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyDisk").field("file", &self.file).finish_non_exhaustive()
    }
}

impl FaultyDisk {
    fn run<T>(
        &self,
        kind: Kind,
        offset: u64,
        len: u64,
        f: impl FnOnce(&mut State, Verdict) -> io::Result<T>,
    ) -> io::Result<T> {
        self.state.lock().run(Call { kind, file: Some(self.file), offset, len }, f)
    }

    fn resize(&self, kind: Kind, len: u64) -> io::Result<()> {
        self.run(kind, 0, len, |state, verdict| {
            if kind == Kind::Grow {
                check_len(len)?;
            }
            let old = state.file(self.file)?.cached.len();
            let changes = if kind == Kind::Grow { len > old } else { len < old };
            if changes && len > old && state.spare(self.file)? < len - old {
                return Err(full(len));
            }
            if changes && state.goes_on(verdict) {
                state.file(self.file)?.set_len(len)?;
            }
            state::done(verdict, kind)
        })
    }

    fn hint(&self, offset: u64, len: u64) -> io::Result<()> {
        self.run(Kind::Hint, offset, len, |_, verdict| state::done(verdict, Kind::Hint))
    }
}

impl Disk for FaultyDisk {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.run(Kind::Read, offset, buf.len() as u64, |state, verdict| {
            state::done(verdict, Kind::Read)?;
            if buf.is_empty() {
                return Ok(());
            }
            let image = &state.file(self.file)?.cached;
            read_end(offset, buf.len(), image.len())?;
            if verdict == Verdict::Short {
                let part = buf.len() / 2;
                image.read(offset, &mut buf[..part]);
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "injected short read"));
            }
            image.read(offset, buf);
            state.flip_read(self.file, offset, buf);
            Ok(())
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.run(Kind::Write, offset, bytes.len() as u64, |state, verdict| {
            if bytes.is_empty() {
                return state::done(verdict, Kind::Write);
            }
            let end = write_end(offset, bytes.len())?;
            let spare = state.spare(self.file)?;
            let fits = state.file(self.file)?.fits(offset, bytes.len() as u64, spare);
            let part = match verdict {
                Verdict::Run => fits,
                _ => state.part_of_write(offset, fits),
            };
            state.file(self.file)?.write(offset, &bytes[..part as usize])?;
            state::done(verdict, Kind::Write)?;
            if fits < bytes.len() as u64 { Err(full(end)) } else { Ok(()) }
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.run(Kind::Sync, 0, 0, |state, verdict| {
            match verdict {
                Verdict::Run if state.ignores_sync(self.file) => {}
                Verdict::Run => state.file(self.file)?.sync()?,
                Verdict::Fail => state.file(self.file)?.fail_sync(),
                // Which of its writes it had made durable is up to the crash.
                Verdict::Crash | Verdict::Short => {}
            }
            state::done(verdict, Kind::Sync)
        })
    }

    fn len(&self) -> io::Result<u64> {
        self.run(Kind::Len, 0, 0, |state, verdict| {
            state::done(verdict, Kind::Len)?;
            Ok(state.file(self.file)?.cached.len())
        })
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.resize(Kind::Grow, len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.resize(Kind::Truncate, len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.run(Kind::Punch, offset, len, |state, verdict| {
            let can = state.can_punch();
            if can && state.goes_on(verdict) {
                state.file(self.file)?.punch(offset, len);
            }
            state::done(verdict, Kind::Punch).map(|()| can)
        })
    }

    fn can_punch(&self) -> bool {
        self.state.lock().can_punch()
    }

    fn fill_holes(&self, offset: u64, len: u64) -> io::Result<()> {
        self.run(Kind::Fill, offset, len, |state, verdict| {
            let spare = state.spare(self.file)?;
            let refused = state.planned.plan.refuse_fill;
            if refused || state.file(self.file)?.fits(offset, len, spare) < len {
                return Err(full(offset + len));
            }
            if state.goes_on(verdict) {
                state.file(self.file)?.fill(offset, len);
            }
            state::done(verdict, Kind::Fill)
        })
    }

    fn allocated(&self) -> io::Result<u64> {
        self.run(Kind::Allocated, 0, 0, |state, verdict| {
            state::done(verdict, Kind::Allocated)?;
            Ok(state.file(self.file)?.taken())
        })
    }

    fn room(&self) -> io::Result<Option<u64>> {
        let mut state = self.state.lock();
        let full = state.planned.plan.full_at_bytes.is_some();
        full.then(|| state.spare(self.file)).transpose()
    }

    fn write_out(&self, offset: u64, len: u64, _how: WriteOut) -> io::Result<()> {
        self.hint(offset, len)
    }

    fn show_durable(&self, position: Option<u64>) {
        let mut state = self.state.lock();
        if !state.crashed {
            state.shown = position;
        }
    }

    fn shown_durable(&self) -> Option<u64> {
        self.state.lock().shown
    }

    fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.hint(offset, len).map(|()| true)
    }
}
