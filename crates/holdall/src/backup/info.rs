//! What a backup says of itself.
//!
//! Owns: [`BackupId`], [`BackupInfo`], and what a file's first bytes are.

use crate::maintain::Progress;
use holdall_core::backup_stream::{self, HEAD_BYTES, Head};
use holdall_core::mark::Mark;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Result};
use std::fmt;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// What hears how far a backup or a restore is, and may end it.
pub type BackupProgress<'p> = &'p mut dyn FnMut(Progress) -> ControlFlow<()>;

/// The number of a backup, drawn at random; as text 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackupId(pub [u8; 16]);

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for BackupId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
        let number = number.ok_or_else(|| Error::Invalid(format!("{text:?} names no backup")))?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// What a backup says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// The number of the store, as [`Store::id`](crate::Store::id).
    pub store: [u8; 16],
    /// Its own number; `None` if no increment can build on it.
    pub id: Option<BackupId>,
    /// The backup that it builds on; `None` if it is whole.
    pub base: Option<BackupId>,
    /// Milliseconds since 1970 UTC when it was taken.
    pub time: u64,
}

impl BackupInfo {
    pub(super) fn of_head(head: &Head) -> Self {
        let id = |mark: Option<Mark>| mark.map(|mark| BackupId(mark.id));
        Self { store: head.store_id, id: id(head.mark), base: id(head.base), time: head.time }
    }

    /// Reads what the backup in the file at `path` says of itself. Cost: two reads.
    ///
    /// # Errors
    /// [`Error::NotAStore`] if it is no backup: also a store that was written since it was one.
    /// [`Error::Corrupt`], [`Error::Unsupported`], [`Error::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        match first_bytes(path)? {
            First::Stream(head) => Ok(Self::of_head(&head)),
            First::Store(sb) => {
                let stamp = sb.stamp.ok_or_else(|| no_backup(path, "it is a store of its own"))?;
                let id = Some(BackupId(stamp.mark.id));
                Ok(Self { store: sb.store_id, id, base: None, time: stamp.time })
            }
        }
    }
}

/// What a file begins with.
pub(super) enum First {
    Stream(Head),
    Store(Superblock),
}

pub(super) fn no_backup(path: &Path, why: &str) -> Error {
    Error::NotAStore { path: path.display().to_string(), detail: format!("no backup: {why}") }
}

pub(super) fn first_bytes(path: &Path) -> Result<First> {
    let failed = |e| Error::io(format!("reading {}", path.display()), e);
    let file = File::open(path).map_err(failed)?;
    let mut head = [0; HEAD_BYTES];
    let read = file.read_exact_at(&mut head, 0);
    if read.is_ok() && head.starts_with(&backup_stream::MAGIC) {
        return Ok(First::Stream(Head::decode(&head)?));
    }
    let mut newest: Option<Superblock> = None;
    for at in SLOT_AT {
        let mut slot = vec![0; SLOT_BYTES];
        // A file that is shorter holds no store.
        if file.read_exact_at(&mut slot, at).is_ok() {
            newest =
                newest.into_iter().chain(Superblock::decode(&slot)?).max_by_key(|sb| sb.sequence);
        }
    }
    newest.map(First::Store).ok_or_else(|| no_backup(path, "it does not begin as one"))
}

/// Milliseconds since 1970 UTC.
pub(super) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0))
}
