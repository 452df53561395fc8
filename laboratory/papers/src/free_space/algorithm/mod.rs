//! Object placement: which page takes a new object (McAuliffe §3.2).
//!
//! Owns the trait of the family and the list of its members. An algorithm keeps transient state
//! only; what is persistent is the volume's inventory. The heap file asks for a page, tries it,
//! and asks again if it was refused; it reports every change of a page's free space.
//! Threads: none; a heap file has its algorithm alone.

mod best_fit;
mod engine;
mod fit;
mod hybrid;
mod pid_cache;
mod search;
mod witnesses;

use best_fit::BestFit;
use engine::EngineHybrid;
use fit::{Fit, Rule};
use hybrid::Hybrid;
pub use pid_cache::{CacheOptions, Eviction};
use witnesses::Witnesses;

use super::buckets::Buckets;
use super::volume::Volume;
use crate::kit::error::Result;

/// What a page is wanted for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Bytes wanted, the slot included.
    pub need: usize,
    /// Pages that were tried for this object and refused, in order.
    pub refused: &'a [u32],
}

/// Why a page's free space is what it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The page was added to the file; it is empty.
    Added,
    /// An object was put on it.
    Created,
    /// An object was deleted (lazy release: at once; eager: at commit).
    Deleted,
    /// A rollback changed it.
    RolledBack,
    /// It was empty and is taken out of the file.
    Reclaimed,
}

/// A change of a page's free space.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// The page.
    pub page: u32,
    /// Its bucket before; 15 if it was not in the file.
    pub old: u8,
    /// Its bucket now.
    pub new: u8,
    /// Its free bytes now, as far as the inventory knows.
    pub free: usize,
    /// What happened.
    pub cause: Cause,
}

/// An object placement algorithm.
pub trait Algorithm: Send + std::fmt::Debug {
    /// Fills its tables when it first meets a file, from the inventory only.
    fn load(&mut self, volume: &mut Volume) -> Result<()>;

    /// A page that should take an object, or `None`: a page is to be added. Never a page of
    /// [`Request::refused`]. A page given is refused if its space is reserved.
    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>>;

    /// The page last chosen did not take the object.
    fn refused(&mut self, page: u32);

    /// A page's free space changed.
    fn changed(&mut self, change: &Change);

    /// Bytes of transient memory it takes now.
    fn memory(&self) -> usize;
}

/// An algorithm and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Append only with this many pages, the oldest leaving first.
    Ao(usize),
    /// The same with the choices the paper leaves open, and what to add to its name.
    AoWith(usize, CacheOptions, &'static str),
    /// First-fit.
    Ff,
    /// First-fit as in DB2/2: from the last page on, unless the request is smaller than the last.
    FfDb2,
    /// Next-fit.
    Nf,
    /// Next-fit with histogram.
    NfH,
    /// Next-fit with witnesses and histogram.
    NfWh,
    /// The same, read so that only searches move the cursor.
    NfWhSearches,
    /// Best-fit with a tree of all pages.
    Bf,
    /// Hybrid: pid cache size n, target utilization u (0 to 1).
    Hy(usize, f64),
    /// The same with the choices the paper leaves open, and what to add to its name.
    HyWith(usize, f64, CacheOptions, &'static str),
    /// The engine's variant of it (`holdall_core::techniques::heap_placement`): u in percent.
    HyEngine(usize, u8),
}

impl Kind {
    /// The algorithm, without state.
    pub fn build(self, buckets: &Buckets) -> Box<dyn Algorithm> {
        let buckets = buckets.clone();
        match self {
            Self::Ao(n) => Box::new(Hybrid::new(buckets, n, None, CacheOptions::AO)),
            Self::AoWith(n, options, _) => Box::new(Hybrid::new(buckets, n, None, options)),
            Self::Ff => Box::new(Fit::new(buckets, Rule::First, false)),
            Self::FfDb2 => Box::new(Fit::new(buckets, Rule::FirstOfDb2, false)),
            Self::Nf => Box::new(Fit::new(buckets, Rule::Next, false)),
            Self::NfH => Box::new(Fit::new(buckets, Rule::Next, true)),
            Self::NfWh => Box::new(Witnesses::new(buckets, false)),
            Self::NfWhSearches => Box::new(Witnesses::new(buckets, true)),
            Self::Bf => Box::new(BestFit::new(buckets)),
            Self::Hy(n, u) => Box::new(Hybrid::new(buckets, n, Some(u), CacheOptions::HY)),
            Self::HyWith(n, u, options, _) => Box::new(Hybrid::new(buckets, n, Some(u), options)),
            Self::HyEngine(n, u) => Box::new(EngineHybrid::new(buckets, n, u)),
        }
    }

    /// What figures call it.
    pub fn name(self) -> String {
        match self {
            Self::Ao(n) => format!("AO({n})"),
            Self::AoWith(n, _, what) => format!("AO({n}), {what}"),
            Self::Ff => "FF".to_owned(),
            Self::FfDb2 => "FF (DB2/2)".to_owned(),
            Self::Nf => "NF".to_owned(),
            Self::NfH => "NF(H)".to_owned(),
            Self::NfWh => "NF(WH)".to_owned(),
            Self::NfWhSearches => "NF(WH), the cursor moves with searches".to_owned(),
            Self::Bf => "BF".to_owned(),
            Self::Hy(n, 0.875) => format!("HY({n},87)"),
            Self::Hy(n, u) => format!("HY({n},{:.1})", u * 100.0),
            Self::HyWith(n, _, _, what) => format!("HY({n},87), {what}"),
            Self::HyEngine(n, u) => format!("HY({n},{u}) of the engine"),
        }
    }

    /// One of each, with the paper's parameters.
    #[cfg(test)]
    pub fn all() -> [Self; 10] {
        [
            Self::Ao(1),
            Self::Ao(8),
            Self::Ff,
            Self::FfDb2,
            Self::Nf,
            Self::NfH,
            Self::NfWh,
            Self::Bf,
            Self::Hy(8, 0.875),
            Self::HyEngine(8, 87),
        ]
    }
}
