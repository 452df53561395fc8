//! Filling a volume with objects (McAuliffe §5.1, §5.2): transactions of 10,000 creations until
//! no page is left.

use super::clock::CpuClock;
use super::objects::{Sizes, content};
use super::sample::{Run, Sample};
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::{HeapFile, Options};
use crate::kit::error::Error;
use anyhow::{Result, ensure};
use holdall_testkit::{CostModel, CountedDisk, SparseDisk};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::Arc;

/// Parameters of a fill.
#[derive(Debug, Clone, Copy)]
pub struct Fill {
    /// Sizes of the objects.
    pub sizes: Sizes,
    /// The file; its volume's size is what is filled.
    pub options: Options,
    /// Ends when the file has this many pages, though the volume be larger.
    pub cut: u32,
    /// Creations per transaction.
    pub batch: u64,
    /// The disk's rule of seeks and costs.
    pub disk: CostModel,
    /// Of sizes.
    pub seed: u64,
}

/// Each object of this many is read again after the run.
const PROBE: u64 = 997;

/// Fills a volume in memory. `progress` gets the pages of the file now and then.
pub fn fill(kind: Kind, fill: &Fill, progress: &dyn Fn(u64)) -> Result<Run> {
    let disk = Arc::new(CountedDisk::new(Arc::new(SparseDisk::new()), fill.disk));
    let mut file = HeapFile::open(disk.clone(), fill.options, kind)?;
    let mut rng = SmallRng::seed_from_u64(fill.seed);
    let goal = fill.cut.min(fill.options.max_pages);
    let clock = CpuClock::start();
    let mut run = Run { kind, samples: vec![Sample::default()], cut: false };
    let (mut now, mut bytes, mut probes) = (Sample::default(), Vec::new(), Vec::new());
    let mut full = false;
    while !full && file.pages() < goal {
        let tx = file.begin()?;
        for _ in 0..fill.batch {
            let (id, len) = (now.live as u32, fill.sizes.draw(&mut rng));
            content(id, len, &mut bytes);
            match file.create(tx, &bytes) {
                Ok(rid) if now.live.is_multiple_of(PROBE) => probes.push((rid, id, len)),
                Ok(_) => {}
                Err(Error::Full) => {
                    full = true;
                    break;
                }
                Err(other) => return Err(other.into()),
            }
            now.live += 1;
            now.bytes += len as u64;
        }
        file.commit(tx)?;
        now.transactions += 1;
        let due = u64::from(goal) * run.samples.len() as u64 / 40;
        if u64::from(file.pages()) >= due || full {
            look(&mut now, &file, &disk, &clock);
            run.samples.push(now);
            progress(u64::from(file.pages()));
        }
    }
    look(&mut now, &file, &disk, &clock);
    run.samples.push(now);
    run.cut = !full;
    for (rid, id, len) in probes {
        content(id, len, &mut bytes);
        ensure!(file.read(rid)? == Some(&bytes[..]), "object {id} came back wrong");
    }
    Ok(run)
}

/// Brings a sample up to date with file, disk and clock.
pub(super) fn look(now: &mut Sample, file: &HeapFile, disk: &CountedDisk, clock: &CpuClock) {
    now.pages = file.pages();
    now.usable = file.usable();
    now.memory = file.algorithm_memory();
    now.counters = file.counters();
    now.disk = disk.stats();
    now.cpu = clock.elapsed().as_secs_f64();
}
