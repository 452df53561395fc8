//! Appendix A: append-only tends to a utilization of 1/H_k, k objects to a page. Owns no state.

use super::cost::PAPER_DISK;
use super::parts::points;
use super::runs::Share;
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::{Options, Release};
use crate::free_space::page::SLOT;
use crate::free_space::workload::{Churn, Run, Sizes, churn};
use crate::kit::{claims, notes};
use anyhow::Result;
use holdall_instrument::draw::{self, axis, axis_in, percent, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Usable bytes of a page of 8 KiB.
const USABLE: usize = 8108;
/// Objects per page wanted; the size that comes nearest is taken.
const WANTED: [usize; 6] = [8, 16, 32, 64, 128, 256];

fn harmonic(k: u64) -> f64 {
    (1..=k).map(|i| 1.0 / i as f64).sum()
}

/// The utilization the appendix's sum gives before it lets N go to infinity.
fn exact(k: u64, pages: u64) -> f64 {
    let p = 1.0 - 1.0 / pages as f64;
    let mut sum = 0.0;
    for i in 0_i32.. {
        let empty = (1.0 - p.powi(i)).powf(k as f64);
        if 1.0 - empty < 1e-9 {
            break;
        }
        sum += 1.0 - empty;
    }
    pages as f64 / sum
}

struct Case {
    k: u64,
    size: u16,
    pages: u64,
    rounds: u64,
}

impl Case {
    fn new(wanted: usize, quick: bool) -> Self {
        let size = USABLE / wanted - SLOT;
        let k = (USABLE / (size + SLOT)) as u64;
        let pages = if quick { 100 } else { 1000 };
        // An object lives N rounds on the average; a page outlives its k objects, which takes
        // N ln k rounds, and the sum has settled some N later.
        let rounds = (pages as f64 * ((k as f64).ln() + 3.0)) as u64;
        Self { k, size: size as u16, pages, rounds }
    }

    fn run(&self, settings: &Settings<'_>, share: &Share<'_>) -> Result<Run> {
        let params = Churn {
            objects: self.k * self.pages,
            sizes: Sizes::Fixed(self.size),
            streams: 1,
            transactions: 2 * self.rounds,
            batch: (self.k as u32, self.k as u32),
            random: false,
            filler: Kind::Ao(1),
            options: Options { release: Release::Eager, ..Options::default() },
            disk: PAPER_DISK,
            seed: settings.seed,
        };
        churn(Kind::Ao(1), &params, &|done| share.tell(done, params.transactions))
    }
}

/// Live objects ÷ k ÷ pages: what the appendix calls utilization.
fn density(run: &Run, k: u64) -> Vec<(f64, f64)> {
    let pages = run.first().pages;
    let x = move |s: &crate::free_space::workload::Sample| {
        s.transactions as f64 / 2.0 / f64::from(pages.max(1))
    };
    points(run, x, |s| s.live as f64 / k as f64 / f64::from(s.pages.max(1)) * 100.0)
}

/// The appendix.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (mut curves, mut rows, mut claims) = (Vec::new(), Vec::new(), Vec::new());
    let (mut law, mut found) = (Vec::new(), Vec::new());
    for (n, wanted) in WANTED.into_iter().enumerate() {
        let case = Case::new(wanted, settings.quick);
        let share = Share { done: n as u64, of: WANTED.len() as u64, settings };
        let run = case.run(settings, &share)?;
        let curve = density(&run, case.k);
        let ours = curve.last().map_or(0.0, |p| p.1 / 100.0);
        let limit = 1.0 / harmonic(case.k);
        let finite = exact(case.k, case.pages);
        let shares = [limit, finite, ours].map(percent);
        rows.push([vec![case.k.to_string(), case.size.to_string()], shares.into()].concat());
        law.push((case.k as f64, limit * 100.0));
        found.push((case.k as f64, ours * 100.0));
        if [32, 256].contains(&wanted) {
            claims.push(judged(&case, wanted, limit, ours));
        }
        curves.push(draw::series(format!("k = {}", case.k), curve));
    }
    let paper = draw::paper_points("paper: measured", vec![(32.0, 25.0), (256.0, 16.0)]);
    let limits = vec![draw::series("1/H_k", law), draw::series("measured", found), paper];
    let x = axis("rounds ÷ pages of a packed file");
    let y = || axis_in("utilization, %", 0.0, 100.0);
    let columns = ["k", "bytes of an object", "1/H_k", "the sum for this file", "measured"];
    Ok(Outcome {
        panels: vec![
            draw::lines("curves", "Towards the limit", x, y(), curves),
            draw::lines("limits", "At the end", axis("objects per page k"), y(), limits),
        ],
        tables: vec![table("limits", "Utilization of AO(1) at the end", &columns, rows)],
        claims,
        notes: notes::of("mcauliffe-appendix", &[]),
    })
}

fn judged(case: &Case, wanted: usize, limit: f64, ours: f64) -> Claim {
    let ours_of =
        format!("{} with k = {}, whose limit is {}", percent(ours), case.k, percent(limit));
    let paper = if wanted == 32 { 0.25 } else { 0.16 };
    claims::says("M1 k={0}", &[&wanted], ours_of, (ours - paper).abs() <= 0.02).ratio(ours / paper)
}
