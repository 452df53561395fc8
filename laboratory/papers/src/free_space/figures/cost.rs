//! What time is charged: disks and processors. Owns constants only.

use crate::free_space::workload::Sample;
use holdall_testkit::{CostModel, SeekRule};

/// A disk of the class of the paper's Seagate ST12400N: 9 ms of arm and half a turn at 5411 per
/// minute for an access that does not begin where the last one ended; 3.5 MB/s.
pub(super) const PAPER_DISK: CostModel = CostModel {
    seek_ms: 14.5,
    ms_per_kib: 1024.0 / 3.5e6 * 1000.0,
    page_size: 8192,
    seeks: SeekRule::WhenNotSequential,
};

/// Seconds of the paper's processor per object: its fills took "just over two hours" for about
/// 10.1 million objects, of which the disk takes about 600 s.
const PAPER_OBJECT: f64 = 0.65e-3;
/// Seconds of the paper's processor per inventory entry: FF's 12 hours for 4·10⁹ entries, less
/// the share of half a million objects. An upper bound: the paper says "over" 4·10⁹.
const PAPER_ENTRY: f64 = 10.7e-6;

/// Whose processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cpu {
    /// This one, as measured, the workload's own share included.
    Measured,
    /// The paper's, from counts and the two constants above.
    Paper,
}

impl Cpu {
    /// Seconds of processor time up to a sample.
    pub(super) fn time(self, s: &Sample) -> f64 {
        match self {
            Self::Measured => s.cpu,
            Self::Paper => {
                let objects = s.counters.created + s.counters.deleted;
                objects as f64 * PAPER_OBJECT + s.counters.looks.entries as f64 * PAPER_ENTRY
            }
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Measured => "disk of the model + measured processor time",
            Self::Paper => "disk of the model + the paper's processor, modelled",
        }
    }
}

/// Seconds up to a sample: disk and processor, one after the other.
pub(super) fn time(s: &Sample, disk: &CostModel, cpu: Cpu) -> f64 {
    s.disk_time(disk) + cpu.time(s)
}
