//! Placement today: a larger file, more operations, a disk of today; and what that makes of n, u
//! and the page size. Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{created, deleted, fetches};
use super::runs::{PAPER_KINDS, Share};
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::{Options, Release};
use crate::free_space::workload::{Churn, Sample, Sizes, churn};
use crate::kit::notes;
use crate::kit::{
    model,
    plot::{from_zero, heads},
};
use anyhow::Result;
use holdall_instrument::draw::{self, axis_in, percent, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_testkit::CostModel;

/// Bytes of the pool; the file has 25 times as many.
const POOL: usize = 1000 * 8192;

/// A setting to run.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting {
    kind: Kind,
    page_size: usize,
    /// A quarter of the objects and of the pool, so that all objects are replaced twice and the
    /// file comes down to u.
    settled: bool,
}

impl Setting {
    fn label(&self) -> String {
        let settled = || format!("{}, {} KiB, settled", self.kind.name(), self.page_size / 1024);
        if self.settled { settled() } else { self.kind.name() }
    }

    /// A million operations; everything a twentieth when quick.
    fn params(&self, settings: &Settings<'_>) -> Churn {
        let scale = if settings.quick { 20 } else { 1 };
        let part = if self.settled { 4 } else { 1 };
        Churn {
            objects: 1_000_000 / part / scale,
            sizes: Sizes::Uniform,
            streams: 1,
            transactions: 1_000_000 / 12 / scale,
            batch: (8, 16),
            random: true,
            filler: Kind::Ao(8),
            options: Options {
                page_size: self.page_size,
                pool_pages: POOL / self.page_size / (part * scale) as usize,
                max_pages: u32::MAX / 2,
                release: Release::Lazy,
            },
            disk: CostModel { page_size: self.page_size as u32, ..PAPER_DISK },
            seed: settings.seed,
        }
    }
}

/// The algorithms on the large file; then n, u and page size of HY around (8, 87, 8 KiB), each
/// varied alone, on the settled one, in order of page size, n and u.
fn all_settings(quick: bool) -> Vec<Setting> {
    let (n, u, pages): (&[usize], &[f64], &[usize]) = if quick {
        (&[1, 32], &[0.94], &[16384])
    } else {
        let u = &[0.70, 0.80, 0.90, 0.94, 0.97];
        (&[1, 2, 4, 16, 32, 64, 128, 256], u, &[4096, 16384, 32768])
    };
    let mut varied = vec![(8192, 8, 0.875)];
    varied.extend(n.iter().map(|&n| (8192, n, 0.875)));
    varied.extend(u.iter().map(|&u| (8192, 8, u)));
    varied.extend(pages.iter().map(|&size| (size, 8, 0.875)));
    varied.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let large = |kind| Setting { kind, page_size: 8192, settled: false };
    let settled = |(page_size, n, u)| Setting { kind: Kind::Hy(n, u), page_size, settled: true };
    let algorithms = PAPER_KINDS.into_iter().chain([Kind::HyEngine(8, 87)]).map(large);
    algorithms.chain(varied.into_iter().map(settled)).collect()
}

const COLUMNS: &str = "setting | utilization | µs per operation | of them processor | paper's \
                       machine, ms | create reads per object";

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let all = all_settings(settings.quick);
    let disk = settings.today()?;
    let (mut rows, mut scatter) = (Vec::new(), Vec::new());
    for (n, setting) in all.iter().enumerate() {
        let share = Share { done: n as u64, of: all.len() as u64, settings };
        let params = setting.params(settings);
        let run = churn(setting.kind, &params, &|done| share.tell(done, params.transactions))?;
        let objects = |s: &Sample| created(s) + deleted(s);
        let per = |of: &dyn Fn(&Sample) -> f64| run.rate(of, objects);
        let model = model::of(&disk.price, setting.page_size);
        let us = per(&|s| (s.disk_time(&model) + s.cpu) * 1e6);
        let full = run.last().utilization();
        rows.push(vec![
            setting.label(),
            percent(full),
            format!("{us:.1}"),
            format!("{:.2}", per(&|s| s.cpu * 1e6)),
            format!("{:.2}", per(&|s| time(s, &params.disk, Cpu::Paper) * 1e3)),
            format!("{:.4}", fetches(&run)),
        ]);
        scatter.push(draw::series(setting.label(), vec![(full * 100.0, us)]));
    }
    // The algorithms, then the settings of HY.
    let settled = scatter.split_off(PAPER_KINDS.len() + 1);
    let panel = |id, title, series| {
        let x = axis_in("utilization, %", 50.0, 100.0);
        from_zero([id, title], x, "µs per operation", series)
    };
    let panels = vec![
        panel("algorithms", "Time and space", scatter),
        panel("settings", "Settings of HY, settled", settled),
    ];
    let tables = vec![table("settings", "On a disk of today", &heads(COLUMNS), rows), disk.table()];
    let notes = [vec![disk.note()], notes::of("mcauliffe-modern", &[])].concat();
    Ok(Outcome { panels, tables, claims: Vec::new(), notes })
}
