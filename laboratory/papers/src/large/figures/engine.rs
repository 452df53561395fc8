//! What the engine promises about its segments: costs that do not depend on the object's
//! size, and a structure that stays dense under edits.

use std::fmt::Display;

use anyhow::Result;
use holdall_testkit::CostModel;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::mix_claims::{numbers, segment_pages, span};
use super::tables::{aged, ms};
use crate::kit::{claims, notes};
use crate::large::runs::{MEANS, MIB, MixRun, sparse, steady};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::Mark;
use holdall_instrument::draw::{number, percent, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Table;

const SIZES: [(u64, &str); 3] =
    [(10 * MIB, "10 MiB"), (1024 * MIB, "1 GiB"), (100 * 1024 * MIB, "100 GiB")];
const KINDS: [&str; 3] = ["insert", "delete", "replace"];

/// Pages moved against object size.
pub(super) fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    let edits = if settings.quick { 20 } else { 100 };
    for (turn, (bytes, _)) in MEANS.into_iter().enumerate() {
        for (kind, name) in KINDS.into_iter().enumerate() {
            let mut all = Vec::new();
            for (size, _) in SIZES {
                all.push(pages_per_edit(size, kind, bytes, edits, settings.seed)?);
            }
            let mut row = vec![name.to_owned(), bytes.to_string()];
            row.extend(all.iter().map(|m| format!("{:.1} + {:.1}", m.read, m.written)));
            rows.push(row);
            claims.push(independent("size {0} {1}", &[&name, &bytes], &all));
        }
        (settings.progress)(turn as u64 + 1, 4);
    }
    let mut head = vec!["edit", "bytes"];
    head.extend(SIZES.map(|s| s.1));
    let title = "Pages read + written per edit";
    let (mixed, claim) = mixed_sizes(settings)?;
    claims.push(claim);
    (settings.progress)(4, 4);
    let tables = vec![table("biliris-eos-size-independence", title, &head, rows), mixed];
    let notes = notes::of("biliris-eos-size-independence", &[&edits, &RENEW]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

/// The mix of 10K to its end, a thousand operations for each MiB, at 10 MiB and 10 GiB.
fn mixed_sizes(settings: &Settings<'_>) -> Result<(Table, Claim)> {
    let (technique, mut rows) = (Technique::Eos(16), Vec::new());
    let large = if settings.quick { (100 * MIB, "100 MiB") } else { (10_240 * MIB, "10 GiB") };
    let (mut all, mut words) = (Vec::new(), Vec::new());
    for (size, name) in [(10 * MIB, "10 MiB"), large] {
        let (mark, shape) = aged(technique, size, Config::wide(), settings)?;
        let update = mark.updates();
        let per = |pages: u64| pages as f64 / update.count.max(1) as f64;
        let (read, written) = (per(update.stats.pages_read), per(update.stats.pages_written));
        all.push(Pages { read, written, height: shape.level });
        let mut row = vec![name.to_owned(), mark.ops.to_string(), shape.level.to_string()];
        row.push(percent(mark.utilization));
        row.extend([mark.read, update].map(|cost| ms(cost, &CostModel::default())));
        rows.push(row);
        words.push(update.counted());
    }
    let words: [&dyn Display; 4] = [&technique.name(), &large.1, &words[0], &words[1]];
    let head = ["object", "operations", "height", "utilization", "read (ms)", "update (ms)"];
    let title = "The mix of 10K to its end, means over its second half";
    let rows = table("biliris-eos-size-mix", title, &head, rows);
    Ok((rows, independent("size mix, {0}", &words, &all)))
}

/// Edits until the object is made anew: many edits of 100 KiB age 10 MiB, and not 100 GiB.
const RENEW: u64 = 20;

/// Mean pages per edit, and the tree's levels behind the edits.
struct Pages {
    read: f64,
    written: f64,
    height: u8,
}

/// Whether pages read and pages written differ by the tree's height at most.
fn independent(name: &str, words: &[&dyn Display], all: &[Pages]) -> Claim {
    let height = all.iter().map(|m| m.height).max().unwrap_or(1);
    let apart = |of: fn(&Pages) -> f64| {
        let (low, high) = span(&all.iter().map(of).collect::<Vec<_>>());
        high - low
    };
    let apart = [apart(|m| m.read), apart(|m| m.written)];
    let ours = format!("{} read and written; height {height}", numbers(&apart));
    claims::says(name, words, ours, apart.iter().all(|d| *d <= f64::from(height)))
}

fn pages_per_edit(size: u64, kind: usize, bytes: u64, edits: u64, seed: u64) -> Result<Pages> {
    let new = vec![0; bytes as usize];
    // Two generators: places within a page must not depend on the object's size.
    let (mut far, mut near) = (SmallRng::seed_from_u64(seed), SmallRng::seed_from_u64(seed ^ 1));
    let mut pages = Pages { read: 0.0, written: 0.0, height: 1 };
    let mut left = edits;
    while left > 0 {
        let mut object = sparse(Technique::EosEngine(16), Config::wide(), size)?;
        let before = object.stats();
        for _ in 0..left.min(RENEW) {
            let within: u64 = near.random_range(0..4096);
            let at = far.random_range(0..(object.size() - bytes) / 4096 - 1) * 4096 + within;
            match kind {
                0 => object.insert(at, &new)?,
                1 => object.delete(at, bytes)?,
                _ => object.replace(at, &new)?,
            }
        }
        left -= left.min(RENEW);
        let stats = object.stats() - before;
        pages.read += stats.pages_read as f64 / edits as f64;
        pages.written += stats.pages_written as f64 / edits as f64;
        pages.height = pages.height.max(object.shape()?.level);
    }
    Ok(pages)
}

/// Utilization and reads after ten thousand edits.
pub(super) fn mixed_edits(settings: &Settings<'_>) -> Result<Outcome> {
    let model = CostModel::default();
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    for (turn, (mean, _)) in MEANS.into_iter().enumerate() {
        let run = |technique| MixRun::paper(technique, mean, settings);
        let starburst = steady(&run(Technique::Starburst).marks()?).read.mean_ms(&model);
        for threshold in [16, 32, 64] {
            for technique in [Technique::EosEngine(threshold), Technique::Eos(threshold)] {
                let marks = run(technique).marks()?;
                let utilization = marks.last().map_or(0.0, |m| m.utilization);
                let late = steady(&marks);
                let reads = late.read.mean_ms(&model) / starburst;
                if threshold == 16 {
                    claims.extend(judged(technique, mean, utilization, reads, &late));
                }
                let update = late.updates().mean_ms(&model);
                let cells = [percent(utilization), format!("{reads:.3}"), number(update)];
                rows.push([vec![technique.name(), mean.to_string()], cells.to_vec()].concat());
            }
        }
        (settings.progress)(turn as u64 + 1, 3);
    }
    let head = ["technique", "mean (bytes)", "utilization", "reads ÷ Starburst's", "update (ms)"];
    let tables = vec![table("biliris-eos-mix", "EOS after 10,000 edits of 10 MiB", &head, rows)];
    let notes = notes::of("biliris-eos-mix", &[]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

fn judged(technique: Technique, mean: u64, dense: f64, reads: f64, late: &Mark) -> [Claim; 2] {
    let pages = segment_pages(late);
    let words: [&dyn Display; 5] = [
        &technique.name(),
        &mean,
        &number(pages),
        &percent(1.0 - 0.5 / pages),
        &number(mean as f64 / 4096.0 / pages),
    ];
    [
        claims::measures("mix utilization, {0}, {1}", &words, dense * 100.0),
        claims::measures("mix reads, {0}, {1}", &words, reads),
    ]
}
