//! Replay for salvage: each page by itself, so that what is damaged costs nothing else.
//!
//! Owns no state. Writes into the volume, which is a layer in memory above the damaged file.

use super::replay::{Data, Replay, Segment, raw_page};
use super::{compose, refuse_contradictions};
use crate::log::{self, Expect, place};
use crate::txn::direct;
use crate::txn::volume::{Volume, slots_are_whole};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, Result, page};
use holdall_io::{Disk, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What came of the log of a damaged store.
#[derive(Debug, Default)]
pub struct Remade {
    /// The pages are those of one state, all that can be read.
    pub sure: bool,
    /// Pages whose newest version the log alone has, and cannot make.
    pub unmade: BTreeSet<PageNo>,
    /// Data that the last group lists is not there: damaged since, or the group was never acknowledged
    /// (rule 4).
    pub doubts_last: bool,
    /// What is wrong with the log, in words.
    pub wrong: Option<String>,
}

/// Brings the volume to the newest state that its log, or what is left of it, leads to. `superblock`: the
/// newest one, if there is any. `last`: also a last group of which listed data is not there. Cost: one
/// pass over the log, a read of each page it names; memory of the log.
///
/// # Errors
/// [`Error::Io`] of writing to the volume.
pub fn remake(
    storage: &dyn Storage,
    volume: &Volume,
    superblock: Option<&Superblock>,
    last: bool,
) -> Result<Remade> {
    let log = match superblock.map_or_else(|| place::open(storage), |sb| to_recover(storage, sb)) {
        Ok(Some(log)) => log,
        Ok(None) => return Ok(without_log(storage, superblock, "it is missing".into())),
        Err(e) => return Ok(without_log(storage, superblock, reason(e))),
    };
    let mut doubts_last = false;
    let mut holds = |payload: &[u8]| {
        doubts_last = !direct::holds(volume, payload).unwrap_or(false);
        last || !doubts_last
    };
    let strict = superblock.map(|sb| strict(storage, sb, &*log, &mut holds));
    let (mut remade, strict) = match strict {
        Some(Ok(groups)) => (Remade { sure: true, doubts_last, ..Remade::default() }, Some(groups)),
        Some(Err(e)) => (Remade { wrong: Some(reason(e)), ..Remade::default() }, None),
        None => (Remade::default(), None),
    };
    let groups = match strict {
        Some(groups) => groups,
        None => {
            let (store, from) =
                superblock.map_or((None, Lsn(0)), |sb| (Some(sb.store_id), sb.replay));
            let found = log::gather(&*log, store, from);
            if found.is_empty() {
                let why = remade.wrong.unwrap_or_else(|| "it holds no commit".into());
                return Ok(without_log(storage, superblock, why));
            }
            found
        }
    };
    let log_bytes = log.len().unwrap_or(0);
    apply(volume, &groups, log_bytes, &mut remade)?;
    Ok(remade)
}

/// What is wrong with the log.
fn reason(e: Error) -> String {
    match e {
        Error::Corrupt { place, detail } => format!("{place}: {detail}"),
        Error::NoLog { .. } => "it is missing".into(),
        e => e.to_string(),
    }
}

/// The log, also one that was cut short.
fn to_recover(storage: &dyn Storage, sb: &Superblock) -> Result<Option<Arc<dyn Disk>>> {
    match place::to_recover(storage, sb) {
        Err(Error::Corrupt { .. }) => place::open(storage),
        other => other,
    }
}

/// The groups of a log of which nothing is missing.
fn strict(
    storage: &dyn Storage,
    sb: &Superblock,
    log: &dyn Disk,
    holds: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<Vec<Vec<u8>>> {
    let scan = log::scan(log, &Expect::of(sb), &mut |end, payload| {
        Ok(end <= sb.in_place || holds(payload))
    })?;
    refuse_contradictions(storage, sb, &scan)?;
    Ok(scan.groups)
}

/// The state of the last checkpoint, if it is whole in its place: until the next one nothing in use is
/// written over (rules 14, 16). `why` there is no log.
pub fn without_log(storage: &dyn Storage, superblock: Option<&Superblock>, why: String) -> Remade {
    let needed = superblock.is_some_and(|sb| sb.log_required);
    let sure = superblock.is_some_and(|sb| {
        let checkpoint = sb.in_place <= sb.replay;
        !sb.log_required || checkpoint && slots_are_whole(&*storage.volume()).unwrap_or(false)
    });
    Remade { sure, wrong: needed.then_some(why), ..Remade::default() }
}

fn apply(volume: &Volume, groups: &[Vec<u8>], log_bytes: u64, remade: &mut Remade) -> Result<()> {
    let replay = Replay::lenient(volume, groups, log_bytes)?;
    for segment in &replay.segments {
        // Of a log whose begin is not known much is older than what lies there: a page is kept.
        if !remade.sure && holds_page(volume, segment) {
            continue;
        }
        match &segment.data {
            Data::Bytes(bytes) => volume.write_pages(segment.first, bytes)?,
            Data::Composed(checksum, parts) => match compose(volume, segment, *checksum, parts) {
                // Its checksums tell who reads it.
                Err(Error::Io { .. } | Error::Corrupt { .. }) | Ok(()) => {}
                Err(e) => return Err(e),
            },
        }
    }
    replay.each_attempt(volume, &mut |no, bytes| match bytes {
        Ok(bytes) => volume.write_pages(no, bytes),
        Err(_) => {
            remade.unmade.insert(no);
            Ok(())
        }
    })
}

/// Whether a page with a header lies where segment data is to go.
fn holds_page(volume: &Volume, segment: &Segment<'_>) -> bool {
    let mut bytes = vec![0; volume.page_size()];
    let mut pages = (segment.first.0..segment.first.0 + segment.pages).map(PageNo);
    pages.any(|no| raw_page(volume, no, &mut bytes).is_ok() && page::check(&bytes, no).is_ok())
}
