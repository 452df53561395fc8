//! The object bases and workloads of the paper (Eickler §5.2). Owns a base: a mapping on a disk,
//! and the OID of each object. Every handle looked up is compared. Threads: none.

use std::sync::Arc;

use anyhow::{Result, ensure};
use holdall_io::Disk;
use rand::rngs::SmallRng;
use rand::seq::{SliceRandom, index};
use rand::{Rng, SeedableRng};

use super::btree::{BTree, Split};
use super::direct::{Direct, Placement};
use super::hash::{Control, LinearHash};
use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid, PER_PAGE};
use super::pages::Faults;

/// A technique and its placement of handles; the paper's LH, rBT, cBT, rDM, clDM and cmDM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Technique {
    Hash,
    RandomTree,
    ClusteredTree,
    RandomDirect,
    LinearDirect,
    MatrixDirect,
    /// LH whose new OIDs come in no order; not the paper's.
    ScatteredHash,
}

impl Technique {
    /// The paper's.
    pub const ALL: [Self; 6] = [
        Self::Hash,
        Self::RandomTree,
        Self::ClusteredTree,
        Self::RandomDirect,
        Self::LinearDirect,
        Self::MatrixDirect,
    ];

    /// The paper's name.
    pub fn name(self) -> &'static str {
        ["LH", "rBT", "cBT", "rDM", "clDM", "cmDM", "LH, scattered"][self as usize]
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

impl Workload {
    /// Requests of a transaction.
    pub fn requests(&self) -> u64 {
        self.select.unwrap_or(self.module) as u64
    }
}

/// Table 2: Sequential, Random, Hot.
pub const TABLE_2: [Workload; 3] = [
    Workload { module: 5000, select: None, hot: false },
    Workload { module: 50, select: Some(5), hot: false },
    Workload { module: 500, select: Some(500), hot: true },
];

/// New objects before those that [`Base::creation`] counts: ten of each logical file of a matrix,
/// and two leaves of a tree.
pub const WARM: usize = 200;

/// An object base.
pub struct Base {
    /// Its mapping.
    pub mapping: Box<dyn Mapping>,
    oids: Vec<Oid>,
    rng: SmallRng,
}

impl Base {
    /// A base of `objects` on an empty `disk`; a hash table has buckets for `extra` more. Handles
    /// are recorded in ascending order of OIDs, or bucket by bucket, so that a small buffer will
    /// do.
    pub fn build(
        disk: Arc<dyn Disk>,
        technique: Technique,
        objects: usize,
        extra: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut rng = SmallRng::seed_from_u64(seed);
        if matches!(technique, Technique::Hash | Technique::ScatteredHash) {
            let first = LinearHash::tuned((objects + extra) as u64);
            let mut table = LinearHash::open(disk, 100, first, Control::Collision)?;
            for bucket in 0..first as usize {
                for n in (bucket..objects).step_by(first as usize) {
                    table.insert(Oid::serial(n as u64), Handle::of(n))?;
                }
            }
            if technique == Technique::ScatteredHash {
                table = table.scattered();
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

    /// Maps the OID of an object.
    pub fn look_up(&mut self, object: usize) -> Result<()> {
        let found = self.handle(object)?;
        ensure!(found == Some(Handle::of(object)), "object {object} has handle {found:?}");
        Ok(())
    }

    /// What the OID of an object is mapped to.
    pub fn handle(&mut self, object: usize) -> Result<Option<Handle>> {
        self.mapping.lookup(self.oids[object])
    }

    /// Records that an object moved.
    pub fn moved(&mut self, object: usize, to: Handle) -> Result<bool> {
        self.mapping.update(self.oids[object], to)
    }

    /// Deletes any object and puts a new one in its place; gives the new OID, which lies near
    /// another one.
    pub fn replace(&mut self, near: Option<Oid>, number: usize) -> Result<Oid> {
        let object = self.rng.random_range(0..self.oids.len());
        ensure!(self.mapping.remove(self.oids[object])?, "object {object} is not there");
        let handle = Handle::of(number);
        self.oids[object] = self.mapping.create(Place { near, slot: handle.slot }, handle)?;
        Ok(self.oids[object])
    }

    /// Maps the OID of any object; gives the page faults.
    pub fn any(&mut self) -> Result<u64> {
        let before = self.faults().all();
        let object = self.rng.random_range(0..self.oids.len());
        self.look_up(object)?;
        Ok(self.faults().all() - before)
    }

    fn faults(&mut self) -> Faults {
        self.mapping.pages().faults()
    }

    /// Modules of a workload.
    pub fn modules(&self, work: Workload) -> usize {
        (self.oids.len() / PER_PAGE / work.module).max(1)
    }

    /// The module of the next transaction. Every twentieth is hot.
    pub fn module(&mut self, work: Workload) -> usize {
        let modules = self.modules(work);
        let hot = self.rng.random_bool(0.8);
        loop {
            let module = self.rng.random_range(0..modules);
            if !work.hot || modules == 1 || module.is_multiple_of(20) == hot {
                return module;
            }
        }
    }

    /// The objects that a transaction asks for in a module.
    pub fn objects(&mut self, work: Workload, module: usize) -> Vec<usize> {
        let first = module * work.module;
        match work.select {
            None => (0..work.module).map(|page| (first + page) * PER_PAGE).collect(),
            Some(r) => index::sample(&mut self.rng, work.module, r)
                .into_iter()
                .map(|page| (first + page) * PER_PAGE + self.rng.random_range(0..PER_PAGE))
                .collect(),
        }
    }

    /// One transaction on a module.
    fn transact(&mut self, work: Workload, module: usize) -> Result<()> {
        self.objects(work, module).into_iter().try_for_each(|object| self.look_up(object))
    }

    /// Faults per request with a buffer of `frames`, over this many `requests` after a warm-up of a
    /// third as many.
    pub fn rate(&mut self, work: Workload, frames: usize, requests: u64) -> Result<f64> {
        self.mapping.pages().set_buffer(frames)?;
        let each = work.requests();
        let warm = (requests / 3).div_ceil(each);
        let turns = requests.div_ceil(each);
        let mut before = 0;
        for turn in 0..warm + turns {
            if turn == warm {
                before = self.faults().all();
            }
            let module = self.module(work);
            self.transact(work, module)?;
        }
        Ok((self.faults().all() - before) as f64 / (turns * each) as f64)
    }

    /// Faults per request of modules each used once with an empty buffer, at most 20 of them.
    pub fn cold(&mut self, work: Workload, frames: usize) -> Result<f64> {
        let (modules, before) = (self.modules(work), self.faults().all());
        let used = modules.min(20);
        for n in 0..used {
            self.mapping.pages().set_buffer(frames)?;
            self.transact(work, n * modules / used)?;
        }
        Ok((self.faults().all() - before) as f64 / (used as u64 * work.requests()) as f64)
    }

    /// Faults of `new` objects (§6.3), each after as many random requests as the buffer has
    /// frames. The last `kept` pages that new mappings needed stay in the buffer. [`WARM`] objects
    /// before them are not counted, so that the buffer holds what it holds in steady use; with
    /// `split` neither are those before, up to one that makes the file grow.
    pub fn creation(
        &mut self,
        new: usize,
        frames: usize,
        kept: usize,
        split: bool,
    ) -> Result<Faults> {
        self.mapping.pages().set_buffer(frames)?;
        self.mapping.pages().set_kept(kept);
        let mut near = self.oids.last().copied();
        let mut next = self.oids.len();
        let used = self.mapping.used();
        while split && self.mapping.used() == used {
            let handle = Handle::of(next);
            near = Some(self.mapping.create(Place { near, slot: handle.slot }, handle)?);
            next += 1;
        }
        let mut sum = Faults::default();
        for n in next..next + WARM + new {
            for _ in 0..frames {
                self.any()?;
            }
            let handle = Handle::of(n);
            let before = self.faults();
            near = Some(self.mapping.create(Place { near, slot: handle.slot }, handle)?);
            if n >= next + WARM {
                sum = sum.and(&self.faults().since(&before));
            }
        }
        self.mapping.pages().set_kept(0);
        Ok(sum)
    }
}
