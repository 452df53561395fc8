//! Faults per request by size of the buffer (Eickler figures 7 to 9). Owns no state.

use anyhow::Result;

use super::super::workload::Technique;
use super::runs::{self, Measured};
use crate::kit::{claims, notes, plot::from_zero};
use holdall_instrument::draw::{axis, number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

pub fn sequential(settings: &Settings<'_>) -> Result<Outcome> {
    let mut outcome = figure(settings, 0, "Sequential")?;
    let all = runs::all(settings, true)?;
    for (id, technique) in
        [("B+-tree", Technique::ClusteredTree), ("direct, linear", Technique::LinearDirect)]
    {
        let this = &all[technique as usize];
        let (frames, steady) = this.curves[0][1];
        let cold = format!("With an empty buffer before each module it is {}.", number(this.cold));
        let row = claims::measures("E3 {0}", &[&id, &frames], steady);
        outcome.claims.push(row.remark(cold));
    }
    let matrix = all[Technique::MatrixDirect as usize].cold * 5000.0;
    outcome.claims.push(claims::measures("E3 direct, matrix", &[], matrix));
    let curve = |technique: Technique| &all[technique as usize].curves[0];
    let (hash, tree) = (curve(Technique::Hash), curve(Technique::RandomTree));
    let pair = |at: usize| format!("LH {}, rBT {}", number(hash[at].1), number(tree[at].1));
    for (at, id, so) in [
        (0, "E5 smallest buffer", hash[0].1 < tree[0].1),
        (5, "E5 largest buffer", tree[5].1 < hash[5].1),
    ] {
        let why = format!("At {} pages: {}.", hash[at].0, pair(at));
        outcome.claims.push(claims::says(id, &[&hash[at].0], pair(at), so).because(why));
    }
    Ok(outcome)
}

pub fn random(settings: &Settings<'_>) -> Result<Outcome> {
    figure(settings, 1, "Random")
}

pub fn hot(settings: &Settings<'_>) -> Result<Outcome> {
    figure(settings, 2, "Hot")
}

fn figure(settings: &Settings<'_>, work: usize, name: &str) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for (large, size) in [(false, "small"), (true, "large")] {
        let all = runs::all(settings, large)?;
        let mut drawn: Vec<_> =
            all.iter().map(|m| series(m.technique.name(), m.curves[work].clone())).collect();
        let ends: Vec<f64> = all[0].curves[0].iter().map(|p| p.0).collect();
        let flat = |y: f64| ends.iter().map(|&x| (x, y)).collect();
        drawn.push(paper_points("paper: LH", vec![(ends[5], 0.95)]));
        if work != 1 {
            drawn.push(paper_points("paper: cBT", flat(0.2)));
            drawn.push(paper_points("paper: clDM", flat(0.12)));
        }
        if work == 0 {
            drawn.push(paper_points("paper: cmDM", flat(30.0 / 5000.0)));
        }
        let objects = runs::objects(large, settings.quick);
        let id = format!("{}-{size}", name.to_lowercase());
        let named = [&*id, &*format!("{name}, {objects} objects")];
        outcome.panels.push(from_zero(named, axis("buffer (pages)"), "faults per request", drawn));
        outcome.claims.push(direct_wins(&all, work, [name, size]));
    }
    outcome.notes.extend(notes::of("eickler buffers", &[]));
    Ok(outcome)
}

fn direct_wins(all: &[Measured], work: usize, [name, size]: [&str; 2]) -> Claim {
    let curve = |technique: Technique| &all[technique as usize].curves[work];
    let direct = curve(Technique::RandomDirect);
    let (hash, tree) = (curve(Technique::Hash), curve(Technique::RandomTree));
    let lost: Vec<_> = (0..direct.len())
        .filter(|&n| !(direct[n].1 <= 1.0 && direct[n].1 < hash[n].1 && direct[n].1 < tree[n].1))
        .map(|n| {
            let [d, h, t] = [direct, hash, tree].map(|c| number(c[n].1));
            format!("{} pages: rDM {d}, LH {h}, rBT {t}", direct[n].0)
        })
        .collect();
    let last = direct.len() - 1;
    let ours = format!("{} to {}", number(direct[0].1), number(direct[last].1));
    claims::says("E4 {0}, {1} base", &[&name, &size], ours, lost.is_empty())
        .because(format!("It loses with {}.", lost.join("; ")))
}
