//! Creating and deleting (McAuliffe §5.3, §5.4): streams of transactions, each creating or
//! deleting 8 to 16 objects, on a file filled before by AO(8).
//!
//! Streams take turns, one object each, on one thread: what interleaves is the same in every
//! run. An object created is drawn for deletion only after its transaction has committed, one
//! taken for deletion is not drawn again, so no stream ever waits for another's lock.

use super::clock::CpuClock;
use super::fill::look;
use super::objects::{Live, Objects, Sizes, content};
use super::sample::{Run, Sample};
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::{HeapFile, Options, TxId};
use anyhow::{Result, ensure};
use holdall_io::Disk;
use holdall_testkit::{CostModel, CountedDisk, SparseDisk};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Churn {
    /// Objects the file has at first.
    pub objects: u64,
    /// Sizes of all objects.
    pub sizes: Sizes,
    /// Streams of transactions at once, 1 to 5.
    pub streams: usize,
    /// Transactions in all.
    pub transactions: u64,
    /// Objects created or deleted by a transaction: fewest, most.
    pub batch: (u32, u32),
    /// `true`: a transaction creates or deletes by the toss of a coin. `false`: they alternate,
    /// creation first, each of the most objects (appendix A).
    pub random: bool,
    /// The algorithm that fills the file at first.
    pub filler: Kind,
    /// The file.
    pub options: Options,
    /// The disk's rule of seeks and costs.
    pub disk: CostModel,
    /// Of every draw.
    pub seed: u64,
}

/// A stream's transaction.
pub(super) struct Turn {
    tx: TxId,
    creates: bool,
    /// Objects to come.
    pub(super) left: u32,
    created: Vec<Live>,
}

/// A file and the objects it holds.
pub(super) struct World<'a> {
    file: HeapFile,
    objects: Objects,
    rng: SmallRng,
    params: &'a Churn,
    next_id: u32,
    /// Of the object last created or deleted.
    pub(super) bytes: Vec<u8>,
    creates_next: bool,
}

impl World<'_> {
    pub(super) fn begin(&mut self) -> Result<Turn> {
        let (few, most) = self.params.batch;
        let (creates, left) = if self.params.random {
            (self.rng.random(), self.rng.random_range(few..=most))
        } else {
            (self.creates_next, most)
        };
        self.creates_next = !creates;
        Ok(Turn { tx: self.file.begin()?, creates, left, created: Vec::new() })
    }

    fn create(&mut self, tx: TxId) -> Result<Live> {
        let (id, len) = (self.next_id, self.params.sizes.draw(&mut self.rng));
        self.next_id = self.next_id.wrapping_add(1);
        content(id, len, &mut self.bytes);
        let rid = self.file.create(tx, &self.bytes)?;
        Ok(Live { rid, id, len: len as u16 })
    }

    /// Creates or deletes the next object of a transaction.
    pub(super) fn step(&mut self, turn: &mut Turn) -> Result<()> {
        turn.left -= 1;
        if turn.creates {
            let live = self.create(turn.tx)?;
            turn.created.push(live);
        } else if let Some(live) = self.objects.take(&mut self.rng) {
            content(live.id, usize::from(live.len), &mut self.bytes);
            let deleted = self.file.delete(turn.tx, live.rid)?;
            ensure!(deleted == self.bytes, "object {} came back wrong", live.id);
        }
        Ok(())
    }

    /// Commits a transaction.
    pub(super) fn end(&mut self, turn: Turn) -> Result<()> {
        self.file.commit(turn.tx)?;
        turn.created.into_iter().for_each(|live| self.objects.put(live));
        Ok(())
    }

    fn fill(&mut self) -> Result<()> {
        let mut left = self.params.objects;
        while left > 0 {
            let tx = self.file.begin()?;
            for _ in 0..left.min(10_000) {
                let live = self.create(tx)?;
                self.objects.put(live);
            }
            self.file.commit(tx)?;
            left -= left.min(10_000);
        }
        self.file.flush()?;
        Ok(())
    }
}

/// The file on an empty disk, filled, and then placed by `kind`.
pub(super) fn open(kind: Kind, params: &Churn, disk: Arc<dyn Disk>) -> Result<World<'_>> {
    let mut world = World {
        file: HeapFile::open(disk, params.options, params.filler)?,
        objects: Objects::new(),
        rng: SmallRng::seed_from_u64(params.seed),
        params,
        next_id: 0,
        bytes: Vec::new(),
        creates_next: true,
    };
    world.fill()?;
    world.file.switch(kind)?;
    Ok(world)
}

/// Runs it on a disk in memory. `progress` gets the transactions committed now and then.
pub fn churn(kind: Kind, params: &Churn, progress: &dyn Fn(u64)) -> Result<Run> {
    let disk = Arc::new(CountedDisk::new(Arc::new(SparseDisk::new()), params.disk));
    let mut world = open(kind, params, disk.clone())?;
    let mut meter = Meter::new(kind, params, CpuClock::start());
    meter.sample(&world, &disk);
    let mut turns: Vec<Option<Turn>> = (0..params.streams.max(1)).map(|_| None).collect();
    let mut begun = 0;
    while meter.now.transactions < params.transactions {
        for slot in &mut turns {
            let mut turn = match slot.take() {
                Some(turn) => turn,
                None if begun == params.transactions => continue,
                None => {
                    begun += 1;
                    world.begin()?
                }
            };
            world.step(&mut turn)?;
            if turn.left > 0 {
                *slot = Some(turn);
                continue;
            }
            world.end(turn)?;
            if meter.count(&world, &disk) {
                progress(meter.now.transactions);
            }
        }
    }
    Ok(meter.run)
}

/// Takes the samples.
pub(super) struct Meter {
    pub(super) run: Run,
    now: Sample,
    clock: CpuClock,
    every: u64,
}

impl Meter {
    pub(super) fn new(kind: Kind, params: &Churn, clock: CpuClock) -> Self {
        let run = Run { kind, samples: Vec::new(), cut: false };
        Self { run, now: Sample::default(), clock, every: (params.transactions / 40).max(1) }
    }

    /// A transaction has committed; whether a sample was due.
    pub(super) fn count(&mut self, world: &World<'_>, disk: &CountedDisk) -> bool {
        self.now.transactions += 1;
        let due = self.now.transactions.is_multiple_of(self.every);
        if due {
            self.sample(world, disk);
        }
        due
    }

    pub(super) fn sample(&mut self, world: &World<'_>, disk: &CountedDisk) {
        self.now.live = world.objects.count() as u64;
        self.now.bytes = world.objects.bytes();
        look(&mut self.now, &world.file, disk, &self.clock);
        self.run.samples.push(self.now);
    }
}
