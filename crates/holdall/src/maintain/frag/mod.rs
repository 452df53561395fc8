//! The report on fragmentation: how a store's bytes lie, what that costs and what helps.
//!
//! Owns: [`Store::frag`] and the order of its walk. Reads one snapshot and changes nothing: space
//! directories, heap pages with their maps and records, and nodes of large objects; never the
//! objects' data. Memory: a byte per page of one buddy space, the slices of one object, 24 bytes
//! per range that copies share, and the map.

mod contract;
mod heap;
mod histogram;
mod judge;
mod map;
mod objects;
mod report;
mod spaces;
mod sums;
mod walk;

pub use report::{
    Action, Cell, CollectionHeap, Contract, CutObject, FragReport, FreeRuns, Geometry, HeapReport,
    ObjectPieces, Remedy, Score, SizeClass, VolumeMap,
};

use crate::store::Store;
use holdall_core::Result;
use walk::Walk;

impl Store {
    /// How fragmented the newest state is, and what would help; other transactions go on
    /// meanwhile. `progress` gets bytes of pages done and in all. Of a store opened for reading
    /// only, if free space may lack blocks, the longest free runs are taken for holes.
    ///
    /// The score is the product of two shares, 1 is best:
    ///
    /// - pieces: the fewest pieces that each large object could have ÷ those it has, the mean
    ///   over objects weighted by bytes;
    /// - space: needed ÷ (needed + free bytes with blocks beyond the spare + heap slack), if
    ///   needed are the bytes of pages in use without that slack.
    ///
    /// Cost: reads every directory, heap page and tree node once; no data of large objects.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put("film", &[7; 3_000_000]))?;
    /// let report = store.frag(&mut |_, _| {})?;
    /// assert_eq!((report.objects.pieces, report.objects.excess), (1, 0));
    /// assert!(report.contract.holds && report.score.value > 0.5);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`](holdall_core::Error::Corrupt) at the first damage met,
    /// [`Error::Io`](holdall_core::Error::Io), and
    /// [`Error::SnapshotTooOld`](holdall_core::Error::SnapshotTooOld) if the disk has no room for
    /// what writers changed meanwhile.
    pub fn frag(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<FragReport> {
        self.report(|store| store.frag_once(progress))
    }

    fn frag_once(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<FragReport> {
        let reader = self.read_newest()?;
        let mut walk = Walk::new(&self.inner, &reader.state, progress)?;
        let collections = walk.collections()?;
        walk.spaces()?;
        walk.sharing()?;
        for (name, collection) in &collections {
            walk.heap(name, collection)?;
        }
        walk.structures();
        let pinned = self.inner.alloc.pinned_pages();
        Ok(walk.finish(pinned))
    }
}
