//! A backup in pieces that are kept apart, so that one which was broken off can go on.
//!
//! Owns: [`BackupPieces`], which takes the stream; [`Reached`], a place in it from which another run
//! can go on.

use holdall_core::Result;
use holdall_core::backup_stream::{HEAD_BYTES, Head};
use holdall_core::mark::Mark;
use std::io::Write;

use super::info::BackupInfo;

/// How far a backup has come: all granules before this one are copied, as they were at its mark or
/// later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Reached {
    /// The space.
    pub space: u32,
    /// The granule in it.
    pub granule: u32,
}

/// The head of a backup's stream, which comes before its pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupHead(pub(super) Head);

impl BackupHead {
    /// Its bytes, with which the stream begins.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        self.0.encode()
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if it is none;
    /// [`Error::Unsupported`](crate::Error::Unsupported), [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Self> {
        Ok(Self(Head::decode(bytes)?))
    }

    /// What it says of the backup.
    pub fn info(&self) -> BackupInfo {
        BackupInfo::of_head(&self.0)
    }

    /// What marks its state in the store.
    pub fn mark(&self) -> Option<Mark> {
        self.0.mark
    }
}

/// Takes a backup in pieces. What is written after the head and before [`BackupPieces::reached`] can
/// be kept, and the stream gone on with there by another run.
pub trait BackupPieces {
    /// Takes the head. Called once, first; not of a backup that goes on.
    ///
    /// # Errors
    /// What keeps from taking it.
    fn head(&mut self, head: &BackupHead) -> Result<()>;

    /// Takes what follows in the stream. `pages`: how many begin in these bytes.
    ///
    /// # Errors
    /// What keeps from taking it.
    fn write(&mut self, bytes: &[u8], pages: u64) -> Result<()>;

    /// Hears how far the stream has come.
    ///
    /// # Errors
    /// What kept from taking what was written.
    fn reached(&mut self, _: Reached) -> Result<()> {
        Ok(())
    }
}

/// All in one.
pub(super) struct Whole<W>(pub(super) W);

impl<W: Write> BackupPieces for Whole<W> {
    fn head(&mut self, head: &BackupHead) -> Result<()> {
        self.write(&head.encode(), 0)
    }

    fn write(&mut self, bytes: &[u8], _: u64) -> Result<()> {
        self.0.write_all(bytes).map_err(|e| crate::txn::io_error("writing the backup", e))
    }
}
