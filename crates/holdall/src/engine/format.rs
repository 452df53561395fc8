//! Making a new store, and telling what a creation that was cut short left.

use super::Options;
use crate::log::place::{self, LogPlace};
use crate::space::fresh_directory;
use crate::txn::{self, Slots};
use holdall_core::bytes::put_u64;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::{SLOT_AT, Superblock};
use holdall_core::{Error, Lsn, PageNo, Result, root_page};
use holdall_io::{Disk, Storage};

/// Where a new store's log begins: not 0, so that no LSN of it is 0.
const FIRST_LSN: Lsn = Lsn(1 << 16);

/// What a new store holds but for its superblocks.
struct Fresh {
    space_pages: u32,
    /// Pages of the volume.
    pages: u64,
    root: PageNo,
    /// Address and bytes of each page.
    written: [(u64, Vec<u8>); 2],
}

impl Fresh {
    fn new(page_size: usize, space_pages: u32) -> Result<Self> {
        let layout = SpaceLayout::new(page_size, space_pages)?;
        let fixed = layout.fixed_pages(0).max().unwrap_or(0);
        let mut dir = fresh_directory(&layout, 0)?;
        let index = (1..space_pages).find(|i| !layout.fixed_pages(0).any(|f| f == *i));
        let index = index.ok_or_else(|| Error::Invalid("the space has no room".into()))?;
        SpaceDir::open(layout, 0, &mut dir[..])?.set_range(index, 1, true)?;
        page::seal(&mut dir, FIRST_LSN);
        let root = layout.page_at(0, index);
        let mut root_bytes = vec![0; page_size];
        page::format(&mut root_bytes, PageKind::Root, root, 0);
        root_page::set_spaces(&mut root_bytes, 1);
        root_page::set_next_collection(&mut root_bytes, 1);
        page::seal(&mut root_bytes, FIRST_LSN);
        let at = |no: PageNo| no.0 * page_size as u64;
        let written = [(at(layout.dir_page(0)), dir), (at(root), root_bytes)];
        Ok(Self { space_pages, pages: u64::from(fixed) + 4, root, written })
    }

    fn from_options(options: &Options) -> Result<Self> {
        let size = options.page_size;
        Self::new(
            size,
            options.tuning.space_pages.unwrap_or(SpaceLayout::default_space_pages(size)),
        )
    }

    fn bytes(&self) -> u64 {
        self.pages * self.written[0].1.len() as u64
    }

    /// Whether a creation of this store can have left `found`: no superblock yet, and every
    /// sector of the rest as it is written or not written.
    fn may_leave(&self, found: &[u8]) -> bool {
        let mut whole = vec![0; self.bytes() as usize];
        for (at, bytes) in &self.written {
            whole[*at as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        if found.len() != whole.len() {
            return false;
        }
        let zeros = |part: &[u8]| part.iter().all(|b| *b == 0);
        let mut sectors = found.chunks(SECTOR).zip(whole.chunks(SECTOR));
        sectors.all(|(found, whole)| found == whole || zeros(found))
    }
}

/// What a device writes whole or not at all.
const SECTOR: usize = 512;

/// What a volume without a superblock holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// What a crash leaves of a creation, or nothing.
    Creation,
    /// Zeros, of a length that no creation leaves: no store, but perhaps a user's file.
    Zeros,
    /// Anything else.
    Something,
}

/// Returns whether the volume, in which no superblock was found, is empty or what a crash leaves of
/// a creation: with these options, or with any page size and no other choice. Such a file holds
/// nothing. The file gets its length in one step and is written to only then: one of any other
/// length is the user's, also one of zeros. Cost: reads up to 448 KiB, nothing of a longer file.
///
/// # Errors
/// [`Error::Io`].
fn contents(disk: &dyn Disk, options: &Options) -> Result<Holds> {
    let length = disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
    if length == 0 {
        return Ok(Holds::Creation);
    }
    let sizes = (12..=16).map(|bits| 1 << bits);
    let usual = sizes.map(|size| Fresh::new(size, SpaceLayout::default_space_pages(size)));
    let candidates = usual.chain([Fresh::from_options(options)]).flatten();
    let candidates: Vec<_> = candidates.filter(|fresh| length <= fresh.bytes()).collect();
    if candidates.is_empty() {
        return Ok(Holds::Something);
    }
    let mut found = vec![0; length as usize];
    disk.read_at(0, &mut found).map_err(|e| Error::io("reading what lies in the volume", e))?;
    let zeros = found.iter().all(|b| *b == 0);
    Ok(match candidates.iter().any(|fresh| fresh.may_leave(&found)) {
        true => Holds::Creation,
        false if zeros => Holds::Zeros,
        false => Holds::Something,
    })
}

/// Reads the superblocks of a store.
///
/// # Errors
/// [`Error::Unfinished`] if there is nothing to read yet, [`Error::WrongLog`] if a log lies
/// beside that; else those of
/// [`txn::read_slots`](crate::txn::read_slots).
pub(crate) fn read_slots(storage: &dyn Storage, options: &Options) -> Result<Slots> {
    let disk = storage.volume();
    match txn::read_slots(&*disk, &storage.name()) {
        Err(Error::NotAStore { .. }) if contents(&*disk, options)? != Holds::Something => {
            place::refuse_beside_empty(storage)?;
            Err(Error::Unfinished { path: storage.name() })
        }
        other => other,
    }
}

/// Checks the options of a store that is to be made, before anything is.
///
/// # Errors
/// As [`Options::check`]; [`Error::Invalid`] if `max_bytes` has no room for an empty store.
pub(crate) fn check_creation(options: &Options) -> Result<()> {
    options.check()?;
    let (least, most) = (Fresh::from_options(options)?.bytes(), options.max_bytes);
    if most < least {
        let text = format!("max_bytes is {most}: an empty store needs at least {least}");
        return Err(Error::Invalid(text));
    }
    Ok(())
}

/// Writes an empty store into an empty volume, or one whose creation was cut short: a
/// directory, a root page, two superblocks. The first superblock goes last but one, after a
/// sync, so that a store cut short at creation is not taken for one.
///
/// # Errors
/// [`Error::Invalid`]; [`Error::Exists`] if the volume holds anything; [`Error::WrongLog`]
/// if anything lies in the log's place; [`Error::Full`], [`Error::Io`].
pub(crate) fn make(storage: &dyn Storage, options: &Options) -> Result<()> {
    check_creation(options)?;
    let fresh = Fresh::from_options(options)?;
    let disk = storage.volume();
    let fail = |e| crate::txn::io_error("creating the store", e);
    if contents(&*disk, options)? != Holds::Creation {
        return Err(Error::Exists(format!("file {}", storage.name())));
    }
    match place::examine(storage, None)? {
        LogPlace::Nothing => {}
        LogPlace::Blank(log) | LogPlace::Own(log, _) => storage.remove_log(&*log).map_err(fail)?,
        LogPlace::Foreign(what) => return Err(place::wrong(storage, what)),
    }
    if disk.len().map_err(fail)? > 0 {
        // Else a crash could leave sectors of two creations.
        disk.truncate(0).and_then(|()| disk.sync()).map_err(fail)?;
    }
    disk.grow(fresh.bytes()).map_err(fail)?;
    for (at, bytes) in &fresh.written {
        disk.write_at(*at, bytes).map_err(fail)?;
    }
    disk.sync().map_err(fail)?;
    let sb = superblock(options, &fresh);
    for sequence in [1, 2] {
        let sb = Superblock { sequence, ..sb.clone() };
        disk.write_at(SLOT_AT[Superblock::slot_of(sequence)], &sb.encode()).map_err(fail)?;
        disk.sync().map_err(fail)?;
    }
    storage.sync_dir().map_err(fail)
}

fn superblock(options: &Options, fresh: &Fresh) -> Superblock {
    let (epoch, unique_ceiling) = options.tuning.begins.unwrap_or((1, 1));
    Superblock {
        store_id: options.tuning.store_id.unwrap_or_else(draw_id),
        incarnation: 1,
        epoch,
        page_size: options.page_size as u32,
        space_pages: fresh.space_pages,
        sequence: 0,
        replay: FIRST_LSN,
        in_place: FIRST_LSN,
        log_bytes: options.tuning.initial_log_bytes(),
        log_required: false,
        holes: false,
        unique_ceiling,
        volume_pages: fresh.pages,
        spaces: 1,
        root: fresh.root,
        marks: false,
        stamp: None,
    }
}

/// An id that no other store has, from the system's random keys for hashing.
pub(crate) fn draw_id() -> [u8; 16] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut id = [0; 16];
    for at in [0, 8] {
        let n = RandomState::new().build_hasher().finish();
        put_u64(&mut id, at, n);
    }
    id
}
