//! Opening a store that another process may have open for writing.
//!
//! Owns: no state; which of two ways an opening takes. While somebody writes, the log is followed
//! ([`crate::txn::Beside`]). While nobody does, recovery makes the newest state in memory, as after
//! a crash. Both take nothing for granted that a superblock written meanwhile contradicts.

use super::{Inner, Options, Parts, format, pager, refuse_short};
use crate::cache::holder::Holder;
use crate::txn::{Beside, Volume, Waiting, has_writer};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, Result};
use holdall_io::{OverlayStorage, Storage, watch_forks};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that an opening waits for a writer that opens the store, or begins again because
/// one changed it.
const MOST_WAIT: Duration = Duration::from_secs(10);
/// A writer that shows nothing for so long cannot: its log's last block then says what is durable,
/// which is one group older.
const MOST_SILENCE: Duration = Duration::from_millis(100);
/// Between two tries: longer from one to the next, up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// What a try came to.
enum Tried {
    Opened(Arc<Inner>),
    /// A writer is opening it, or changes it faster than it can be read.
    Again,
}

/// Opens a store for reading beside others. Cost: of the log, what a recovery
/// would read; nothing is written.
///
/// # Errors
/// As [`Options::open_read_only`]; [`Error::Locked`] if a writer has been opening the store
/// for ten seconds.
pub(crate) fn open_beside(storage: &Arc<dyn Storage>, options: &Options) -> Result<Arc<Inner>> {
    watch_forks();
    let waiting = Waiting::begin(options.wait, options.cancel.as_ref());
    let (begun, mut pause) = (Instant::now(), Duration::from_micros(200));
    loop {
        let slots = format::read_slots(&**storage, options)?;
        let tried = match has_writer(&**storage)? {
            // It has the lock, and says nothing yet.
            true if begun.elapsed() < MOST_SILENCE
                && storage.volume().shown_durable().is_none() =>
            {
                Ok(Tried::Again)
            }
            true => follow(storage, options, &slots.best),
            false => alone(storage, options, &slots.best),
        };
        let changed = || {
            let now = format::read_slots(&**storage, options);
            !now.is_ok_and(|now| now.best.sequence == slots.best.sequence)
        };
        match tried {
            Ok(Tried::Opened(inner)) => return Ok(inner),
            Err(e) if begun.elapsed() >= MOST_WAIT || !changed() => return Err(e),
            Ok(Tried::Again) if begun.elapsed() >= MOST_WAIT => return Err(busy(&**storage)),
            _ => {}
        }
        waiting.check()?;
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// While nobody writes. What recovery makes lies in memory above files that stay as they are.
fn alone(storage: &Arc<dyn Storage>, options: &Options, sb: &Superblock) -> Result<Tried> {
    let overlay = OverlayStorage::new(storage.clone())
        .map_err(|e| Error::io("opening the store for reading", e))?;
    let beside = Beside::alone(storage.clone(), sb.clone());
    let inner = Inner::open(Arc::new(overlay), options, Some(beside))?;
    // Somebody may have begun to write before all was read.
    Ok(if inner.pager.is_behind()? { Tried::Again } else { Tried::Opened(inner) })
}

/// While somebody writes.
fn follow(storage: &Arc<dyn Storage>, options: &Options, sb: &Superblock) -> Result<Tried> {
    let volume = Volume::new(storage.volume(), sb.clone(), None);
    refuse_short(&**storage, sb)?;
    let pager = pager(volume, options, sb.replay);
    let pager = pager.beside(Beside::writer(storage.clone(), sb.clone())?);
    // Behind what is in place: the writer is recovering the store.
    if !pager.advance()? || pager.log.durable() < sb.in_place {
        return Ok(Tried::Again);
    }
    let parts = Parts::read_only();
    Ok(Tried::Opened(Inner::assemble(storage.clone(), pager, options, parts)?))
}

/// Opens the state at `lsn`, which the process that writes the store holds. Cost: as [`open_beside`].
///
/// # Errors
/// [`Error::Invalid`] if the other process has another store open; [`Error::SnapshotTooOld`] if it
/// holds the state no more; [`Error::Locked`] if it changes the store faster than it can be read for
/// ten seconds; else as [`Options::open_read_only`].
pub(crate) fn open_held(
    storage: &Arc<dyn Storage>,
    options: &Options,
    (store, lsn): ([u8; 16], Lsn),
    holder: &Arc<dyn Holder>,
) -> Result<Arc<Inner>> {
    watch_forks();
    let (begun, mut pause) = (Instant::now(), Duration::from_micros(200));
    loop {
        let sb = format::read_slots(&**storage, options)?.best;
        if sb.store_id != store {
            let text = format!("{} is not the store that answers there", storage.name());
            return Err(Error::Invalid(text));
        }
        if let Tried::Opened(inner) = held(storage, options, (&sb, lsn), holder)? {
            return Ok(inner);
        }
        if !holder.is_held() {
            return Err(Error::SnapshotTooOld { age: Duration::ZERO });
        }
        if begun.elapsed() >= MOST_WAIT {
            return Err(busy(&**storage));
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// What is not in place is in the log, unless a checkpoint has passed the state: then all is.
fn held(
    storage: &Arc<dyn Storage>,
    options: &Options,
    (sb, lsn): (&Superblock, Lsn),
    holder: &Arc<dyn Holder>,
) -> Result<Tried> {
    refuse_short(&**storage, sb)?;
    let beside = Beside::held(storage.clone(), sb.clone(), holder.clone())?;
    let passed = sb.replay > lsn || mutation::is(Mutation::R42Log);
    let volume = Volume::new(storage.volume(), sb.clone(), None);
    let start = if passed { lsn } else { sb.replay };
    let pager = pager(volume, options, start).beside(beside);
    if !passed && !pager.advance_to(lsn)? {
        return Ok(Tried::Again);
    }
    let parts = Parts::read_only();
    Ok(Tried::Opened(Inner::assemble(storage.clone(), pager, options, parts)?))
}

fn busy(storage: &dyn Storage) -> Error {
    let by = "a process that is opening it, or changes it faster than it can be read".into();
    Error::Locked { path: storage.name(), by, process: None }
}
