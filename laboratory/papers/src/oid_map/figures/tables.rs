//! Sizes, faults per new object, and the rules of direct mapping (Eickler tables 1 and 3, §3.2).
//! Owns no state.

use std::sync::Arc;

use anyhow::Result;
use holdall_io::MemoryDisk;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::super::direct::{Direct, Placement};
use super::super::hash::CAPACITY;
use super::super::mapping::{Mapping, Place};
use super::super::oid::Handle;
use super::super::pages::PAGE;
use super::super::workload::{Technique, WARM};
use super::runs;
use crate::kit::{claims, notes};
use holdall_instrument::draw::{number, percent};
use holdall_instrument::experiment::{Outcome, Settings};

pub fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (large, id, paper) in
        [(true, "E1 {0}", [252.0, 204.0, 118.0]), (false, "E2 {0}", [13.0, 9.0, 5.0])]
    {
        let all = runs::all(settings, large)?;
        let objects = runs::objects(large, settings.quick);
        let which = [Technique::Hash, Technique::ClusteredTree, Technique::LinearDirect];
        for (technique, paper) in which.into_iter().zip(paper) {
            let pages = all[technique as usize].used;
            let megabytes = (pages as usize * PAGE) as f64 / 1e6;
            let mut why = format!(
                "{pages} pages of {PAGE} bytes, {} bytes for an object; the paper's figure would be \
                 {} bytes.",
                number(megabytes * 1e6 / objects as f64),
                number(paper * 1e6 / objects as f64),
            );
            if technique == Technique::Hash {
                why += &contradicted(objects, paper);
            }
            let claim = claims::measures(id, &[&technique.name(), &objects], megabytes);
            outcome.claims.push(claim.because(why));
        }
    }
    outcome.notes.extend(notes::of("eickler-table1", &[]));
    Ok(outcome)
}

/// Why a hash table cannot have the size that table 1 gives it and the fill that §5.1 does.
fn contradicted(objects: usize, paper: f64) -> String {
    let pages = paper * 1e6 / PAGE as f64;
    let each = objects as f64 / pages;
    format!(
        " The paper contradicts itself: by §5.1 buckets of at most 80 entries are almost 100 % \
         full, in which {objects} objects take {} pages; table 1 has {}, {} entries each, {} full, \
         but {} entries each for 5,000,000 objects.",
        objects.div_ceil(CAPACITY),
        number(pages.round()),
        number(each),
        percent(each / CAPACITY as f64),
        number(5e6 * PAGE as f64 / 252e6),
    )
}

pub fn created(settings: &Settings<'_>) -> Result<Outcome> {
    let all = runs::all(settings, true)?;
    let mut claims = Vec::new();
    for (id, technique, n) in [
        ("direct mapping", Technique::MatrixDirect, 0),
        ("B+-tree", Technique::ClusteredTree, 0),
        ("linear hashing", Technique::Hash, 0),
        ("linear hashing, after the first split", Technique::Hash, 1),
        ("linear hashing, OIDs in no order", Technique::Hash, 2),
    ] {
        let faults = all[technique as usize].created[n];
        let ours = faults.all() as f64 / runs::NEW as f64;
        claims.push(claims::measures("E8 {0}", &[&id, &runs::NEW, &faults], ours));
    }
    let notes = notes::of(
        "eickler-table3",
        &[&runs::NEW, &runs::scaled(1000, runs::objects(true, settings.quick)), &WARM],
    );
    Ok(Outcome { claims, notes, ..Outcome::default() })
}

pub fn direct(settings: &Settings<'_>) -> Result<Outcome> {
    let mut worst = 0;
    for large in [false, true] {
        let all = runs::all(settings, large)?;
        for technique in [Technique::RandomDirect, Technique::LinearDirect, Technique::MatrixDirect]
        {
            worst = worst.max(all[technique as usize].worst);
        }
    }
    let turns = if settings.quick { 300_000 } else { 5_000_000 };
    let mut map = Direct::open(Arc::new(MemoryDisk::new()), 100, Placement::Linear)?;
    let mut rng = SmallRng::seed_from_u64(settings.seed);
    let mut live = Vec::new();
    for n in 0..3400 {
        live.push(map.create(Place::default(), Handle::of(n))?);
    }
    let mut gone = Vec::with_capacity(turns);
    let mut undetected = 0_u64;
    for turn in 0..turns {
        let at = rng.random_range(0..live.len());
        map.remove(live[at])?;
        gone.push(live[at]);
        live[at] = map.create(Place::default(), Handle::of(turn))?;
    }
    for &oid in &gone {
        undetected += u64::from(map.lookup(oid)?.is_some());
    }
    let mut lost = 0;
    for &oid in &live {
        lost += u64::from(map.lookup(oid)?.is_none());
    }
    let ours = format!("{undetected} of {turns} undetected, {lost} live ones lost");
    let claims = vec![
        claims::measures("E9", &[], worst as f64),
        claims::says("E10", &[], ours, undetected + lost == 0),
    ];
    Ok(Outcome { claims, ..Outcome::default() })
}
