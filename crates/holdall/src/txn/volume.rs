//! The volume file: one coordinator for all its syncs, and the superblock slots.
//!
//! Owns: sharing of volume syncs between threads (rule 6), poison after a failed one, the
//! current superblock and its two slots.
//!
//! Threads: a caller of [`Volume::sync`] is covered only by a sync that starts after the
//! call, so all its own writes have returned by then.

use crate::log::{DataFile, io_error};
use crate::metrics::{Distribution, Recorder};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Lsn, PageNo, PageRun, Result};
use holdall_io::{Disk, WriteOut};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

#[derive(Debug, Default)]
struct Syncs {
    running: bool,
    started: u64,
    done: u64,
    failed: Option<String>,
    /// Bytes that the file has after a power cut.
    durable_len: u64,
    /// Whether a thread runs the syncs that are asked for; the last one that was.
    helper: bool,
    asked: u64,
    ended: bool,
}

/// The volume of an open store.
#[derive(Debug)]
pub struct Volume {
    /// The file.
    pub disk: Arc<dyn Disk>,
    page_size: usize,
    /// Bytes that the file has at least.
    len: AtomicU64,
    syncs: Mutex<Syncs>,
    finished: Condvar,
    wanted: Condvar,
    superblock: Mutex<Slotted>,
    sync_times: Recorder,
}

/// What the slots hold.
#[derive(Debug)]
struct Slotted {
    newest: Superblock,
    /// The other one, if it is valid.
    older: Option<Superblock>,
}

/// A commit lies at most this many bytes behind the end that the file is known to have after a
/// power cut. Replay, which makes growth again that was lost, so knows what it may be asked for,
/// and a log of a few bytes cannot ask for a terabyte.
pub const MOST_UNSYNCED_GROWTH: u64 = 64 << 20;

impl Volume {
    /// The volume whose valid superblock is `superblock`, the other slot holding `older`.
    pub fn new(disk: Arc<dyn Disk>, superblock: Superblock, older: Option<Superblock>) -> Self {
        // A checkpoint names a length only once it is durable.
        let len = superblock.volume_pages.saturating_mul(u64::from(superblock.page_size));
        Self {
            disk,
            page_size: superblock.page_size as usize,
            len: AtomicU64::new(len),
            syncs: Mutex::new(Syncs { durable_len: len, ..Syncs::default() }),
            finished: Condvar::new(),
            wanted: Condvar::new(),
            superblock: Mutex::new(Slotted { newest: superblock, older }),
            sync_times: Recorder::default(),
        }
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// Makes every write that has returned durable. Cost: at most one sync of its own; calls
    /// that wait together share one.
    ///
    /// # Errors
    /// [`Error::Poisoned`] after any failed sync: what it covered can no longer be trusted.
    pub fn sync(&self) -> Result<()> {
        let mine = self.syncs.lock().started + 1;
        self.wait_synced(mine)
    }

    /// Nanoseconds of its syncs.
    pub fn sync_times(&self) -> Distribution {
        self.sync_times.load()
    }

    /// Asks the store's syncing thread, if there is one, for a sync that covers every write
    /// that has returned. What is returned is for `wait_synced`.
    pub fn ask_for_sync(&self) -> u64 {
        let mut s = self.syncs.lock();
        let mine = s.started + 1;
        if s.helper {
            s.asked = s.asked.max(mine);
            self.wanted.notify_one();
        }
        mine
    }

    /// Waits until sync number `mine` is done, running it if nobody does.
    fn wait_synced(&self, mine: u64) -> Result<()> {
        let mut s = self.syncs.lock();
        loop {
            if let Some(why) = &s.failed {
                return Err(Error::Poisoned(why.clone()));
            }
            if s.done >= mine {
                return Ok(());
            }
            if s.running {
                self.finished.wait(&mut s);
                continue;
            }
            s.running = true;
            s.started += 1;
            drop(s);
            let (len, begun) = (self.len.load(SeqCst), Instant::now());
            let result = self.disk.sync();
            s = self.syncs.lock();
            s.running = false;
            if result.is_ok() {
                self.sync_times.record_since(begun);
                s.durable_len = s.durable_len.max(len);
            }
            match result {
                Ok(()) => s.done = s.started,
                Err(_) if mutation::is(Mutation::R06VolumePoison) => s.done = s.started,
                Err(e) => s.failed = Some(format!("sync of the volume: {e}")),
            }
            self.finished.notify_all();
        }
    }

    /// Runs the syncs that commits ask for, on a thread of its own, until [`Volume::end_syncs`]:
    /// the volume is then synced while the log is.
    pub fn run_syncs(&self) {
        let mut s = self.syncs.lock();
        s.helper = !s.ended;
        while !s.ended {
            let asked = s.asked;
            if asked <= s.done || asked <= s.started && s.running || s.failed.is_some() {
                self.wanted.wait(&mut s);
                continue;
            }
            drop(s);
            // The caller finds the failure when it waits.
            let _ = self.wait_synced(asked);
            s = self.syncs.lock();
        }
        s.helper = false;
    }

    /// Ends [`Volume::run_syncs`]. Commits then sync the volume themselves.
    pub fn end_syncs(&self) {
        let mut s = self.syncs.lock();
        s.ended = true;
        s.helper = false;
        self.wanted.notify_all();
    }

    /// Why the volume stopped accepting syncs, if it did.
    pub fn poison(&self) -> Option<String> {
        self.syncs.lock().failed.clone()
    }

    /// Notes that the file has `len` bytes, which may not be durable.
    pub fn note_len(&self, len: u64) {
        self.len.fetch_max(len, SeqCst);
    }

    /// Makes the file at least `len` bytes long, of real blocks.
    ///
    /// # Errors
    /// Those of the system.
    pub fn grow(&self, len: u64) -> std::io::Result<()> {
        self.disk.grow(len)?;
        self.note_len(len);
        Ok(())
    }

    /// Cuts the file to `len` bytes. What was durable behind them is so no longer: a commit that
    /// grows the file again counts from here.
    ///
    /// # Errors
    /// Those of the system.
    pub fn cut(&self, len: u64) -> std::io::Result<()> {
        let mut s = self.syncs.lock();
        // One under way would count the length before.
        while s.running {
            self.finished.wait(&mut s);
        }
        self.disk.truncate(len)?;
        self.len.store(len, SeqCst);
        s.durable_len = s.durable_len.min(len);
        Ok(())
    }

    /// Before a commit whose last page ends at byte `end`: keeps what replay would have to make
    /// again to 64 MiB. Cost: none but if the file grew by that much since
    /// the last sync, then one.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub fn sync_growth(&self, end: u64) -> Result<()> {
        let durable = self.syncs.lock().durable_len;
        if end <= durable.saturating_add(MOST_UNSYNCED_GROWTH) { Ok(()) } else { self.sync() }
    }

    /// Writes `bytes`, whole pages, at `page`.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`].
    pub fn write_pages(&self, page: PageNo, bytes: &[u8]) -> Result<()> {
        let at = page.0 * self.page_size as u64;
        self.disk.write_at(at, bytes).map_err(|e| io_error(format!("writing page {page}"), e))
    }

    /// As [`Volume::write_pages`], past the page cache if that can be: for pages that
    /// will not be read from there soon and whose sync follows.
    ///
    /// # Errors
    /// As [`Volume::write_pages`].
    pub fn write_bulk(&self, page: PageNo, bytes: &[u8]) -> Result<()> {
        let at = page.0 * self.page_size as u64;
        self.disk.write_bulk(at, bytes).map_err(|e| io_error(format!("writing page {page}"), e))
    }

    /// Sets the device to work on what the page cache has of a run, or waits until it has none.
    ///
    /// # Errors
    /// [`Error::Io`]; the volume is then poisoned: what could not be written out may be marked
    /// clean, as after a failed sync.
    pub fn write_out(&self, run: PageRun, how: WriteOut) -> Result<()> {
        let size = self.page_size as u64;
        self.disk.write_out(run.start.0 * size, run.len * size, how).map_err(|e| {
            let why = format!("write-out of the volume: {e}");
            self.syncs.lock().failed.get_or_insert(why);
            io_error(format!("writing out {} pages at {}", run.len, run.start), e)
        })
    }

    /// The superblock as last written.
    pub fn superblock(&self) -> Superblock {
        self.superblock.lock().newest.clone()
    }

    /// Changes the superblock, writes it to the other slot and syncs. Nothing has changed
    /// unless it returns `Ok`; a failed sync poisons the volume. Cost: one write, one sync.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Poisoned`].
    pub fn write_superblock(&self, change: impl FnOnce(&mut Superblock)) -> Result<Superblock> {
        let mut current = self.superblock.lock();
        let mut next = current.newest.clone();
        change(&mut next);
        // It is written: no longer what a backup wrote.
        next.stamp = None;
        next.sequence = current.newest.sequence + 1;
        let other = !mutation::is(Mutation::R15Slot);
        let slot = SLOT_AT[if other { Superblock::slot_of(next.sequence) } else { 0 }];
        self.disk
            .write_at(slot, &next.encode())
            .map_err(|e| io_error(format!("writing the superblock at byte {slot}"), e))?;
        self.sync()?;
        let former = std::mem::replace(&mut current.newest, next.clone());
        current.older = Some(former);
        Ok(next)
    }

    /// Writes the newest superblock once more into its slot. If its first sync failed, the system
    /// may show what is not on the disk, and the next one goes over the copy that is (rule 7).
    /// Torn it is either as before, if it was on the disk, or the other copy serves. Cost: one
    /// write, one sync; nothing if the other copy is not valid or says the same.
    ///
    /// # Errors
    /// As [`Volume::write_superblock`].
    pub fn renew_superblock(&self) -> Result<()> {
        let slots = self.superblock.lock();
        let newest = &slots.newest;
        let alike =
            |o: &Superblock| Superblock { sequence: newest.sequence, ..o.clone() } == *newest;
        if slots.older.as_ref().is_none_or(alike) || mutation::is(Mutation::R07Superblock) {
            return Ok(());
        }
        let slot = SLOT_AT[Superblock::slot_of(newest.sequence)];
        let written = self.disk.write_at(slot, &newest.encode());
        written.map_err(|e| io_error(format!("writing the superblock at byte {slot}"), e))?;
        self.sync()
    }

    /// Before anything is punched out: both slots say that there may be holes, and name one
    /// replay position, so that with either of them what is free now is not read (rule 27).
    /// Cost: mostly nothing, at most two superblocks.
    ///
    /// # Errors
    /// As [`Volume::write_superblock`].
    pub fn announce_holes(&self) -> Result<()> {
        loop {
            let slots = self.superblock.lock();
            let replay = slots.newest.replay;
            let settled = slots.older.as_ref().is_some_and(|o| o.holes && o.replay == replay);
            if slots.newest.holes && (settled || mutation::is(Mutation::R27Slots)) {
                return Ok(());
            }
            drop(slots);
            self.write_superblock(|sb| sb.holes = true)?;
        }
    }

    /// Before the first mark of a backup: both slots say that there are marks. Cost: mostly nothing,
    /// at most two superblocks.
    ///
    /// # Errors
    /// As [`Volume::write_superblock`].
    pub fn announce_marks(&self) -> Result<()> {
        loop {
            let slots = self.superblock.lock();
            if slots.newest.marks && slots.older.as_ref().is_some_and(|older| older.marks) {
                return Ok(());
            }
            drop(slots);
            self.write_superblock(|sb| sb.marks = true)?;
        }
    }

    /// Gives the blocks of a run back to the file system. Returns whether that can be done.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn punch(&self, run: PageRun) -> Result<bool> {
        let size = self.page_size as u64;
        self.disk
            .punch(run.start.0 * size, run.len * size)
            .map_err(|e| io_error(format!("punching out {} pages at {}", run.len, run.start), e))
    }

    /// Gives a run blocks where holes may be (rule 29). Cost: one call, of some microseconds
    /// if there are blocks.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`].
    pub fn fill_holes(&self, run: PageRun) -> Result<()> {
        let size = self.page_size as u64;
        self.disk
            .fill_holes(run.start.0 * size, run.len * size)
            .map_err(|e| io_error(format!("filling {} pages at {}", run.len, run.start), e))
    }
}

impl Volume {
    /// Writes the second copy of the superblock of a store whose creation a crash cut short
    /// between the two. Cost: nothing for any other store.
    ///
    /// # Errors
    /// As [`Volume::write_superblock`].
    pub fn complete_creation(&self) -> Result<()> {
        if self.superblock().sequence != 1 {
            return Ok(());
        }
        let mut other = vec![0; SLOT_BYTES];
        let at = SLOT_AT[Superblock::slot_of(2)];
        self.disk
            .read_at(at, &mut other)
            .map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
        if other.iter().all(|b| *b == 0) {
            self.write_superblock(|_| {})?;
        }
        Ok(())
    }
}

impl DataFile for Volume {
    fn ask_for_sync(&self) -> u64 {
        self.ask_for_sync()
    }

    fn wait_synced(&self, ticket: u64) -> Result<()> {
        self.wait_synced(ticket)
    }

    fn show_durable(&self, durable: Lsn) {
        self.disk.show_durable(Some(durable.0));
    }
}

/// What opening a store reads lies before.
const FRONT_BYTES: u64 = 128 << 10;

/// Both slots as read, and which one counts.
#[derive(Debug)]
pub struct Slots {
    /// The valid superblock with the higher sequence number.
    pub best: Superblock,
    /// The one before it, if that is valid too.
    pub older: Option<Superblock>,
    /// Whether a feature asks that this build does not write.
    pub read_only: bool,
}

/// Whether both copies of the superblock can be read, so that none later than the newer one
/// was ever there.
///
/// # Errors
/// [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`].
pub fn slots_are_whole(disk: &dyn Disk) -> Result<bool> {
    for at in SLOT_AT {
        let mut bytes = vec![0; SLOT_BYTES];
        disk.read_at(at, &mut bytes)
            .map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
        if Superblock::decode(&bytes)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The newest superblock, as it lies there now; `None` if neither copy is whole. Cost: two reads.
///
/// # Errors
/// [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`].
pub fn newest_superblock(disk: &dyn Disk) -> Result<Option<Superblock>> {
    let mut newest: Option<Superblock> = None;
    let mut bytes = [0; SLOT_BYTES];
    for at in SLOT_AT {
        disk.read_at(at, &mut bytes)
            .map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
        let found = Superblock::decode(&bytes)?;
        newest = newest.into_iter().chain(found).max_by_key(|sb| sb.sequence);
    }
    Ok(newest)
}

/// Reads the superblocks of a store.
///
/// # Errors
/// [`Error::NotAStore`] if neither slot looks like a Holdall store,
/// [`Error::Corrupt`] if both are damaged, [`Error::Unsupported`], [`Error::Io`].
pub fn read_slots(disk: &dyn Disk, name: &str) -> Result<Slots> {
    let length = disk.len().map_err(|e| Error::io(format!("reading the length of {name}"), e))?;
    // Both slots, the root and the first directory come in one read of the device.
    disk.read_hint(0, FRONT_BYTES.min(length))
        .map_err(|e| Error::io(format!("reading the front of {name}"), e))?;
    let not_a_store = |detail: &str| Error::NotAStore { path: name.into(), detail: detail.into() };
    let mut valid: Vec<(Superblock, bool)> = Vec::new();
    let mut magic = false;
    for at in SLOT_AT {
        if at + SLOT_BYTES as u64 > length {
            continue;
        }
        let mut bytes = vec![0; SLOT_BYTES];
        disk.read_at(at, &mut bytes)
            .map_err(|e| Error::io(format!("reading the superblock of {name} at {at}"), e))?;
        magic |= bytes.starts_with(&holdall_core::superblock::MAGIC);
        if let Some(sb) = Superblock::decode(&bytes)? {
            valid.push((sb, Superblock::read_only_features(&bytes)));
        }
    }
    valid.sort_by_key(|(sb, _)| sb.sequence);
    let best = valid.pop();
    let older = valid.pop().map(|(sb, _)| sb);
    match best {
        Some((best, read_only)) => Ok(Slots { best, older, read_only }),
        None if !magic => Err(not_a_store("it does not begin as one")),
        None => Err(Error::corrupt(format!("{name}: superblock"), "both copies are damaged")),
    }
}

#[cfg(test)]
mod tests {
    use crate::txn::fixture;
    use holdall_testkit::{CostModel, CountedDisk, SparseDisk};
    use std::sync::Arc;

    #[test]
    fn what_was_cut_off_is_not_durable_any_more() {
        let disk = Arc::new(CountedDisk::new(Arc::new(SparseDisk::new()), CostModel::default()));
        let volume = fixture::volume(disk.clone(), 4096);
        volume.grow(200 << 20).unwrap();
        volume.sync().unwrap();
        let synced = disk.stats().syncs;
        volume.sync_growth(190 << 20).unwrap();
        assert_eq!(disk.stats().syncs, synced, "the file is so long after a power cut");
        volume.cut(1 << 20).unwrap();
        volume.grow(200 << 20).unwrap();
        volume.sync_growth(190 << 20).unwrap();
        assert_eq!(disk.stats().syncs, synced + 1);
    }
}
