//! What lies in the log's place: this store's log, a blank file, or something that is not to be
//! touched.
//!
//! Owns no state. Every file there is looked at before it is used, emptied or removed: a store
//! may have been moved away from its log, and a user may have a file of that name.

use holdall_core::log_format::{self as format, BLOCK, BlockHeader};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Result};
use holdall_io::{Astray, Disk, Storage};
use std::io::ErrorKind;
use std::sync::Arc;

/// What lies in the log's place.
#[derive(Debug)]
pub enum LogPlace {
    /// Nothing.
    Nothing,
    /// A file without a byte that is not zero: what a crash leaves of a log being made.
    Blank(Arc<dyn Disk>),
    /// A log of this store, of whatever time.
    Own(Arc<dyn Disk>, Newest),
    /// Something else, of which this is known.
    Foreign(&'static str),
}

/// The highest of what the blocks of a log name.
#[derive(Debug, Default, Clone, Copy)]
pub struct Newest {
    /// Recovery epoch.
    pub epoch: u32,
    /// Superblock sequence that was durable.
    pub checkpoint: u64,
}

impl Newest {
    /// Takes a block into account.
    pub fn add(&mut self, header: &BlockHeader) {
        self.epoch = self.epoch.max(header.epoch);
        self.checkpoint = self.checkpoint.max(header.checkpoint);
    }

    /// Whether a later state of the store wrote this than the one that `sb` names.
    pub fn is_after(&self, sb: &Superblock) -> bool {
        self.epoch > sb.epoch || self.checkpoint > sb.sequence
    }
}

/// The message about a link, a pipe, a directory.
const NO_FILE: &str = "is not a regular file";
/// The message about what another store has locked.
pub const IN_USE: &str = "is the log of a store that is open, which was renamed away or copied";
/// Bytes read at a time.
const BYTES_PER_READ: u64 = 64 * BLOCK as u64;

/// Opens the log, whatever it holds; `None` if there is none.
///
/// # Errors
/// [`Error::WrongLog`] if it is no regular file, in use by another store, or may not be opened;
/// [`Error::Io`].
pub fn open(storage: &dyn Storage) -> Result<Option<Arc<dyn Disk>>> {
    opened(storage)?.map_err(|detail| wrong(storage, detail))
}

/// The log, or what forbids to open it.
fn opened(storage: &dyn Storage) -> Result<Result<Option<Arc<dyn Disk>>, &'static str>> {
    match storage.open_log() {
        Ok(log) => Ok(Ok(log)),
        Err(e) => match e.kind() {
            ErrorKind::InvalidInput | ErrorKind::IsADirectory => Ok(Err(NO_FILE)),
            ErrorKind::WouldBlock => Ok(Err(IN_USE)),
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                Err(forbidden(storage, &e))
            }
            _ => Err(Error::io("opening the log", e)),
        },
    }
}

/// Looks whose the file in the log's place is; a new store, without an id yet, has none.
/// Cost: nothing if there is none, else one pass over it in pieces of 256 KiB.
///
/// # Errors
/// [`Error::Io`].
pub fn examine(storage: &dyn Storage, store_id: Option<&[u8; 16]>) -> Result<LogPlace> {
    match opened(storage)? {
        Ok(Some(disk)) => examine_disk(disk, store_id),
        Ok(None) => Ok(LogPlace::Nothing),
        Err(detail) => Ok(LogPlace::Foreign(detail)),
    }
}

/// As [`look`], for a log that is open.
///
/// # Errors
/// [`Error::Io`].
pub fn examine_disk(disk: Arc<dyn Disk>, store_id: Option<&[u8; 16]>) -> Result<LogPlace> {
    let fail = |e| Error::io("reading what lies in the log's place", e);
    let length = disk.len().map_err(fail)?;
    let (mut newest, mut own, mut strange) = (Newest::default(), false, false);
    let mut buffer = vec![0; BYTES_PER_READ.min(length) as usize];
    for at in (0..length).step_by(BYTES_PER_READ as usize) {
        buffer.truncate((length - at).min(BYTES_PER_READ) as usize);
        disk.read_at(at, &mut buffer).map_err(fail)?;
        for block in buffer.chunks(BLOCK).filter(|block| block.iter().any(|b| *b != 0)) {
            match (BlockHeader::decode_any(block), store_id) {
                (Some(header), Some(id)) if header.store_id == *id => {
                    own = true;
                    newest.add(&header);
                }
                (Some(_), _) => return Ok(LogPlace::Foreign("is the log of another store")),
                (None, Some(id)) if format::is_torn_block_of(block, id) => own = true,
                (None, _) => strange = true,
            }
        }
    }
    Ok(match (own, strange) {
        // What is strange in it is what a device left of a torn write.
        (true, _) => LogPlace::Own(disk, newest),
        (false, true) => LogPlace::Foreign("is not a log of this store"),
        (false, false) => LogPlace::Blank(disk),
    })
}

/// Looks whether the store's name still leads to the volume, and its log's to `log`: else what is
/// committed is where nobody finds it. Cost: two system calls, one or two microseconds.
///
/// # Errors
/// [`Error::Moved`].
pub fn check_names(storage: &dyn Storage, log: Option<&dyn Disk>) -> Result<()> {
    let Some(astray) = storage.astray(log) else { return Ok(()) };
    let (path, detail, advice) = match astray {
        Astray::VolumeDeleted => (
            storage.name(),
            "was deleted while the store was open",
            "what is to be kept must be read out of the store before it is closed",
        ),
        Astray::VolumeMoved => (
            storage.name(),
            "no longer leads to the open store, which was renamed or replaced",
            "put it back, or close the store, which completes its file under the new name",
        ),
        Astray::Log => (
            name(storage),
            "no longer leads to the log of the open store",
            "put it back, or close the store, which then needs no log, and open it again",
        ),
    };
    Err(Error::Moved { path, detail: detail.into(), advice: advice.into() })
}

/// The log that recovery has to read: if the store needs none, also one that a crash left.
///
/// # Errors
/// [`Error::NoLog`] if the store needs a log that is missing,
/// [`Error::Corrupt`] if it was cut short; [`Error::WrongLog`] if a later state of the store wrote
/// it; those of [`look`].
pub fn to_recover(storage: &dyn Storage, sb: &Superblock) -> Result<Option<Arc<dyn Disk>>> {
    if !sb.log_required {
        return match examine(storage, Some(&sb.store_id))? {
            LogPlace::Own(_, newest) if newest.is_after(sb) => Err(older_copy(storage)),
            LogPlace::Own(disk, _) | LogPlace::Blank(disk) => Ok(Some(disk)),
            LogPlace::Nothing | LogPlace::Foreign(_) => Ok(None),
        };
    }
    let (disk, name) = (needed(storage)?, name(storage));
    let length = disk.len().map_err(|e| Error::io("reading the log's length", e))?;
    if length < sb.log_bytes {
        let detail = format!("the log has {length} bytes of {}: it was cut short", sb.log_bytes);
        return Err(Error::corrupt(name, detail));
    }
    Ok(Some(disk))
}

/// The log that the store needs, as it is.
///
/// # Errors
/// [`Error::NoLog`] if it is missing; those of [`open`].
pub fn needed(storage: &dyn Storage) -> Result<Arc<dyn Disk>> {
    open(storage)?.ok_or_else(|| missing(storage))
}

/// Refuses a volume that holds nothing if a log lies beside it: a creation makes none before
/// the volume is complete, so that a store was there.
///
/// # Errors
/// [`Error::WrongLog`]; those of [`look`].
pub fn refuse_beside_empty(storage: &dyn Storage) -> Result<()> {
    // What is blank holds nothing either.
    let (LogPlace::Foreign(_) | LogPlace::Own(..)) = examine(storage, None)? else { return Ok(()) };
    Err(Error::WrongLog {
        path: name(storage),
        detail: "lies beside a store file that is empty or was cut short".into(),
        advice: "put the store file back, from a copy if need be; to make a new store there, move \
                 the log away"
            .into(),
    })
}

/// The error of a needed log that is not there.
fn missing(storage: &dyn Storage) -> Error {
    Error::NoLog {
        path: name(storage),
        detail:
            "is missing: the store was not closed, and its last commits lie in this log alone, \
                 though what its last checkpoint wrote may be whole"
                .into(),
        advice:
            "put it back beside the store; if it is lost, keep the store file and restore from \
                 a copy"
                .into(),
    }
}

/// The error of a log that the user may not open.
fn forbidden(storage: &dyn Storage, e: &std::io::Error) -> Error {
    let (path, store, kind) = (name(storage), storage.name(), e.kind());
    let what = format!("may hold what was committed last, and cannot be opened: {kind}");
    let advice = format!(
        "its owner or root must give it the store's owner, group and mode: chown --reference=A B \
         and chmod --reference=A B, where A is {store} and B the log"
    );
    Error::WrongLog { path, detail: what, advice }
}

/// The error of a file in the log's place that must not be touched.
pub fn wrong(storage: &dyn Storage, detail: &str) -> Error {
    let advice = "move it away, or if it belongs to a store that was moved, put it back beside \
                  that store";
    Error::WrongLog { path: name(storage), detail: detail.into(), advice: advice.into() }
}

/// The error of a store beside a log that a later state of it wrote.
pub fn older_copy(storage: &dyn Storage) -> Error {
    Error::WrongLog {
        path: name(storage),
        detail: "is newer than the store: the store file is an older copy".into(),
        advice: "put back the store file that the log belongs to, or, to go on from the older \
                 copy, move the log away"
            .into(),
    }
}

/// The log's path, for messages.
pub fn name(storage: &dyn Storage) -> String {
    format!("{}-log", storage.name())
}
