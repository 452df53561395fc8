//! Placement on a disk of today: one workload under many algorithms, n, u and page sizes, and
//! the recommendation that follows. Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::fetches;
use super::runs::Share;
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::{Options, Release};
use crate::free_space::workload::{Churn, Run, Sample, Sizes, Victims, churn};
use crate::kit::model;
use anyhow::Result;
use holdall_instrument::draw::percent;
use holdall_instrument::experiment::Settings;
use holdall_instrument::price::Price;
use holdall_testkit::CostModel;

/// Bytes of the pool in all sweeps; the file has 25 times as many.
const POOL: usize = 1000 * 8192;

/// How many objects there are when the million operations begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// A million: half of them are replaced.
    Large,
    /// A quarter of a million: all are replaced twice, so that u is reached. The pool is a
    /// quarter too.
    Settled,
}

/// A setting to run.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    label: String,
    kind: Kind,
    page_size: usize,
    size: Size,
}

impl Setting {
    /// An algorithm on the large file.
    pub(super) fn large(kind: Kind) -> Self {
        Self { label: kind.name(), kind, page_size: 8192, size: Size::Large }
    }

    /// A setting on the settled file.
    pub(super) fn settled(kind: Kind, page_size: usize) -> Self {
        let label = format!("{}, {} KiB, settled", kind.name(), page_size / 1024);
        Self { label, kind, page_size, size: Size::Settled }
    }

    fn disk(&self) -> CostModel {
        CostModel { page_size: self.page_size as u32, ..PAPER_DISK }
    }

    /// A million operations; everything a twentieth when quick.
    fn params(&self, settings: &Settings<'_>, victims: Victims) -> Churn {
        let scale = if settings.quick { 20 } else { 1 };
        let part = if self.size == Size::Large { 1 } else { 4 };
        Churn {
            objects: 1_000_000 / part / scale,
            sizes: Sizes::Uniform,
            streams: 1,
            transactions: 1_000_000 / 12 / scale,
            batch: (8, 16),
            random: true,
            victims,
            filler: Kind::Ao(8),
            options: Options {
                page_size: self.page_size,
                pool_pages: POOL / self.page_size / (part * scale) as usize,
                max_pages: u32::MAX / 2,
                release: Release::Lazy,
            },
            disk: self.disk(),
            seed: settings.seed,
        }
    }

    fn point(&self, run: &Run, price: Price) -> Point {
        let (a, z) = (run.first(), run.last());
        let (disk, paper_disk) = (model::of(&price, self.page_size), self.disk());
        let ops =
            (z.counters.created + z.counters.deleted) - (a.counters.created + a.counters.deleted);
        let per = |of: &dyn Fn(&Sample) -> f64, unit: f64| {
            (of(&z) - of(&a)) * unit / (ops as f64).max(1.0)
        };
        Point {
            label: self.label.clone(),
            kind: run.kind,
            page_size: self.page_size,
            size: self.size,
            utilization: z.utilization(),
            disk: per(&|s| s.disk_time(&disk), 1e6),
            cpu: per(&|s| s.cpu, 1e6),
            paper: per(&|s| time(s, &paper_disk, Cpu::Paper), 1e3),
            create_reads: fetches(run),
            memory: z.memory,
            scan: f64::from(z.pages) * self.page_size as f64 / (price.mb_per_s * 1e6) * 1e3,
        }
    }
}

/// What a run comes to.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) label: String,
    pub(super) kind: Kind,
    pub(super) page_size: usize,
    pub(super) size: Size,
    pub(super) utilization: f64,
    /// Microseconds per operation, disk of today, and of measured processor time.
    disk: f64,
    pub(super) cpu: f64,
    /// Milliseconds per operation on the paper's disk and processor.
    pub(super) paper: f64,
    create_reads: f64,
    pub(super) memory: usize,
    /// Milliseconds to read the whole file in sequence today.
    scan: f64,
}

impl Point {
    /// Microseconds per operation.
    pub(super) fn total(&self) -> f64 {
        self.disk + self.cpu
    }

    pub(super) const HEAD: [&'static str; 9] = [
        "setting",
        "utilization",
        "µs per operation, disk",
        "processor",
        "total",
        "paper's machine, ms",
        "create reads per object",
        "scan of the file, ms",
        "memory bytes",
    ];

    pub(super) fn row(&self) -> Vec<String> {
        vec![
            self.label.clone(),
            percent(self.utilization),
            format!("{:.1}", self.disk),
            format!("{:.2}", self.cpu),
            format!("{:.1}", self.total()),
            format!("{:.2}", self.paper),
            format!("{:.4}", self.create_reads),
            format!("{:.0}", self.scan),
            self.memory.to_string(),
        ]
    }
}

/// Runs settings one after the other.
pub(super) fn sweep(
    settings: &Settings<'_>,
    victims: Victims,
    all: &[Setting],
) -> Result<Vec<Point>> {
    let price = settings.today()?.price;
    let mut points = Vec::new();
    for (n, setting) in all.iter().enumerate() {
        let share = Share { done: n as u64, of: all.len() as u64, settings };
        let params = setting.params(settings, victims);
        let run = churn(setting.kind, &params, &|done| share.tell(done, params.transactions))?;
        points.push(setting.point(&run, price));
    }
    Ok(points)
}

/// Of the points within 5 % of the fastest the one with the highest utilization.
pub(super) fn recommended<'a>(
    points: impl Iterator<Item = &'a Point> + Clone,
) -> Option<&'a Point> {
    let best = points.clone().map(Point::total).fold(f64::INFINITY, f64::min);
    let near = points.filter(|p| p.total() <= 1.05 * best);
    near.max_by(|a, b| a.utilization.total_cmp(&b.utilization))
}
