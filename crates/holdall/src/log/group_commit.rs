//! The redo log: group commit over a circular, preallocated file.
//!
//! Owns: the log file between two checkpoints; which LSNs are durable; poison. Knows pages
//! only as bytes inside records (`holdall_core::log_format`).
//!
//! Threads: committers append under one mutex ([`Log::begin`]); the first to wait becomes
//! the leader, writes and syncs everything appended so far, and wakes those whose commits it
//! holds. Appending goes on while a group is in flight, so writers share syncs; of those who
//! wait for the next group one is woken, which leads it.
//!
//! Invariants (docs/recovery.md): one group is in flight, data in place that it lists included
//! (rule 3); a block holding acknowledged bytes is not written again before the tail has passed
//! it (rule 1); after a failed write or sync nothing is acknowledged any more (rule 6).

use super::io_error;
use crate::lock::{Condvar, Mutex, MutexGuard};
use crate::metrics::{Event, Recorder};
use holdall_core::log_format::{self as format, BLOCK, BlockHeader};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, Result};
use holdall_io::Disk;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// What identifies a log and where it begins.
#[derive(Debug, Clone)]
pub struct LogStart {
    /// The store's id, in every block.
    pub store_id: [u8; 16],
    /// The recovery epoch, in every block.
    pub epoch: u32,
    /// Where the first group goes; a multiple of [`BLOCK`].
    pub start: Lsn,
    /// Bytes of the circular file, a multiple of [`BLOCK`].
    pub capacity: u64,
    /// Superblock sequence that is durable.
    pub checkpoint: u64,
}

/// The file of data in place that commits list: it is synced while the log is.
pub trait DataFile {
    /// Asks for a sync that covers every write that has returned; does not wait for it.
    fn ask_for_sync(&self) -> u64;

    /// Waits for the sync that [`DataFile::ask_for_sync`] gave `ticket` for.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if it failed.
    fn wait_synced(&self, ticket: u64) -> Result<()>;

    /// Shows other processes that all of the log before `durable` is.
    fn show_durable(&self, durable: Lsn) {
        let _ = durable;
    }
}

#[derive(Debug)]
struct LogState {
    id: LogStart,
    /// None until the first commit needs the file.
    disk: Option<Arc<dyn Disk>>,
    /// Where the group being filled will be written.
    group: Lsn,
    payload: Vec<u8>,
    commits: u64,
    /// Bytes in place that the group being filled lists.
    listed_bytes: u64,
    in_flight: bool,
    /// Where in [`Log::landed`] those wait whose commits are in the group being filled; those of
    /// the group in flight wait at the other place.
    place: usize,
    /// Whether the last durable group relies on data in place.
    last_in_place: bool,
    durable: Lsn,
    tail: Lsn,
    previous: u32,
    /// Buffers of the last group, for the next one: its payload, its blocks.
    spare: (Vec<u8>, Vec<u8>),
}

/// Buffers up to this many bytes are kept for the next group.
const KEEP_BYTES: usize = 1 << 20;

/// The log of an open store.
#[derive(Debug)]
pub struct Log {
    state: Mutex<LogState>,
    /// A group has landed: two places, of which groups have one in turns.
    landed: [Condvar; 2],
    poison: OnceLock<String>,
    groups: AtomicU64,
    /// Figures of its work.
    pub times: LogTimes,
}

/// Figures of a log's work.
#[derive(Debug, Default)]
pub struct LogTimes {
    /// Commits of each durable group.
    pub(crate) group_commits: Recorder,
    /// Bytes of all groups.
    pub(crate) bytes: AtomicU64,
    /// Nanoseconds of the writes and syncs of each group.
    pub(crate) writes: Recorder,
    /// Nanoseconds that callers waited for commits that were not durable yet.
    pub(crate) waits: Recorder,
}

/// The right to append one commit; the LSN is fixed, nothing else can be appended meanwhile.
#[derive(Debug)]
pub struct Appending<'a> {
    state: MutexGuard<'a, LogState>,
    lsn: Lsn,
}

impl Appending<'_> {
    /// The commit's LSN.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// As [`Log::visible_points`], under the lock held.
    pub fn visible_points(&self) -> [Lsn; 2] {
        [self.state.durable, self.state.group]
    }

    /// Appends the commit's records, then its end. It can no longer fail but by poison.
    /// `listed` bytes that they list were written in place and will be synced with the group.
    pub fn finish(mut self, mut records: Vec<u8>, listed: u64) {
        self.state.listed_bytes += listed;
        if self.state.payload.is_empty() {
            // Mostly: the group's first commit is not copied.
            std::mem::swap(&mut self.state.payload, &mut records);
        } else {
            self.state.payload.extend_from_slice(&records);
        }
        let lsn = self.lsn;
        format::push_commit(&mut self.state.payload, lsn);
        self.state.commits += 1;
    }
}

/// `len` bytes of `memory`, grown if it is too short, that begin where a block of a file may
/// be written from past the page cache.
fn aligned(memory: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if memory.len() < len + BLOCK {
        memory.resize(len + BLOCK, 0);
    }
    let skip = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    &mut memory[skip..skip + len]
}

/// Bytes of the record that ends a commit.
const COMMIT_BYTES: usize = 16;

impl Log {
    /// A log that begins at `start` and has no file yet.
    pub fn new(start: LogStart) -> Self {
        let at = start.start;
        let state = LogState {
            id: start,
            disk: None,
            group: at,
            payload: Vec::new(),
            commits: 0,
            listed_bytes: 0,
            in_flight: false,
            place: 0,
            last_in_place: false,
            durable: at,
            tail: at,
            previous: 0,
            spare: Default::default(),
        };
        Self {
            state: Mutex::new(state),
            landed: Default::default(),
            poison: OnceLock::new(),
            groups: AtomicU64::new(0),
            times: LogTimes::default(),
        }
    }

    /// For a reader beside the writer: the log is durable up to `end`. Nothing is appended here.
    pub fn follow(&self, end: Lsn) {
        let mut state = self.state.lock();
        (state.group, state.durable, state.tail) = (end, end, end);
    }

    /// Whether the log has a file.
    pub fn attached(&self) -> bool {
        self.state.lock().disk.is_some()
    }

    /// The log's file.
    pub fn disk(&self) -> Option<Arc<dyn Disk>> {
        self.state.lock().disk.clone()
    }

    /// Gives the log its file, or says that it is larger now: `disk` is `capacity` bytes long and
    /// already written. Only while the log is empty (nothing to replay).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the log is in use.
    pub fn attach(&self, disk: Arc<dyn Disk>, capacity: u64) -> Result<()> {
        let mut state = self.state.lock();
        if state.group != state.tail || !state.payload.is_empty() || state.in_flight {
            return Err(Error::Invalid("the log cannot be replaced while in use".into()));
        }
        state.disk = Some(disk);
        state.id.capacity = capacity;
        Ok(())
    }

    /// Lets go of the log's file, whose blocks then go back once its name is gone. Only if
    /// nothing will be appended any more.
    pub fn detach(&self) {
        self.state.lock().disk = None;
    }

    /// Fixes the LSN of the next commit, whose records take `bytes` bytes. `Ok(None)`: no
    /// room until a checkpoint moves the tail.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::TooLarge`] if the log could never hold it.
    pub fn begin(&self, bytes: usize) -> Result<Option<Appending<'_>>> {
        self.check_poison()?;
        let state = self.state.lock();
        if state.disk.is_none() {
            return Err(Error::Invalid("the log has no file yet".into()));
        }
        let all = state.payload.len() + bytes + COMMIT_BYTES;
        let need = (format::blocks_for(all) * BLOCK) as u64;
        let alone = (format::blocks_for(bytes + COMMIT_BYTES) * BLOCK) as u64;
        if alone > state.id.capacity {
            let detail = format!("{alone} bytes of changes, the log holds {}", state.id.capacity);
            return Err(Error::TooLarge(detail));
        }
        if state.group.0 - state.tail.0 + need > state.id.capacity {
            return Ok(None);
        }
        // Unique and below the next group's start: a commit takes at least 16 bytes.
        let lsn = Lsn(state.group.0 + 1 + state.commits);
        Ok(Some(Appending { state, lsn }))
    }

    /// Waits until commit `lsn` is durable, writing and syncing the group if nobody does.
    /// Cost: one write and one sync for everything appended so far; if commits rely on data
    /// in place, a sync of that at the same time.
    ///
    /// `show` gets the newest durable LSN, which cannot move meanwhile: a state becomes
    /// visible before a newer one is durable for anyone who computes what is needed.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if the write or sync failed, now or earlier.
    pub fn wait_durable(
        &self,
        lsn: Lsn,
        data: &dyn DataFile,
        show: impl FnOnce(Lsn),
    ) -> Result<()> {
        let mut state = self.state.lock();
        let mut led = None;
        if state.durable < lsn {
            let begun = Instant::now();
            while state.durable < lsn {
                self.check_poison()?;
                if state.in_flight {
                    // Commits of the group being filled lie behind its start.
                    let place = if lsn > state.group { state.place } else { 1 - state.place };
                    state = self.landed[place].wait(state);
                } else {
                    led = Some(state.place);
                    state = self.lead(state, data)?;
                }
            }
            self.times.waits.record_since(begun);
        }
        show(state.durable);
        drop(state);
        if let Some(place) = led {
            self.landed[place].notify_all();
            // It leads the next group.
            self.landed[1 - place].notify_one();
        }
        Ok(())
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// As [`Log::wait_durable`].
    pub fn flush(&self, data: &dyn DataFile, show: impl FnOnce(Lsn)) -> Result<()> {
        let last = {
            let state = self.state.lock();
            if state.commits == 0 { state.group } else { Lsn(state.group.0 + state.commits) }
        };
        self.wait_durable(last, data, show)
    }

    fn lead<'a>(
        &'a self,
        mut state: MutexGuard<'a, LogState>,
        data: &dyn DataFile,
    ) -> Result<MutexGuard<'a, LogState>> {
        let header = BlockHeader {
            store_id: state.id.store_id,
            epoch: state.id.epoch,
            payload: 0,
            last: false,
            lsn: state.group,
            group: state.group,
            durable: state.durable,
            checkpoint: state.id.checkpoint,
            previous: state.previous,
        };
        let (empty, mut memory) = std::mem::take(&mut state.spare);
        let mut payload = std::mem::replace(&mut state.payload, empty);
        let (start, capacity) = (state.group, state.id.capacity);
        let Some(disk) = state.disk.clone() else {
            return Err(Error::Invalid("a commit was appended before the log had a file".into()));
        };
        let blocks = format::blocks_for(payload.len());
        state.group = Lsn(start.0 + (blocks * BLOCK) as u64);
        let commits = std::mem::take(&mut state.commits);
        // All of it was written before its commit was appended.
        let in_place = std::mem::take(&mut state.listed_bytes) > 0;
        state.in_flight = true;
        state.place = 1 - state.place;
        drop(state);

        let (begun, end) = (Instant::now(), Lsn(start.0 + (blocks * BLOCK) as u64));
        if mutation::is(Mutation::R40Early) {
            data.show_durable(end);
        }
        let ticket = in_place.then(|| data.ask_for_sync());
        let bytes = aligned(&mut memory, blocks * BLOCK);
        let sum = format::build_group_into(&header, &payload, bytes);
        let done = write_circular(&*disk, capacity, start, bytes);
        let done = done
            .and_then(|()| if mutation::is(Mutation::R03LogSync) { Ok(()) } else { disk.sync() });
        let done = done.map_err(|e| format!("log at LSN {start}: {e}"));
        let done = done.and_then(|()| match ticket {
            Some(ticket) if !mutation::is(Mutation::R13DirectWait) => {
                data.wait_synced(ticket).map_err(|e| e.to_string())
            }
            _ => Ok(()),
        });
        match &done {
            // Before waiters wake: those to whom they speak of their commits find these.
            Ok(()) => data.show_durable(end),
            // Poison before the lock is taken again: nobody may acknowledge past this point.
            Err(why) => self.set_poison(why),
        }
        let mut state = self.state.lock();
        state.in_flight = false;
        if done.is_ok() {
            self.times.group_commits.record(commits);
            self.times.bytes.fetch_add((blocks * BLOCK) as u64, Relaxed);
            self.times.writes.record_since(begun);
            self.groups.fetch_add(1, Relaxed);
            state.durable = end;
            state.last_in_place = in_place;
            state.previous = sum;
            payload.clear();
            if payload.capacity().max(memory.capacity()) <= KEEP_BYTES {
                state.spare = (payload, memory);
            }
        }
        // Others may have poisoned it meanwhile.
        let poison = self.check_poison();
        if done.is_err() || poison.is_err() {
            self.landed.iter().for_each(Condvar::notify_all);
        }
        poison.map(|()| state)
    }

    /// The newest durable state: every commit at or below it survives a crash.
    pub fn durable(&self) -> Lsn {
        self.state.lock().durable
    }

    /// Bytes in place that commits of the group being filled list.
    pub fn listed_bytes(&self) -> u64 {
        self.state.lock().listed_bytes
    }

    /// Whether the last durable group relies on data in place: recovery would look whether it
    /// is there, unless a superblock says that it was.
    pub fn ends_in_place(&self) -> bool {
        self.state.lock().last_in_place
    }

    /// Groups synced since the store was opened, where a heavy writer looks for others.
    pub fn groups(&self) -> u64 {
        self.groups.load(Relaxed)
    }

    /// A number that the next commit's LSN cannot exceed, whatever is flushed before it. For
    /// the holder of the writer's lock.
    pub fn next_commit_bound(&self) -> Lsn {
        let s = self.state.lock();
        let blocks = format::blocks_for(s.payload.len()) * BLOCK;
        Lsn(s.group.0 + blocks as u64 + s.commits + 1)
    }

    /// LSNs at which states are or will become visible: the durable one, and the end of the
    /// group in flight.
    pub fn visible_points(&self) -> [Lsn; 2] {
        let state = self.state.lock();
        [state.durable, state.group]
    }

    /// How many bytes of the log are in use, and up to which LSN it is durable.
    pub fn usage(&self) -> Usage {
        let s = self.state.lock();
        Usage {
            used: s.group.0 - s.tail.0 + s.payload.len() as u64,
            capacity: s.id.capacity,
            durable: s.durable,
            unwritten: s.payload.len() as u64,
        }
    }

    /// Log space before `tail` may be used again; `checkpoint` is the durable superblock's
    /// sequence number.
    pub fn release(&self, tail: Lsn, checkpoint: u64) {
        let mut state = self.state.lock();
        debug_assert!(tail >= state.tail && tail <= state.durable, "tail within the log");
        state.tail = tail;
        state.id.checkpoint = state.id.checkpoint.max(checkpoint);
    }

    /// Notes the durable superblock's sequence number.
    pub fn note_checkpoint(&self, checkpoint: u64) {
        let mut state = self.state.lock();
        state.id.checkpoint = state.id.checkpoint.max(checkpoint);
    }

    /// Whether nothing is between tail and head: the log may then be resized.
    pub fn is_empty(&self) -> bool {
        let s = self.state.lock();
        s.group == s.tail && s.payload.is_empty() && !s.in_flight
    }

    /// Stops all commits from now on.
    pub fn set_poison(&self, why: &str) {
        if self.poison.set(why.to_owned()).is_ok() {
            Event::Poison { why }.tell();
        }
    }

    /// # Errors
    /// [`Error::Poisoned`] once anything failed.
    pub fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            Some(why) if !mutation::is(Mutation::R06Poison) => Err(Error::Poisoned(why.clone())),
            _ => Ok(()),
        }
    }
}

/// State of the log for reports.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Bytes between tail and head, what is not yet written included.
    pub used: u64,
    /// Bytes of the file.
    pub capacity: u64,
    /// Newest durable state.
    pub durable: Lsn,
    /// Bytes of commits not yet written.
    pub unwritten: u64,
}

/// Writes `bytes` at `lsn` of a circular file of `capacity` bytes, past the page cache
/// if that can be: nothing is read from there before a crash, and the sync that follows
/// then has only the device to wait for.
pub(crate) fn write_circular(
    disk: &dyn Disk,
    capacity: u64,
    lsn: Lsn,
    bytes: &[u8],
) -> std::io::Result<()> {
    let at = lsn.0 % capacity;
    let first = bytes.len().min((capacity - at) as usize);
    disk.write_bulk(at, &bytes[..first])?;
    if first < bytes.len() { disk.write_bulk(0, &bytes[first..]) } else { Ok(()) }
}

/// Writes an empty group at the start of a log that nothing was written to since, and syncs it:
/// the mark of whose log it is. Recovery reads it as a group without a commit.
///
/// # Errors
/// [`Error::Full`], [`Error::Io`].
pub fn sign(disk: &dyn Disk, sb: &Superblock) -> Result<()> {
    let lsn = sb.replay;
    let header = BlockHeader {
        store_id: sb.store_id,
        epoch: sb.epoch,
        payload: 0,
        last: true,
        lsn,
        group: lsn,
        durable: lsn,
        checkpoint: sb.sequence,
        previous: 0,
    };
    let (block, _) = format::build_group(&header, &[]);
    write_circular(disk, sb.log_bytes, lsn, &block)
        .and_then(|()| disk.sync())
        .map_err(|e| io_error("marking the log", e))
}

/// Writes zeros over a part of the log file, up to its end, so that later writes change no file
/// metadata, and syncs it. Cost: these bytes written, one sync.
///
/// # Errors
/// [`Error::Full`] if the disk has no room, [`Error::Io`].
pub fn prepare_file(disk: &dyn Disk, part: Range<u64>) -> Result<()> {
    let capacity = part.end;
    let fail = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::StorageFull => Error::Full(format!("the log needs {capacity} bytes")),
        _ => Error::io("preparing the log file", e),
    };
    disk.grow(capacity).map_err(fail)?;
    let zeros = vec![0; (1 << 20).min(capacity as usize)];
    let mut at = part.start;
    while at < capacity {
        let n = zeros.len().min((capacity - at) as usize);
        disk.write_bulk(at, &zeros[..n]).map_err(fail)?;
        at += n as u64;
    }
    disk.sync().map_err(fail)
}

#[cfg(test)]
mod tests;
