//! Placement under deletions by Zipf's law. Owns no state.

use super::modern::{panels, recommendation, settings_of, turned};
use super::sweep::{Point, sweep};
use crate::experiment::{Outcome, Settings};
use crate::free_space::workload::Victims;
use crate::kit::draw::table;
use anyhow::Result;

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let all = if settings.quick {
        settings_of(&[32], &[], &[])
    } else {
        settings_of(&[1, 16, 64, 256], &[0.80, 0.94], &[4096, 16384])
    };
    let points = sweep(settings, Victims::Zipf(0.99), &all)?;
    let disk = settings.today()?;
    let mut notes = vec![
        disk.note(),
        "As mcauliffe-modern, but the object deleted is the one at a position drawn by Zipf's law \
         with an exponent of 0.99 over a million positions, scattered over the file. A new object \
         takes the position freed last: objects at hot positions live short, as sessions and \
         caches do, and most others stay."
            .to_owned(),
    ];
    notes.extend(turned(&points));
    notes.extend(recommendation(&points));
    let rows = points.iter().map(Point::row).collect();
    let title = "Algorithms and settings under skewed deletions";
    Ok(Outcome {
        panels: panels(&points),
        tables: vec![table("settings", title, &Point::HEAD, rows), disk.table()],
        claims: Vec::new(),
        notes,
    })
}
