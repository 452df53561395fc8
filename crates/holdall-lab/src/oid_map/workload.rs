//! The object bases and workloads of the paper (Eickler §5.2). Owns a base: a mapping on a disk in
//! memory, and the OID of each object. Every handle looked up is compared. Threads: none.

use std::sync::Arc;

use anyhow::{Result, ensure};
use holdall_io::{Disk, MemoryDisk};
use rand::rngs::SmallRng;
use rand::seq::{SliceRandom, index};
use rand::{Rng, SeedableRng};

use super::btree::{BTree, Split};
use super::direct::{Direct, Placement};
use super::hash::{Control, LinearHash};
use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid, PER_PAGE};

/// A technique and its placement of handles, by the paper's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    /// LH.
    Hash,
    /// rBT.
    RandomTree,
    /// cBT.
    ClusteredTree,
    /// rDM.
    RandomDirect,
    /// clDM.
    LinearDirect,
    /// cmDM.
    MatrixDirect,
}

impl Technique {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Hash,
        Self::RandomTree,
        Self::ClusteredTree,
        Self::RandomDirect,
        Self::LinearDirect,
        Self::MatrixDirect,
    ];

    /// The paper's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["LH", "rBT", "cBT", "rDM", "clDM", "cmDM"][self as usize]
    }
}

/// What transactions do: each works on one module, drawn anew.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Data pages of a module.
    pub module: usize,
    /// Random pages of the module whose any object is asked for; `None` asks for the first
    /// object of every page in order.
    pub select: Option<usize>,
    /// Whether 5 % of the modules get 80 % of the transactions.
    pub hot: bool,
}

/// Table 2: Sequential, Random, Hot.
pub const TABLE_2: [Workload; 3] = [
    Workload { module: 5000, select: None, hot: false },
    Workload { module: 50, select: Some(5), hot: false },
    Workload { module: 500, select: Some(500), hot: true },
];

/// An object base.
pub struct Base {
    /// Its mapping.
    pub mapping: Box<dyn Mapping>,
    oids: Vec<Oid>,
    rng: SmallRng,
}

impl Base {
    /// A base of `objects`; a hash table has buckets for `extra` more. Handles are recorded in
    /// ascending order of OIDs, or bucket by bucket, so that a small buffer will do.
    ///
    /// # Errors
    /// Those of the mapping.
    pub fn build(technique: Technique, objects: usize, extra: usize, seed: u64) -> Result<Self> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        if technique == Technique::Hash {
            let first = LinearHash::tuned((objects + extra) as u64, 1.0);
            let mut table = LinearHash::open(disk, 100, first, Control::Collision)?;
            for bucket in 0..first as usize {
                for n in (bucket..objects).step_by(first as usize) {
                    table.insert(Oid::serial(n as u64), Handle::of(n))?;
                }
            }
            let oids = (0..objects).map(|n| Oid::serial(n as u64)).collect();
            return Ok(Self { mapping: Box::new(table), oids, rng });
        }
        let mut order: Vec<u32> = (0..objects as u32).collect();
        if matches!(technique, Technique::RandomTree | Technique::RandomDirect) {
            order.shuffle(&mut rng);
        }
        let mut mapping: Box<dyn Mapping> = match technique {
            Technique::RandomTree | Technique::ClusteredTree => {
                Box::new(BTree::open(disk, 100, Split::Tuned)?)
            }
            Technique::MatrixDirect => Box::new(Direct::open(disk, 100, Placement::Matrix)?),
            _ => Box::new(Direct::open(disk, 100, Placement::Linear)?),
        };
        let mut oids = vec![Oid::serial(0); objects];
        let mut near = None;
        for object in order {
            let handle = Handle::of(object as usize);
            let oid = mapping.create(Place { near, slot: handle.slot }, handle)?;
            oids[object as usize] = oid;
            near = Some(oid);
        }
        Ok(Self { mapping, oids, rng })
    }

    /// Objects.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.oids.len()
    }

    /// Maps the OID of an object; gives the page faults.
    ///
    /// # Errors
    /// Those of the mapping; a wrong handle.
    pub fn request(&mut self, object: usize) -> Result<u64> {
        let before = self.mapping.pages().faults();
        let found = self.mapping.lookup(self.oids[object])?;
        ensure!(found == Some(Handle::of(object)), "object {object} has handle {found:?}");
        Ok(self.mapping.pages().faults() - before)
    }

    /// Maps the OID of any object; gives the page faults.
    ///
    /// # Errors
    /// As [`Base::request`].
    pub fn any(&mut self) -> Result<u64> {
        let object = self.rng.random_range(0..self.oids.len());
        self.request(object)
    }

    /// One transaction on a module; gives requests and faults.
    ///
    /// # Errors
    /// As [`Base::request`].
    pub fn transaction(&mut self, work: Workload, module: usize) -> Result<(u64, u64)> {
        let first = module * work.module;
        let objects: Vec<usize> = match work.select {
            None => (0..work.module).map(|page| (first + page) * PER_PAGE).collect(),
            Some(r) => index::sample(&mut self.rng, work.module, r)
                .into_iter()
                .map(|page| (first + page) * PER_PAGE + self.rng.random_range(0..PER_PAGE))
                .collect(),
        };
        let mut faults = 0;
        for &object in &objects {
            faults += self.request(object)?;
        }
        Ok((objects.len() as u64, faults))
    }

    /// Modules of a workload.
    #[must_use]
    pub fn modules(&self, work: Workload) -> usize {
        (self.oids.len() / PER_PAGE / work.module).max(1)
    }

    /// Faults per request with a buffer of `frames`, over so many `requests` after a warm-up of a
    /// third as many.
    ///
    /// # Errors
    /// As [`Base::request`].
    pub fn rate(&mut self, work: Workload, frames: usize, requests: u64) -> Result<f64> {
        self.mapping.pages().set_buffer(frames)?;
        let modules = self.modules(work);
        let hot = modules.div_ceil(20);
        let each = work.select.unwrap_or(work.module) as u64;
        let warm = (requests / 3).div_ceil(each);
        let (mut asked, mut faults) = (0, 0);
        for turn in 0..warm + requests.div_ceil(each) {
            let module = match work.hot && hot < modules {
                false => self.rng.random_range(0..modules),
                // The hot modules lie spread over the base.
                true if self.rng.random_bool(0.8) => self.rng.random_range(0..hot) * 20 % modules,
                true => self.rng.random_range(0..modules),
            };
            let (more, missed) = self.transaction(work, module)?;
            if turn >= warm {
                (asked, faults) = (asked + more, faults + missed);
            }
        }
        Ok(faults as f64 / asked as f64)
    }

    /// Faults per request of modules each used once with an empty buffer, at most 20 of them.
    ///
    /// # Errors
    /// As [`Base::request`].
    pub fn cold(&mut self, work: Workload, frames: usize) -> Result<f64> {
        let modules = self.modules(work);
        let (mut asked, mut faults) = (0, 0);
        for n in 0..modules.min(20) {
            self.mapping.pages().set_buffer(frames)?;
            let (more, missed) = self.transaction(work, n * modules / modules.min(20))?;
            (asked, faults) = (asked + more, faults + missed);
        }
        Ok(faults as f64 / asked as f64)
    }

    /// Faults per new object (§6.3): `new` objects, and after each as many random requests as the
    /// buffer has frames. The last `kept` pages that took new mappings stay in the buffer. Not
    /// counted is a data page of objects before, which brings those pages into the buffer; with
    /// `split`, all objects up to one that makes the file grow.
    ///
    /// # Errors
    /// As [`Base::request`].
    pub fn creation(&mut self, new: usize, frames: usize, kept: usize, split: bool) -> Result<f64> {
        self.mapping.pages().set_buffer(frames)?;
        self.mapping.pages().set_kept(kept);
        let mut near = self.oids.last().copied();
        let (mut faults, mut before_it) = (0, 0);
        let used = self.mapping.used();
        while before_it < PER_PAGE || split && self.mapping.used() == used {
            let handle = Handle::of(self.oids.len() + before_it);
            near = Some(self.mapping.create(Place { near, slot: handle.slot }, handle)?);
            before_it += 1;
        }
        for n in before_it..before_it + new {
            for _ in 0..frames {
                self.any()?;
            }
            let handle = Handle::of(self.oids.len() + n);
            let before = self.mapping.pages().faults();
            near = Some(self.mapping.create(Place { near, slot: handle.slot }, handle)?);
            faults += self.mapping.pages().faults() - before;
        }
        self.mapping.pages().set_kept(0);
        Ok(faults as f64 / new as f64)
    }
}
