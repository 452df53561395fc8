//! Figure 12: space as web objects are written again (Iyengar §3.1). Owns no state.

use super::ranks;
use super::web::{Items, modes};
use crate::allocation::peers::{Kind, disk_used};
use crate::kit::claims;
use anyhow::Result;
use holdall_instrument::draw::{axis, bars, number, percent, series, table};
use holdall_instrument::experiment::{Outcome, Settings};

/// Figure 12: the space after each of several writes of all items.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, rounds) = if settings.quick { (200, 3) } else { (27_800, 7) };
    let items = Items::new(n, settings.seed);
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    let (modes, missing) = modes(settings)?;
    for (kind, every, name) in modes {
        if !matches!(kind, Kind::Table | Kind::Files) && every != 5 {
            continue;
        }
        let scratch = settings.scratch()?;
        let mut peer = kind.open(scratch.path(), false)?;
        let mut curve = Vec::new();
        for round in 0..rounds {
            items.write(&mut *peer, every, round)?;
            peer.settle()?;
            curve.push((round as f64, disk_used(scratch.path())? as f64 / 1e6));
        }
        (settings.progress)(rows.len() as u64 + 1, 5);
        let cells = curve.iter().map(|(_, mb)| number(*mb));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<_>>());
        curves.push((name, curve));
    }
    let at = |store: usize, round: usize| curves[store].1[round].1;
    let (first, last) = (at(0, 0), at(0, rounds - 1));
    let (before, after) = (at(1, 0), at(1, rounds - 1));
    let mut claims = Vec::new();
    let ours = format!("{} against {}", number(first), number(before));
    claims.push(claims::says("I11 space", &[], ours, first < before));
    let ours = format!("{} to {}", number(before), number(after));
    let same = (after / before - 1.0).abs() <= 0.01;
    claims.push(claims::says("I11 space, files", &[], ours, same));
    let added = last / at(0, rounds - 2) - 1.0;
    let ours = format!("{} to {} MB, {} by the last", number(first), number(last), percent(added));
    claims.push(claims::says("I11 space, steady", &[], ours, added <= 0.01));
    let names = (1..=rounds).map(|round| format!("after {round}"));
    let head: Vec<String> = std::iter::once("store".to_owned()).chain(names).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let tables = vec![table("space", "MB on disk after each write of all items", &head, rows)];
    let lined = curves.into_iter().map(|(name, curve)| series(name, curve)).collect();
    let (x, y) = (ranks("writes of all items", 1..=rounds), axis("MB on disk"));
    let panels = vec![bars("fig-12", "Space", x, y, lined)];
    let mut notes = vec![format!("{n} items as in iyengar-9. Nobody waits for the device.")];
    notes.extend(missing);
    Ok(Outcome { panels, tables, claims, notes })
}
