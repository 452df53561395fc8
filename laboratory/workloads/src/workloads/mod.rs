//! The workloads W1 to W10, each for any store, and the bare machine's counterpart of each.
//!
//! Owns: the trait, the list, and [`Stores`], by which a workload is a contest of stores. It runs
//! in a process of its own for each store and round (see [`holdall_instrument::contest`]), pushes
//! one figure for each of its rows, and checks that the store returns what was put.

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

pub use objects::{Objects, Sizes, hashed, key};
pub use session::Session;

use crate::peer::{Load, Maker, Setup};
use crate::settings;
use anyhow::{Context as _, Result};
use holdall_instrument::contest::{BARE, Bound, Contest, Ctx, Figure, Goal, Plot, Than};
use std::time::Duration;

/// Bytes of cache every store gets, if a workload does not say otherwise.
pub const CACHE: u64 = 256 << 20;

/// A load, or a part of replacements or deletions, that has run so long ends with its next
/// commit; its rate is of what it did.
const LONGEST: Duration = Duration::from_secs(60);

/// What a store is given that holds such objects.
#[must_use]
pub fn setup(load: Load) -> Setup {
    Setup { cache_bytes: CACHE, load }
}

/// Names of the adapter by name and of that by OID.
pub const BY_NAME: &str = "Holdall by name";
/// See [`BY_NAME`].
pub const BY_OID: &str = "Holdall by OID";

/// A goal for both of them.
fn both(row: &str, than: &Than, bound: Bound) -> [Goal; 2] {
    [BY_NAME, BY_OID].map(|who| Goal::new(who, row, than.clone(), bound))
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

/// A workload with the stores that take part.
pub struct Stores<'a> {
    /// What they do.
    pub workload: &'static dyn Workload,
    /// Makers of the stores that were asked for.
    pub makers: &'a [&'a dyn Maker],
}

impl Contest for Stores<'_> {
    fn id(&self) -> &'static str {
        self.workload.id()
    }

    fn title(&self, ctx: &Ctx) -> String {
        self.workload.title(ctx)
    }

    fn remark(&self) -> &'static str {
        self.workload.remark()
    }

    fn contestants(&self) -> Vec<&'static str> {
        let takes = |m: &&dyn Maker| {
            m.takes(self.workload.load()) && (self.workload.takes_ordinals() || !m.by_ordinal())
        };
        let stores = self.makers.iter().copied().filter(takes).map(Maker::name);
        stores.chain([BARE]).collect()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        settings::of(self.makers, CACHE)
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        if contestant == BARE {
            return self.workload.bare(ctx, out);
        }
        let maker = self.makers.iter().find(|m| m.name() == contestant);
        self.workload.measure(ctx, *maker.context("no such store")?, out)
    }

    fn goals(&self, ctx: &Ctx) -> Vec<Goal> {
        self.workload.goals(ctx)
    }

    fn plots(&self, ctx: &Ctx) -> Vec<Plot> {
        self.workload.plots(ctx)
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
