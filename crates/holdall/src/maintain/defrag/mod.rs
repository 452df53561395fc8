//! Defragmentation: an ordinary user of the store that moves records and segments.
//!
//! Owns: [`Store::defrag`]. Every move is a small transaction of the usual
//! kind, so a kill at any moment leaves a sound store, and what is done is known from the
//! store's own state: nothing is kept beside it. No move needs the volume to grow. Each brings
//! a measure down, pages with records or pieces of objects, so that it ends.
//!
//! Threads: any; writers and readers go on. A snapshot open for long keeps what was moved away
//! from being free.

mod background;
mod heap;
mod lower;
mod segments;

pub use background::Defragmenter;
pub(crate) use lower::line;

use crate::engine::GaveBack;
use crate::engine::give_back::GiveBack;
use crate::metrics::Event;
use crate::store::Store;
use crate::txn::Cause;
use crate::write::empty_all_dropped;
use holdall_core::{Error, Result};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How [`Store::defrag`] works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DefragOptions {
    /// Bytes a second that it may move; none: as fast as it can.
    pub rate: Option<u64>,
    /// Whether the pieces of objects are joined, for faster reads. Without it only what makes
    /// the file smaller is moved.
    pub join: bool,
}

impl Default for DefragOptions {
    fn default() -> Self {
        Self { rate: None, join: true }
    }
}

/// What a defragmentation has moved so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Moved {
    /// Heap pages emptied.
    pub heap_pages: u64,
    /// Bytes of records moved out of them.
    pub record_bytes: u64,
    /// Objects of which pieces were joined.
    pub objects: u64,
    /// Pieces of objects that are no more.
    pub pieces: u64,
    /// Bytes of pieces joined, or moved towards the front of the file.
    pub segment_bytes: u64,
    /// Bytes of other pages moved towards the front of the file.
    pub page_bytes: u64,
}

impl Moved {
    /// Both together.
    fn plus(&self, other: &Self) -> Self {
        Self {
            heap_pages: self.heap_pages + other.heap_pages,
            record_bytes: self.record_bytes + other.record_bytes,
            objects: self.objects + other.objects,
            pieces: self.pieces + other.pieces,
            segment_bytes: self.segment_bytes + other.segment_bytes,
            page_bytes: self.page_bytes + other.page_bytes,
        }
    }

    /// Bytes moved in all.
    pub fn bytes(&self) -> u64 {
        self.record_bytes + self.segment_bytes + self.page_bytes
    }
}

/// What a defragmentation did, and what it left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DefragReport {
    /// What was moved.
    pub moved: Moved,
    /// Objects in several pieces that were left because copies share them.
    pub shared: u64,
    /// Objects in several pieces for which no free run was long enough.
    pub no_room: u64,
    /// Moves left because writers needed the space of every state that they were begun from
    /// ([`Options::pinned_bytes`](crate::Options::pinned_bytes)); another call finds them again.
    pub given_up: u64,
    /// Heap pages whose records found no room elsewhere.
    pub stuck_pages: u64,
    /// Bytes of blocks that the volume took before.
    pub blocks_before: u64,
    /// Bytes of blocks that it takes now.
    pub blocks_after: u64,
    /// What of the free space could not be given back, and why.
    pub gave_back: GaveBack,
    /// Whether it was stopped before it was done.
    pub stopped: bool,
}

/// Bytes freed by moves that wait for a checkpoint before one is made.
const CHECKPOINT_BYTES: u64 = 32 << 20;

/// A defragmentation under way.
struct Work<'a> {
    store: &'a Store,
    options: DefragOptions,
    progress: &'a mut dyn FnMut(&Moved) -> ControlFlow<()>,
    report: DefragReport,
    begun: Instant,
    /// Pages in a row whose records find no room, after which a collection is left.
    most_in_vain: u64,
    /// Bytes moved when the last checkpoint was made.
    checkpointed: u64,
    /// Pages of the parts that an object may be cut into to move down.
    least_part: u64,
    /// A joined piece for which there is no room may make the file longer, which is cut afterwards.
    may_grow: bool,
}

impl Store {
    /// Puts the store in order while it runs: empties sparse heap pages, joins the pieces of
    /// objects that lie in several, gives free space back. Objects keep their ids, bytes and
    /// versions. For a joined piece of up to 16 MiB without room the file grows, if it may, and is
    /// cut again; copies that share pieces are left. `progress` is called at each move, between
    /// the copy and the exchange, and may stop it; it may use the store.
    ///
    /// Cost: reads all handles and the records of objects; reads and writes once what it moves,
    /// in transactions of 16 KiB of records, or up to 16 MiB of an object's bytes written before.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let store = holdall::Store::in_memory()?;
    /// # store.write(|tx| (0..500).try_for_each(|i| tx.put(format!("{i}"), &[7; 1000]).map(drop)))?;
    /// store.write(|tx| (50..500).try_for_each(|i| tx.remove(&format!("{i}")).map(drop)))?;
    /// let report = store.defrag(&holdall::DefragOptions::default(), &mut |moved| {
    ///     println!("{} bytes moved", moved.bytes());
    ///     ControlFlow::Continue(())
    /// })?;
    /// # assert!(!report.stopped);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::Io`](crate::Error::Io), [`Error::Poisoned`](crate::Error::Poisoned). Moves made
    /// before have happened. Free space that cannot be given back is no error but in the report,
    /// and so is what writers kept from being moved: never
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld).
    pub fn defrag(
        &self,
        options: &DefragOptions,
        progress: &mut dyn FnMut(&Moved) -> ControlFlow<()>,
    ) -> Result<DefragReport> {
        self.inner.check_writable()?;
        let disk = self.inner.pager.volume.disk.clone();
        let blocks = || disk.allocated().map_err(|e| Error::io("asking for the file's blocks", e));
        let mut work = Work::new(self, *options, progress);
        // Else the pieces are cut again for the file's length.
        work.may_grow = disk.can_punch();
        work.report.blocks_before = blocks()?;
        self.inner.bring_home_for_maintenance()?;
        empty_all_dropped(&self.inner)?;
        let mut flow = work.empty_heaps()?;
        work.checkpoint()?;
        if flow.is_continue() && options.join {
            flow = work.join_segments(&mut 0, u32::MAX)?;
        }
        self.inner.checkpoint(Cause::Maintenance)?;
        let mut gave_back = self.inner.give_back(GiveBack::ALL)?;
        if flow.is_continue() {
            let shape =
                |work: &Work<'_>| (work.report.moved.bytes(), self.inner.alloc.stats().spaces);
            let before = shape(&work);
            flow = work.lower(gave_back.cannot_punch)?;
            // What failed stands in the report until another call tries it again.
            if gave_back.cannot_punch || shape(&work) != before {
                gave_back = self.inner.give_back(GiveBack::ALL)?;
            }
        }
        work.report.stopped = flow.is_break();
        let mut report = work.report;
        report.gave_back = gave_back;
        report.blocks_after = blocks()?;
        let (bytes, stopped) = (report.moved.bytes(), report.stopped);
        Event::Defragmentation { bytes, stopped }.tell();
        Ok(report)
    }
}

impl<'a> Work<'a> {
    fn new(
        store: &'a Store,
        options: DefragOptions,
        progress: &'a mut dyn FnMut(&Moved) -> ControlFlow<()>,
    ) -> Self {
        let (report, begun) = (DefragReport::default(), Instant::now());
        let most_in_vain = u64::MAX;
        Self {
            store,
            options,
            progress,
            report,
            begun,
            most_in_vain,
            checkpointed: 0,
            least_part: 1,
            may_grow: false,
        }
    }

    /// After a move: keeps the pace, and asks whether to go on.
    fn moved(&mut self) -> Result<ControlFlow<()>> {
        let flow = self.tell();
        if flow.is_continue() {
            self.pace()?;
        }
        Ok(flow)
    }

    /// Says what was moved so far, and asks whether to go on.
    fn tell(&mut self) -> ControlFlow<()> {
        (self.progress)(&self.report.moved)
    }

    /// Sleeps if it was faster than the options say.
    fn pace(&mut self) -> Result<()> {
        if self.report.moved.bytes() - self.checkpointed > CHECKPOINT_BYTES {
            self.checkpoint()?;
        }
        if let Some(rate) = self.options.rate.filter(|rate| *rate > 0) {
            let due = self.report.moved.bytes() as f64 / rate as f64;
            let early = due - self.begun.elapsed().as_secs_f64();
            if early > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(early.min(MOST_PAUSE)));
            }
        }
        Ok(())
    }

    /// Makes free what was moved away.
    fn checkpoint(&mut self) -> Result<()> {
        self.checkpointed = self.report.moved.bytes();
        self.store.inner.checkpoint(Cause::Maintenance)
    }
}

/// Seconds after which a slow pace asks again whether to go on.
const MOST_PAUSE: f64 = 1.0;
