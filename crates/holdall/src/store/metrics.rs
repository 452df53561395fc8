//! Figures of what the store does: [`Store::metrics`].

use super::Store;
use crate::metrics::Distribution;
use crate::txn::Checkpoints;

/// What a store has done since it was opened. All of it is counted always; times are in nanoseconds.
///
/// [`Store::stat`] describes the store itself, and reads pages for it; this reads counters only.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Metrics {
    /// Objects that were looked up, by name or by OID, to be read.
    pub lookups: u64,
    /// Pages in memory that these looked at.
    pub page_hits: u64,
    /// Pages that anybody read from the file.
    pub page_reads: u64,
    /// Pages newer in memory than in place.
    pub dirty_pages: u64,
    /// Pages in memory, old versions included, in bytes.
    pub cached_page_bytes: u64,
    /// Commits in each group that was written to the log: those that shared a sync.
    pub group_commits: Distribution,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Times of the log's writes, with their syncs and with that of data in place that they list.
    pub log_times: Distribution,
    /// Times that calls waited until what they had committed was durable.
    pub commit_waits: Distribution,
    /// Times that transactions waited for another, if it was there when they began.
    pub writer_waits: Distribution,
    /// Times of syncs of the store's file.
    pub sync_times: Distribution,
    /// Times of checkpoints that came to their end.
    pub checkpoint_times: Distribution,
    /// Checkpoints that began, by cause, and the pages that they wrote.
    pub checkpoints: Checkpoints,
    /// Snapshots that were given up.
    pub readers_given_up: u64,
    /// Bytes that scrubs held against their checksums.
    pub scrubbed_bytes: u64,
    /// Scrubs of the whole store that came to their end.
    pub scrubs: u64,
    /// What is damaged, as the last scrub or the one under way has found.
    pub damage: u64,
    /// Work in the background that failed: it is tried again, or the next commit meets the cause.
    pub background_failures: u64,
    /// The last such failure.
    pub last_failure: Option<String>,
}

impl Store {
    /// What the store has done since it was opened. Cost: no page is read, and nobody waits.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put("greeting", b"hello"))?;
    /// store.get("greeting")?;
    /// let metrics = store.metrics();
    /// assert_eq!((metrics.lookups, metrics.group_commits.count()), (1, 1));
    /// println!("half of the commits took up to {} ns", metrics.commit_waits.quantile(0.5));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        let inner = self.opened();
        let pager = &inner.pager;
        let (lookups, page_hits) = pager.looks.sum();
        let (log, pool) = (&pager.log.times, pager.pool_stats());
        let (background_failures, last_failure) = inner.failures.all();
        let (scrubbed_bytes, scrubs, damage) = inner.scrubbed.all();
        Metrics {
            lookups,
            page_hits,
            page_reads: pool.misses,
            dirty_pages: pool.dirty,
            cached_page_bytes: pool.pages * pager.page_size() as u64,
            group_commits: log.group_commits.load(),
            log_bytes: log.bytes.load(std::sync::atomic::Ordering::Relaxed),
            log_times: log.writes.load(),
            commit_waits: log.waits.load(),
            writer_waits: pager.writer_waits(),
            sync_times: pager.volume.sync_times(),
            checkpoint_times: pager.checkpoint_times(),
            checkpoints: pager.checkpoints(),
            readers_given_up: pager.horizon.given_up(),
            scrubbed_bytes,
            scrubs,
            damage,
            background_failures,
            last_failure,
        }
    }
}
