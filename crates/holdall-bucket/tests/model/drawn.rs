//! What a run by seed has its processes do.

use crate::process::Script;
use crate::record::Name;
use crate::tree::Plan;
use rand::Rng;
use rand::rngs::SmallRng;

/// What most processes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Some of all.
    All,
    /// Copies and renames beside gc.
    Movers,
    /// Small objects that come and go.
    Small,
    /// Large puts and edits beside gc.
    Writers,
    /// Renames beside several cycles of gc.
    Cycles,
}

/// What to draw from.
pub struct Drawn {
    pub mix: Mix,
    pub names: u8,
    /// How many of the puts, edits and copies are of trees or of several sources.
    pub trees: f64,
}

impl Drawn {
    /// What the next process does.
    pub fn script(&self, rng: &mut SmallRng) -> Script {
        let name = Name(rng.random_range(0..self.names));
        // Large puts, small puts, edits, deletions, copies, removals of own, gc, gc --full, holds,
        // time.
        let weights = match self.mix {
            Mix::All => [18, 5, 24, 10, 24, 5, 10, 4, 10, 2],
            Mix::Movers => [8, 0, 8, 4, 60, 0, 16, 4, 10, 2],
            Mix::Small => [8, 36, 4, 24, 4, 4, 20, 0, 2, 1],
            Mix::Cycles => [10, 0, 4, 4, 44, 0, 36, 2, 14, 3],
            Mix::Writers => [30, 4, 24, 8, 4, 4, 16, 10, 12, 2],
        };
        let mut at: u32 = rng.random_range(0..weights.iter().sum());
        let kind = weights.iter().position(|weight| {
            let is_here = at < *weight;
            at = at.saturating_sub(*weight);
            is_here
        });
        let renames = if matches!(self.mix, Mix::Movers | Mix::Cycles) { 0.8 } else { 0.4 };
        // Trees and joints take the places of what they resemble.
        let trees = rng.random_bool(self.trees);
        if trees && let Some(plan) = self.plan(rng, name, kind) {
            return Script::Tree(plan);
        }
        match kind {
            Some(0) => Script::Put {
                name,
                blobs: rng.random_range(1..3),
                intent_first: rng.random(),
                renew: rng.random_bool(0.2),
            },
            Some(1) => Script::PutSmall(name),
            Some(2) => Script::Edit { name, keep: rng.random(), blob: rng.random_bool(0.6) },
            Some(3) => Script::Delete(name),
            Some(4) => {
                let to = Name(rng.random_range(0..self.names));
                Script::Copy { from: name, to, rename: rng.random_bool(renames) }
            }
            Some(5) => Script::Purge(name),
            Some(6) => Script::Gc,
            Some(8) => Script::Hold { name, extends: rng.random() },
            Some(9) => Script::Clock,
            _ => Script::Full,
        }
    }

    /// A put, an edit or a copy of a tree, or a joint.
    fn plan(&self, rng: &mut SmallRng, name: Name, kind: Option<usize>) -> Option<Plan> {
        let (other, to) = (rng.random_range(0..self.names), rng.random_range(0..self.names));
        let to = Name(to);
        match kind {
            Some(0) => Some(Plan::Put { name, blobs: rng.random_range(1..4) }),
            Some(2) => Some(Plan::Edit { name, keep: rng.random(), blob: rng.random_bool(0.6) }),
            Some(4) if rng.random() => Some(Plan::CopyPart { from: name, to, keep: rng.random() }),
            Some(4) if rng.random() => Some(Plan::Join { parts: [name, Name(other)], to }),
            _ => None,
        }
    }
}
