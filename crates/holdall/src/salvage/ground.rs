//! What is certain of a damaged store before its pages are looked at.
//!
//! Owns: [`Ground`]: superblock, size of a page, and the file with what its log adds, in memory.

use super::whole::{is_whole, may_be_page, read_what_can_be};
use crate::txn::{self, Remade, Volume};
use holdall_core::page::{MAX_PAGE_SIZE, MIN_PAGE_SIZE};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Lsn, PageNo, Result, backup_stream};
use holdall_io::{Disk, OverlayStorage, Storage};
use std::sync::Arc;

/// Pages of one size that are enough to know it by.
const ENOUGH: usize = 16;
/// Bytes read at a time.
const AT_ONCE: usize = 1 << 20;

/// How much of the log counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upto {
    /// All that can be read, also a last commit of which data is not there.
    Last,
    /// All but that commit.
    BeforeLast,
    /// Nothing: the state of the last checkpoint.
    Checkpoint,
    /// As [`Upto::Last`], and a page that is whole in its place counts, whatever lies elsewhere.
    Places,
}

/// A damaged store, as far as superblocks and log lead.
#[derive(Debug)]
pub(super) struct Ground {
    /// The file as it lies there.
    pub(super) file: Arc<dyn Disk>,
    /// The file with what the log adds.
    pub(super) disk: Arc<dyn Disk>,
    pub(super) page_size: usize,
    /// The newest that is whole.
    pub(super) superblock: Option<Superblock>,
    pub(super) log: Remade,
    /// A page that is whole in its place counts.
    pub(super) places: bool,
    /// What was lost of all this, in words.
    pub(super) notes: Vec<String>,
}

impl Ground {
    /// Reads superblocks, and the log up to there. Cost: two reads and the log; without a superblock a pass over the
    /// file's front, to the first pages that are whole.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if nothing of a store is found; [`Error::Unsupported`] for one of a newer
    /// build; [`Error::Io`].
    pub(super) fn find(storage: &Arc<dyn Storage>, upto: Upto) -> Result<Self> {
        let file = storage.volume();
        let mut notes = Vec::new();
        let (superblock, older) = superblocks(&*file, &mut notes)?;
        if superblock.is_none() {
            refuse_others(&*file, &storage.name())?;
        }
        let page_size = match &superblock {
            Some(sb) => sb.page_size as usize,
            None => sampled_page_size(&*file).ok_or_else(|| Error::NotAStore {
                path: storage.name(),
                detail: "neither a superblock nor a page of one is whole".into(),
            })?,
        };
        let over = OverlayStorage::new(storage.clone());
        let over = over.map_err(|e| Error::io("reading the file's length", e))?;
        let sb = superblock.clone().unwrap_or_else(|| stand_in(page_size));
        let volume = Volume::new(over.volume(), sb, older);
        let log = match upto {
            Upto::Checkpoint => txn::without_log(&**storage, superblock.as_ref(), String::new()),
            _ => txn::remake(&over, &volume, superblock.as_ref(), upto != Upto::BeforeLast)?,
        };
        notes.extend(log.wrong.iter().map(|why| format!("the log: {why}")));
        let (disk, places) = (over.volume(), upto == Upto::Places);
        Ok(Self { file, disk, page_size, superblock, log, places, notes })
    }

    /// Whether all pages that can be read are of one state.
    pub(super) fn is_sure(&self) -> bool {
        self.log.sure
    }
}

/// The newest superblock and the other one, of those that are whole.
fn superblocks(
    disk: &dyn Disk,
    notes: &mut Vec<String>,
) -> Result<(Option<Superblock>, Option<Superblock>)> {
    let mut found = Vec::new();
    for at in SLOT_AT {
        let mut bytes = vec![0; SLOT_BYTES];
        match disk.read_at(at, &mut bytes).map(|()| Superblock::decode(&bytes)) {
            Ok(Ok(Some(sb))) => found.push(sb),
            Ok(Err(e @ Error::Unsupported { .. })) => return Err(e),
            _ => notes.push(format!("the superblock at byte {at} is lost")),
        }
    }
    found.sort_by_key(|sb| sb.sequence);
    let best = found.pop();
    Ok((best, found.pop()))
}

/// Refuses files that are whole, but no stores.
fn refuse_others(disk: &dyn Disk, name: &str) -> Result<()> {
    let mut head = [0; 8];
    if disk.read_at(0, &mut head).is_ok() && head == backup_stream::MAGIC {
        let detail = "it is a backup's stream; use `holdall restore`".into();
        return Err(Error::NotAStore { path: name.into(), detail });
    }
    Ok(())
}

/// The size of which most pages at the file's front are whole.
fn sampled_page_size(disk: &dyn Disk) -> Option<usize> {
    let length = disk.len().ok()?;
    let sizes: Vec<usize> =
        (0..).map(|bits| MIN_PAGE_SIZE << bits).take_while(|size| *size <= MAX_PAGE_SIZE).collect();
    let mut whole = vec![0; sizes.len()];
    let mut buffer = vec![0; AT_ONCE];
    for at in (0..length).step_by(AT_ONCE) {
        let part = (length - at).min(AT_ONCE as u64) as usize;
        read_what_can_be(disk, at, &mut buffer[..part]);
        for (size, whole) in sizes.iter().zip(&mut whole) {
            let pages = buffer[..part].chunks_exact(*size);
            *whole += pages.filter(|page| may_be_page(page) && is_whole(page)).count();
        }
        if whole.iter().any(|n| *n >= ENOUGH) {
            break;
        }
    }
    let (best, count) = sizes.into_iter().zip(whole).rev().max_by_key(|(_, n)| *n)?;
    (count > 0).then_some(best)
}

/// What replay is to know of a store whose superblocks are lost.
fn stand_in(page_size: usize) -> Superblock {
    Superblock {
        store_id: [0; 16],
        incarnation: 1,
        epoch: 1,
        page_size: page_size as u32,
        space_pages: SpaceLayout::default_space_pages(page_size),
        sequence: 0,
        replay: Lsn(0),
        in_place: Lsn(0),
        log_bytes: 0,
        log_required: true,
        holes: false,
        unique_ceiling: 1,
        volume_pages: 0,
        spaces: 1,
        root: PageNo::NONE,
        marks: false,
        stamp: None,
    }
}
