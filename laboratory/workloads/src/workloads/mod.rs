//! The workloads W1 to W10, each for any store, and the bare machine's counterpart of each.
//!
//! Owns: the trait, the list, and [`Ctx`], what a workload is given. A workload runs in a
//! process of its own for each store and round (see [`crate::runner`]), pushes one figure for
//! each of its rows, and checks that the store returns what was put.

pub mod goal;
pub mod objects;
pub mod session;
mod w10_refill;
mod w1_load;
mod w2_puts;
mod w3_gets;
mod w4_web;
mod w5_large;
mod w6_aging;
mod w7_insert;
pub mod w8_open;
mod w9_mixed;

pub use goal::{Bound, Goal, Than, What};
pub use objects::{Objects, Sizes, hashed, key};
pub use session::Session;

use crate::measure::Figure;
use crate::peer::{Load, Maker, Setup};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of cache every store gets, where a workload does not say otherwise.
pub const CACHE: u64 = 256 << 20;

/// A load, or a part of replacements or deletions, that has run so long ends with its next
/// commit; its rate is of what it did.
const LONGEST: Duration = Duration::from_secs(60);

/// What a workload is given.
#[derive(Debug, Clone)]
pub struct Ctx {
    /// An empty directory of its own, on the disk to be measured.
    pub dir: PathBuf,
    /// Small sizes: every workload within some seconds.
    pub quick: bool,
    /// All data and choices come from it.
    pub seed: u64,
}

impl Ctx {
    /// `full`, or `quick` where little time is to be spent.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long a loop may take: `full` seconds, or a twentieth.
    pub fn seconds(&self, full: u64) -> Duration {
        Duration::from_millis(full * self.pick(1000, 50))
    }

    /// What a store is given that holds such objects.
    pub fn setup(&self, load: Load) -> Setup {
        Setup { cache_bytes: CACHE, load }
    }
}

/// How a drawing is filled.
#[derive(Debug, Clone)]
pub enum Source {
    /// From figures' points of the drawing's id.
    Points {
        /// What the axis to the right shows.
        x: &'static str,
        /// What the axis upwards shows.
        y: &'static str,
        /// Labels of x = 0, 1, 2 …, drawn as bars; lines where there are none.
        ticks: Vec<&'static str>,
    },
    /// The distribution of latencies of this row.
    Latency(String),
}

/// A drawing of a workload.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its file's name.
    pub id: String,
    /// Above it.
    pub title: String,
    /// What it shows.
    pub source: Source,
}

/// One workload.
pub trait Workload: Sync {
    /// `w1` to `w10`.
    fn id(&self) -> &'static str;
    /// Above its tables.
    fn title(&self, ctx: &Ctx) -> String;
    /// What it does exactly, what its figures count, what the bare counterpart does.
    fn remark(&self) -> &'static str;
    /// What its objects are like.
    fn load(&self) -> Load;
    /// Runs it with stores of `maker`; pushes rows as they are done, so that those before an
    /// error are kept.
    ///
    /// # Errors
    /// The store's, and wrong answers of it.
    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()>;
    /// The same rows without a store.
    ///
    /// # Errors
    /// The system's.
    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()>;
    /// What Holdall is to reach.
    fn goals(&self, ctx: &Ctx) -> Vec<Goal>;
    /// Its drawings.
    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        Vec::new()
    }
    /// Whether stores that give out ids of their own take part.
    fn takes_ordinals(&self) -> bool {
        true
    }
}

/// All workloads, in order.
pub fn all() -> [&'static dyn Workload; 10] {
    [
        &w1_load::Bulk,
        &w2_puts::Puts,
        &w3_gets::Gets,
        &w4_web::Web,
        &w5_large::Large,
        &w6_aging::Aging,
        &w7_insert::Insert,
        &w8_open::Open,
        &w9_mixed::Mixed,
        &w10_refill::Refill,
    ]
}
