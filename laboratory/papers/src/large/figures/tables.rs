//! Tables 2 and 3, the shapes of objects, and the effect of the object's size (Biliris §4.2,
//! §4.4).

use std::collections::BTreeSet;
use std::fmt::Display;

use anyhow::Result;
use holdall_core::techniques::segment_tree::Cut;
use holdall_testkit::CostModel;

use super::build::KIB;
use super::mix_claims::beside;
use crate::kit::{claims, notes, plot::heads};
use crate::large::runs::{MEANS, MIB, MixRun, OBJECT, build, eos, esm, in_memory, sparse, steady};
use crate::large::store::Config;
use crate::large::technique::{Shape, Technique};
use crate::large::workload::{Cost, Mark, Mix, run};
use holdall_instrument::draw::{number, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Table 2: reads of Starburst.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Outcome> {
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    for (turn, (mean, _)) in MEANS.into_iter().enumerate() {
        let base = MixRun::paper(Technique::Starburst, mean, settings);
        // More reads than in the mix, for a steadier mean: the cost does not depend on it.
        let mix = Mix { reads: 0.95, ..base.mix };
        let ops = if settings.quick { 1000 } else { 20_000 };
        let all = whole(&MixRun { mix, ops, every: ops / 4, ..base }.marks()?);
        let ours = all.read.mean_ms(&CostModel::default());
        let claim = claims::measures("B13 {0}", &[&mean], ours);
        rows.push(vec![mean.to_string(), claim.paper.clone(), number(ours)]);
        claims.push(claim);
        (settings.progress)(turn as u64 + 1, 3);
    }
    let head = ["mean size (bytes)", "paper (ms)", "ours (ms)"];
    let tables = vec![table("biliris-table2", "Read cost of Starburst", &head, rows)];
    Ok(Outcome { tables, claims, ..Outcome::default() })
}

fn whole(marks: &[Mark]) -> Mark {
    marks.iter().fold(Mark::default(), Mark::and)
}

/// Table 3: updates of Starburst.
pub(super) fn updates(settings: &Settings<'_>) -> Result<Outcome> {
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    let model = CostModel::default();
    for (turn, (mean, _)) in MEANS.into_iter().enumerate() {
        let run = MixRun::paper(Technique::Starburst, mean, settings);
        let all = whole(&run.marks()?);
        let mut row = vec![mean.to_string(), "22.3".into()];
        for (name, cost) in [("insert", all.insert), ("delete", all.delete)] {
            let ours = cost.mean_ms(&model) / 1000.0;
            claims.push(claims::measures("B14 {0} {1}", &[&name, &mean], ours));
            row.push(number(ours));
        }
        rows.push(row);
        (settings.progress)(turn as u64 + 1, 4);
    }
    claims.push(hundred(settings)?);
    (settings.progress)(4, 4);
    let head = ["mean size (bytes)", "paper (s)", "insert (s)", "delete (s)"];
    let tables = vec![table("biliris-table3", "Insert and delete cost of Starburst", &head, rows)];
    let notes = notes::of("biliris-table3", &[]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

/// B15: updates of 100 MiB.
fn hundred(settings: &Settings<'_>) -> Result<Claim> {
    let mut object = sparse(Technique::Starburst, Config::default(), 100 * MIB)?;
    let mix = Mix { reads: 0.0, zeros: true, ..Mix::paper(10 * 1024) };
    let ops = if settings.quick { 4 } else { 100 };
    let marks = run(object.as_mut(), &mix, ops, ops / 2, settings.seed, &mut |_| ())?;
    let written = whole(&marks).updates();
    let ours = written.mean_ms(&CostModel::default()) / 1000.0;
    let mib = written.stats.pages_written as f64 / 256.0 / written.count.max(1) as f64;
    Ok(claims::measures("B15", &[&number(mib)], ours))
}

/// Shapes: B1 to B3.
pub(super) fn shapes(settings: &Settings<'_>) -> Result<Outcome> {
    let mut rows = Vec::new();
    let mut shapes = Vec::new();
    let techniques: Vec<_> =
        esm().into_iter().chain([Technique::Starburst, Technique::Eos(4)]).collect();
    for (turn, technique) in techniques.iter().enumerate() {
        let mut object = in_memory(*technique, Config::default())?;
        build(object.as_mut(), OBJECT, 4096)?;
        let ten = object.shape()?;
        let hundred = sparse(*technique, Config::default(), 100 * MIB)?.shape()?;
        for (size, shape) in [("10 MiB", ten), ("100 MiB", hundred)] {
            let cells = [shape.segments, shape.index_pages, u64::from(shape.level)];
            let mut row = vec![technique.name(), size.to_owned()];
            row.extend(cells.map(|c| c.to_string()));
            rows.push(row);
        }
        shapes.push((ten, hundred));
        (settings.progress)(turn as u64 + 1, techniques.len() as u64);
    }
    let head = ["technique", "object", "leaves", "index pages below the root", "level"];
    let by_append = index_pages_by_append(settings.quick)?;
    let found: Vec<u64> = by_append.iter().map(|r| r.1).collect();
    let tables = vec![
        table("biliris-shape", "Shapes of the 10 MiB and the 100 MiB object", &head, rows),
        cuts_table(&by_append),
    ];
    let notes = notes::of("biliris-shape", &[]);
    let claims = shape_claims(&shapes, &found);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

/// Index pages of 10 MiB with ESM's 1-page leaves by the size of appends in KiB: with the left
/// page larger, and with halves.
fn index_pages_by_append(quick: bool) -> Result<Vec<(u64, u64, u64)>> {
    let sizes = if quick { vec![4, 5, 64] } else { KIB.to_vec() };
    let pages = |kib: u64, cut: Cut| -> Result<u64> {
        let mut object = in_memory(Technique::Esm(1), Config { cut, ..Config::default() })?;
        build(object.as_mut(), OBJECT, kib * 1024)?;
        Ok(object.shape()?.index_pages)
    };
    let row = |kib| Ok((kib, pages(kib, Cut::LeftLarger)?, pages(kib, Cut::Halves)?));
    sizes.into_iter().map(row).collect()
}

fn cuts_table(rows: &[(u64, u64, u64)]) -> holdall_instrument::picture::Table {
    let rows = rows.iter().map(|(kib, left, halves)| [*kib, *left, *halves].map(|n| n.to_string()));
    let head = ["append (KiB)", "left page larger (257 + 255)", "halves (256 + 256)"];
    let title = "Index pages of 10 MiB, ESM with 1-page leaves, by how full ones are cut";
    table("biliris-shape-cuts", title, &head, rows.map(Vec::from).collect())
}

fn shape_claims(shapes: &[(Shape, Shape)], index_pages: &[u64]) -> Vec<Claim> {
    let is = |name: &str, words: &[&dyn Display], paper: u64, ours: u64| {
        claims::says(name, words, ours.to_string(), paper == ours)
    };
    let (one, four) = (&shapes[0].0, &shapes[1].0);
    let mut claims = vec![
        is("B1 leaves", &[], 2560, one.segments),
        claims::says("B1 nodes", &[], list(index_pages), index_pages.iter().all(|n| *n == 9)),
        is("B1 level", &[], 2, u64::from(one.level)),
        is("B2 leaves", &[], 640, four.segments),
        is("B2 nodes", &[], 2, four.index_pages),
        is("B2 level", &[], 2, u64::from(four.level)),
    ];
    let names =
        ["ESM 1", "ESM 4", "ESM, 16-page leaves", "ESM, 64-page leaves", "Starburst", "EOS"];
    for (shape, name) in shapes.iter().zip(names).skip(2) {
        claims.push(is("B3", &[&name], 1, u64::from(shape.0.level)));
    }
    for ((shape, name), level) in shapes.iter().zip(names).zip([2, 2, 2, 1, 1, 1]) {
        claims.push(is("B3 100 MiB", &[&name, &level], level, u64::from(shape.1.level)));
    }
    claims
}

/// Different numbers, in order.
fn list(numbers: &[u64]) -> String {
    let different: BTreeSet<u64> = numbers.iter().copied().collect();
    different.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// B22: update costs of 10 and 100 MiB.
pub(super) fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let model = CostModel::default();
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    let techniques: Vec<_> = esm().into_iter().chain(eos()).collect();
    for (turn, technique) in techniques.iter().enumerate() {
        let [small, large] = [OBJECT, 100 * MIB].map(|size| {
            let (mark, shape) = aged(*technique, size, Config::default(), settings)?;
            Ok::<_, anyhow::Error>((mark.updates(), shape.index_pages))
        });
        let (small, large) = (small?, large?);
        let leaves = |all: Cost| Cost { stats: all.stats - all.index, ..all }.mean_ms(&model);
        let (of, base) = (large.0.mean_ms(&model), small.0.mean_ms(&model));
        let words: [&dyn Display; 7] = [
            &technique.name(),
            &number(leaves(small.0)),
            &number(leaves(large.0)),
            &small.1,
            &small.0.counted(),
            &large.1,
            &large.0.counted(),
        ];
        claims.push(beside("B22 {0}", &words, of, ("10 MiB", base)));
        let mut row = vec![technique.name(), number(base), number(of)];
        row.extend([small.0, large.0].map(|all| number(leaves(all))));
        row.extend([small.1, large.1].map(|pages| pages.to_string()));
        rows.push(row);
        (settings.progress)(turn as u64 + 1, techniques.len() as u64);
    }
    let head = heads(
        "technique | 10 MiB (ms) | 100 MiB | leaves, 10 MiB | 100 MiB | index pages | 100 \
         MiB",
    );
    let tables = vec![table("biliris-size", "Update cost against object size", &head, rows)];
    let notes = notes::of("biliris-size", &[]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

/// The steady state of an object of zeros under the mix of 10K, a thousand operations for each
/// MiB of it, and its shape at the end.
pub(super) fn aged(
    technique: Technique,
    size: u64,
    config: Config,
    settings: &Settings<'_>,
) -> Result<(Mark, Shape)> {
    let mut object = sparse(technique, config, size)?;
    let per_mib = if settings.quick { 20 } else { 1000 };
    let ops = per_mib * (size / MIB);
    let mix = Mix { zeros: true, ..Mix::paper(10 * 1024) };
    let marks = run(object.as_mut(), &mix, ops, ops / 10, settings.seed, &mut |_| ())?;
    object.check()?;
    Ok((steady(&marks), object.shape()?))
}

/// Mean of a cost in milliseconds, for the tables of others.
pub(super) fn ms(cost: Cost, model: &CostModel) -> String {
    number(cost.mean_ms(model))
}
