//! Backups beside everything else.
//!
//! Owns: a chain of a whole backup and its increments, which outlives crashes as one elsewhere does;
//! and what a store that is restored from it must hold: the state of the snapshot that the last was
//! taken of.

use crate::check::{self, Bad};
use crate::op::Op;
use crate::script::Script;
use crate::world::{Outcome, World};
use holdall::{
    Backup, BackupHead, BackupId, BackupPart, BackupPieces, BackupSource, Error, Reached, Reader,
    Store, restore_on,
};
use holdall_io::{MemoryStorage, Storage};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Increments after which a whole one is taken.
const LONGEST: usize = 6;

/// Backups each of which builds on the one before; the first is whole.
#[derive(Default)]
pub(crate) struct Chain {
    parts: Vec<Vec<u8>>,
    last: Option<BackupId>,
    /// One that builds on the last and was broken off.
    broken: Option<Pieces>,
}

/// What was kept of a backup that may be broken off.
#[derive(Default)]
struct Pieces {
    head: Option<BackupHead>,
    bytes: Vec<u8>,
    pages: u64,
    /// Places from which it goes on.
    places: Vec<Place>,
}

/// Bytes and pages before a place in a backup.
#[derive(Clone, Copy)]
struct Place {
    reached: Reached,
    bytes: usize,
    pages: u64,
}

impl BackupPieces for Pieces {
    fn head(&mut self, head: &BackupHead) -> holdall::Result<()> {
        self.head = Some(*head);
        self.write(&head.encode(), 0)
    }

    fn write(&mut self, bytes: &[u8], pages: u64) -> holdall::Result<()> {
        self.bytes.extend_from_slice(bytes);
        self.pages += pages;
        Ok(())
    }

    fn reached(&mut self, reached: Reached) -> holdall::Result<()> {
        self.places.push(Place { reached, bytes: self.bytes.len(), pages: self.pages });
        Ok(())
    }
}

impl Pieces {
    /// What is there of it if the last of it was lost; nothing if that is all.
    fn broken_off(mut self, lost: usize) -> Option<Self> {
        let left = self.places.len().saturating_sub(lost);
        self.places.truncate(left);
        let place = *self.places.last()?;
        self.bytes.truncate(place.bytes);
        self.pages = place.pages;
        Some(self)
    }

    /// How it goes on.
    fn resumed(&self) -> Option<Backup> {
        let (head, place) = (self.head?, self.places.last()?);
        Some(Backup::new().resume(head, place.reached, place.pages))
    }
}

/// A store whose last snapshot for the backup is kept.
struct Kept {
    store: Store,
    reader: Option<Reader>,
}

impl BackupSource for Kept {
    fn mark(&mut self, forget: &[[u8; 16]]) -> holdall::Result<Option<holdall::Mark>> {
        self.store.mark_backup(forget).map(Some)
    }

    fn state(&mut self) -> holdall::Result<Reader> {
        let reader = self.store.read()?;
        self.reader = Some(reader.clone());
        Ok(reader)
    }
}

/// Puts backups into a fifth of all scripts.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(9) ^ 0x6261_636b);
    if rng.random_range(0..5) > 0 {
        return;
    }
    for _ in 0..rng.random_range(2..16) {
        let at = rng.random_range(0..=script.ops.len());
        let most = script.ops.len() - at;
        let some = rng.random_range(0..=most.min(6));
        // Some of what would follow is done while it is taken.
        let may = |op: &Op| {
            let ends = matches!(op, Op::Close(_) | Op::Crash(_) | Op::Arm(..) | Op::Several(_));
            !ends && !matches!(op, Op::Backup(..) | Op::VerifyBeside(_))
        };
        let between = match rng.random_range(0..3) {
            0 if script.ops[at..at + some].iter().all(may) => {
                script.ops.splice(at..at + some, []).collect()
            }
            _ => Vec::new(),
        };
        script.ops.insert(at, Op::Backup(rng.random(), between));
    }
}

impl World {
    /// Takes a backup while these are done, one after each granule, and restores it.
    pub(crate) fn back_up(&mut self, n: u8, work: &[Op]) -> Outcome {
        if self.storage.crashed() || self.store.is_none() || self.inside || self.poisoned {
            return Ok(());
        }
        // Nothing ends the life of the store that is backed up meanwhile.
        let work = if self.is_quiet() { work } else { &[] };
        let mut chain = std::mem::take(&mut self.backups);
        if n.is_multiple_of(8) || chain.parts.len() > LONGEST {
            chain = Chain::default();
        }
        let mut kept = Kept { store: self.store()?.clone(), reader: None };
        let (base, crashes) = (chain.last, self.report.crashes);
        let mut pieces = chain.broken.take().unwrap_or_default();
        let goes_on = pieces.head.is_some();
        let backup = pieces
            .resumed()
            .unwrap_or_else(|| base.map_or_else(Backup::new, |base| Backup::new().base(base)));
        let (mut left, mut failure) = (work.iter(), None);
        // Some are broken off on their way.
        let mut granules = if n % 8 == 3 { usize::from(n / 8 % 8) } else { usize::MAX };
        let taken = backup.to_pieces(&mut kept, &mut pieces, &mut |_| {
            if failure.is_none()
                && let Some(op) = left.next()
            {
                failure = self.play(op).err();
            }
            granules = granules.saturating_sub(1);
            if granules == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if let Some(failure) = failure {
            return Err(format!("beside a backup: {failure}"));
        }
        let taken = match taken {
            // The life that it was of has ended.
            _ if self.report.crashes > crashes => {
                chain.broken = pieces.broken_off(usize::from(n / 32));
                self.backups = chain;
                return Ok(());
            }
            Ok(taken) => taken,
            Err(e) => {
                // What was there before stays good, and what was copied counts.
                chain.broken = pieces.broken_off(usize::from(n / 32));
                self.backups = chain;
                return match e {
                    Error::Cancelled if goes_on || !work.is_empty() => Ok(()),
                    Error::Cancelled => self.made_durable("marked for a backup", Ok(())),
                    Error::SnapshotTooOld { .. } if self.may_expire() => Ok(()),
                    e => self.explain("a backup", e),
                };
            }
        };
        if work.is_empty() && !goes_on {
            self.made_durable("marked for a backup", Ok(()))?;
        }
        chain.parts.push(pieces.bytes);
        chain.last = taken.id;
        self.note(format!("backup {} of {} bytes", chain.parts.len(), taken.copied));
        let restored = self.compare(&chain, kept.reader)?;
        if let Some(restored) = restored.filter(|_| n % 4 == 1) {
            self.lives_on(&mut chain, restored)?;
        }
        self.backups = chain;
        Ok(())
    }

    /// Restores a chain and holds it against the snapshot that its last part was taken of; `None` if
    /// that cannot be read any more.
    fn compare(&mut self, chain: &Chain, reader: Option<Reader>) -> Outcome<Option<Store>> {
        let reader = reader.ok_or("a backup without a snapshot")?;
        let wanted = match check::read_out(&reader) {
            Ok(state) => state,
            Err(Bad::Engine(Error::SnapshotTooOld { .. })) if self.may_expire() => return Ok(None),
            Err(bad) => {
                return self.explain_bad("the snapshot of a backup", bad).map(|()| None);
            }
        };
        self.report.checks += 1;
        let restored = self.restored(chain)?;
        let failed = |e: Error| format!("a restored store: {e}");
        let bad = |bad: Bad| format!("a restored store: {bad}");
        let found = check::read_out(&restored.read().map_err(failed)?).map_err(bad)?;
        if let Some(text) = found.difference(&wanted) {
            return Err(format!("a store restored from {} parts: {text}", chain.parts.len()));
        }
        check::sound(&restored.verify().map_err(failed)?).map_err(bad)?;
        Ok(Some(restored))
    }

    fn restored(&self, chain: &Chain) -> Outcome<Store> {
        let storage = Arc::new(MemoryStorage::new());
        let part = |bytes: &Vec<u8>| {
            BackupPart::Stream(Box::new(std::io::Cursor::new(bytes.clone())), "a part".into())
        };
        restore_on(&*storage.volume(), chain.parts.iter().map(part))
            .map_err(|e| format!("a restore: {e}"))?;
        let options = self.params.options().max_bytes(u64::MAX);
        options.open_on(storage).map_err(|e| format!("opening a restored store: {e}"))
    }

    /// A restored store is written, and backed up in turn: its history goes on.
    fn lives_on(&self, chain: &mut Chain, store: Store) -> Outcome {
        let failed = |e: Error| format!("a store restored and written: {e}");
        store.write(|tx| tx.put("restored", &[7; 20_000]).map(drop)).map_err(failed)?;
        let mut bytes = Vec::new();
        let base = chain.last.ok_or("a chain without a backup")?;
        let mut source = store.clone();
        let backup = Backup::new().base(base);
        backup
            .to_stream(&mut source, &mut bytes, &mut |_| ControlFlow::Continue(()))
            .map_err(failed)?;
        let wanted = check::read_out(&store.read().map_err(failed)?)
            .map_err(|bad| format!("a store restored and written: {bad}"))?;
        chain.parts.push(bytes);
        let again = self.restored(chain)?;
        let found = check::read_out(&again.read().map_err(failed)?)
            .map_err(|bad| format!("a store restored twice: {bad}"))?;
        chain.parts.pop();
        match found.difference(&wanted) {
            Some(text) => Err(format!("a store restored twice: {text}")),
            None => Ok(()),
        }
    }
}
