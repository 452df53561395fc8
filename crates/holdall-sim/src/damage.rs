//! Damaged media: what a store shows of them is right or an error.
//!
//! Owns: the choice of the bit to invert, and which states may then be shown.

use crate::check::{self, Bad};
use crate::crash::text;
use crate::params::STORE_ID;
use crate::world::{Outcome, World};
use holdall::Error;
use holdall_core::log_format::{BLOCK, BlockHeader};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_testkit::{CrashKind, FaultyFile, FaultyStorage};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Copies damaged at a time.
const COPIES: usize = 6;
const SECTOR: usize = 512;

impl World {
    /// Inverts a bit in copies of the storage. Each copy opens to a state that may be, or says
    /// that it is damaged. Damage to the log's last group cannot be distinguished from a torn tail
    /// (rule 4): the state before it may be shown.
    pub(crate) fn damage(&mut self, seed: u64) -> Outcome {
        if self.storage.crashed() {
            return Ok(());
        }
        let Ok(stat) = self.store()?.stat() else { return Ok(()) };
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..COPIES {
            let copy = self.storage.crash(CrashKind::ProcessKilled, 0).map_err(text)?;
            let Some((file, at)) = choose(&copy, stat.epoch, &mut rng) else { continue };
            copy.flip_byte(file, at, 1 << rng.random_range(0..8)).map_err(text)?;
            self.report.checks += 1;
            let write = rng.random_bool(0.3);
            self.shows_no_wrong_state(copy, write)
                .map_err(|e| format!("{file:?} with byte {at} damaged: {e}"))?;
        }
        self.note("damaged".into());
        Ok(())
    }

    fn shows_no_wrong_state(&self, copy: FaultyStorage, write: bool) -> Outcome {
        let options = self.params.options();
        let copy = Arc::new(copy);
        let opened = if write { options.open_on(copy) } else { options.open_read_only_on(copy) };
        let store = match opened {
            Ok(store) => store,
            Err(
                Error::Corrupt { .. }
                | Error::NotAStore { .. }
                | Error::Unsupported { .. }
                | Error::NoLog { .. }
                | Error::WrongLog { .. },
            ) => return Ok(()),
            Err(e) => return Err(e.to_string()),
        };
        match store.read().map_err(Bad::from).and_then(|r| check::read_out(&r)) {
            Ok(found) if self.prior.iter().any(|prior| **prior == found) => {}
            Ok(found) => self.one_of(&found, "the state").map(|_| ())?,
            Err(Bad::Engine(Error::Corrupt { .. })) => {}
            Err(bad) => return Err(bad.to_string()),
        }
        match store.write(|tx| tx.create(b"new")) {
            // A superblock of the past must not bring back numbers of the past (rule 12).
            Ok(oid) if self.uniques.contains(&oid.unique) => {
                Err(format!("{oid} is given out again"))
            }
            Ok(_) => Ok(()),
            Err(
                Error::Corrupt { .. }
                | Error::ReadOnly
                | Error::Full(_)
                | Error::NoRoom { .. }
                | Error::WrongLog { .. },
            ) => Ok(()),
            Err(e) => Err(format!("writing: {e}")),
        }
    }
}

/// A byte that matters: in the volume, in the log, or in the log's newest block.
fn choose(copy: &FaultyStorage, epoch: u32, rng: &mut SmallRng) -> Option<(FaultyFile, u64)> {
    let (volume, log) = copy.snapshot();
    if rng.random_bool(0.15) {
        // Without the newest superblock the other one must do, or be refused (rule 15).
        let slot = |at: &u64| {
            let bytes = volume.get(*at as usize..*at as usize + SLOT_BYTES)?;
            Some((Superblock::decode(bytes).ok()??.sequence, *at))
        };
        let (_, at) = SLOT_AT.iter().filter_map(slot).max()?;
        return Some((FaultyFile::Volume, at + rng.random_range(0..200)));
    }
    let (in_log, in_newest) = (rng.random_bool(0.5), rng.random_bool(0.5));
    let (file, bytes) = match log.filter(|_| in_log) {
        Some(log) => (FaultyFile::Log, log),
        None => (FaultyFile::Volume, volume),
    };
    if file == FaultyFile::Log && in_newest {
        let header = |(i, block)| Some((BlockHeader::decode(block, &STORE_ID, epoch)?.lsn, i));
        let newest = bytes.chunks_exact(BLOCK).enumerate().filter_map(header).max();
        if let Some((_, block)) = newest {
            return Some((file, (block * BLOCK + rng.random_range(0..BLOCK)) as u64));
        }
    }
    // Zeros are mostly space that nothing uses.
    let holds = |sector: &(usize, &[u8])| sector.1.iter().any(|b| *b != 0);
    let used: Vec<usize> =
        bytes.chunks(SECTOR).enumerate().filter(holds).map(|(i, _)| i * SECTOR).collect();
    let sector = used.choose(rng)?;
    let most = SECTOR.min(bytes.len() - sector);
    Some((file, (sector + rng.random_range(0..most)) as u64))
}
