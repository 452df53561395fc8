//! What logical OIDs cost beside physical ones (Eickler §1). Owns no state.

use std::sync::Arc;

use anyhow::{Result, ensure};
use holdall_io::MemoryDisk;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::index;

use super::super::oid::Handle;
use super::super::physical::Objects;
use super::super::workload::{Base, TABLE_2, Technique, Workload};
use super::runs;
use crate::kit::{claims, notes, plot::from_zero};
use holdall_instrument::draw::{axis, number, paper_points, percent, series};
use holdall_instrument::experiment::{Outcome, Settings};

/// Percent of the objects that have moved.
const MOVED: [usize; 5] = [0, 10, 25, 50, 100];
/// Physical OIDs, then logical ones.
const KINDS: [Option<Technique>; 5] = [
    None,
    Some(Technique::Hash),
    Some(Technique::ClusteredTree),
    Some(Technique::LinearDirect),
    Some(Technique::MatrixDirect),
];

/// Objects with logical or physical OIDs; the base says what the workloads ask for in any case.
struct Store {
    objects: Objects,
    base: Base,
    logical: bool,
}

impl Store {
    /// Faults per object read, of data and mapping. The buffers of both are one for physical OIDs.
    fn rate(&mut self, work: Workload, frames: usize, requests: u64) -> Result<f64> {
        self.objects.pages().set_buffer(if self.logical { frames } else { 2 * frames })?;
        self.base.mapping.pages().set_buffer(frames)?;
        let before = self.objects.pages().faults().all() + self.base.mapping.pages().faults().all();
        let mut read = 0;
        while read < requests {
            let module = self.base.module(work);
            for object in self.base.objects(work, module) {
                let at = if self.logical { self.base.handle(object)? } else { None };
                let found = self.objects.read(at.unwrap_or(Handle::of(object)))?;
                ensure!(found == object, "object {object} came back as {found}");
                read += 1;
            }
        }
        let after = self.objects.pages().faults().all() + self.base.mapping.pages().faults().all();
        Ok((after - before) as f64 / read as f64)
    }
}

/// Faults per object read under Sequential and Random, and data pages, at each of [`MOVED`].
fn measure(technique: Option<Technique>, settings: &Settings<'_>) -> Result<Vec<[f64; 3]>> {
    let requests = if settings.quick { 10_000 } else { 100_000 };
    let count = runs::objects(false, settings.quick);
    let (disk, by) = (Arc::new(MemoryDisk::new()), technique.unwrap_or(Technique::LinearDirect));
    let base = Base::build(Arc::new(MemoryDisk::new()), by, count, 0, settings.seed)?;
    let objects = Objects::build(disk, count, 100)?;
    let mut store = Store { objects, base, logical: technique.is_some() };
    let order = index::sample(&mut SmallRng::seed_from_u64(settings.seed), count, count).into_vec();
    let (mut costs, mut moved) = (Vec::new(), 0);
    for share in MOVED {
        let until = count * share / 100;
        for &object in &order[moved..until] {
            let to = store.objects.relocate(Handle::of(object), !store.logical)?;
            ensure!(!store.logical || store.base.moved(object, to)?, "no object {object}");
        }
        moved = until;
        let frames = runs::scaled(1000, count);
        let [scan, select] = [0, 1].map(|work| store.rate(TABLE_2[work], frames, requests));
        costs.push([scan?, select?, store.objects.used() as f64]);
    }
    Ok(costs)
}

/// The experiment.
pub fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut all = Vec::new();
    for (n, technique) in KINDS.into_iter().enumerate() {
        (settings.progress)(n as u64, KINDS.len() as u64);
        all.push((technique.map_or("physical", Technique::name), measure(technique, settings)?));
    }
    let mut panels = Vec::new();
    for (work, id, title) in [(0, "sequential", "Sequential"), (1, "random", "Random")] {
        let drawn = all.iter().map(|(name, costs)| {
            let points = MOVED.iter().zip(costs).map(|(&m, c)| (m as f64, c[work]));
            series(*name, points.collect())
        });
        let paper = paper_points("paper: physical", vec![(100.0, 2.0)]);
        let x = axis("objects that have moved, %");
        panels.push(from_zero(
            [id, title],
            x,
            "faults per object read",
            drawn.chain([paper]).collect(),
        ));
    }
    let [physical, .., linear, matrix] = [0, 1, 2, 3, 4].map(|n| &all[n].1);
    let last = MOVED.len() - 1;
    let [line, over] = [linear, matrix].map(|costs| costs[0][0] / physical[0][0]);
    let ours = format!("matrix {}, linear {}", number(over), number(line));
    let grown = physical[last][2] / linear[last][2];
    let claims = vec![
        claims::measures("E12 forwards", &[], physical[last][1]),
        claims::says("E12 marginal", &[], ours, over.max(line) <= 1.15),
        claims::says("E12 space", &[], percent(grown), grown > 1.05),
    ];
    let count = runs::objects(false, settings.quick);
    let notes = notes::of("eickler-physical", &[&count, &runs::scaled(1000, count)]);
    Ok(Outcome { panels, claims, notes, ..Outcome::default() })
}
