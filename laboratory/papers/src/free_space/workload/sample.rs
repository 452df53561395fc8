//! What a run leaves behind: samples of its counters, for the figures to take differences of.
//! Owns no state. No threads.

use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::Counters;
use crate::free_space::volume::Purpose;
use holdall_testkit::{CostModel, DiskStats};

/// Counters at one moment; all but the first five fields count from the run's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// Pages of the file.
    pub pages: u32,
    /// Objects that live.
    pub live: u64,
    /// Their bytes, without slots.
    pub bytes: u64,
    /// Usable bytes of a page.
    pub usable: usize,
    /// Bytes of transient memory of the algorithm.
    pub memory: usize,
    /// Transactions committed.
    pub transactions: u64,
    /// Counters of the file.
    pub counters: Counters,
    /// Counters of the disk.
    pub disk: DiskStats,
    /// Processor time in seconds, the workload's own included.
    pub cpu: f64,
}

impl Sample {
    /// Bytes of objects and their slots ÷ usable bytes of the file's pages.
    pub fn utilization(&self) -> f64 {
        let used = self.bytes + self.live * crate::free_space::page::SLOT as u64;
        used as f64 / (f64::from(self.pages) * self.usable as f64).max(1.0)
    }

    /// Pages read from the disk for `purpose`.
    pub fn reads(&self, purpose: Purpose) -> u64 {
        self.counters.pool.read_for(purpose)
    }

    /// Time of the disk in seconds by `model`, whose rule of seeks must be the run's or
    /// [`holdall_testkit::SeekRule::EveryAccess`].
    pub fn disk_time(&self, model: &CostModel) -> f64 {
        let mut stats = self.disk;
        if model.seeks == holdall_testkit::SeekRule::EveryAccess {
            stats.seeks = stats.reads + stats.writes;
        }
        model.time_ms(&stats) / 1000.0
    }
}

/// A run of one algorithm.
#[derive(Debug, Clone)]
pub struct Run {
    /// The algorithm.
    pub kind: Kind,
    /// Samples in order of time, the first at the start.
    pub samples: Vec<Sample>,
    /// Ended before the volume was full, as told to.
    pub cut: bool,
}

impl Run {
    /// The sample at the start.
    pub fn first(&self) -> Sample {
        self.samples.first().copied().unwrap_or_default()
    }

    /// The sample at the end.
    pub fn last(&self) -> Sample {
        self.samples.last().copied().unwrap_or_default()
    }

    /// For each sample but the first: x, and the growth of `a` ÷ the growth of `b` since the
    /// sample before.
    pub fn rates(
        &self,
        x: impl Fn(&Sample) -> f64,
        a: impl Fn(&Sample) -> f64,
        b: impl Fn(&Sample) -> f64,
    ) -> Vec<(f64, f64)> {
        let pairs = self.samples.windows(2);
        let rate = |w: &[Sample]| (x(&w[1]), (a(&w[1]) - a(&w[0])) / (b(&w[1]) - b(&w[0])));
        pairs.map(rate).filter(|(_, y)| y.is_finite()).collect()
    }

    /// The same over the whole run.
    pub fn rate(&self, a: impl Fn(&Sample) -> f64, b: impl Fn(&Sample) -> f64) -> f64 {
        let (first, last) = (self.first(), self.last());
        (a(&last) - a(&first)) / (b(&last) - b(&first))
    }
}
