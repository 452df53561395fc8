//! Backups of a store that another process has open.
//!
//! Owns: [`Elsewhere`]: that process marks the store and holds the snapshots, this one copies.

use crate::client::Client;
use crate::message::{Answer, Ask, Name};
use holdall::{BackupSource, Error, Lsn, Mark, Options, Reader, Result};
use std::path::{Path, PathBuf};

/// A store whose states come from the process that has it open for writing.
#[derive(Debug)]
pub struct Elsewhere {
    path: PathBuf,
    client: Client,
}

impl Elsewhere {
    /// Asks the process that has the store at `path` open; `None` if nobody listens.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref().to_owned();
        Ok(Client::connect(&path)?.map(|client| Self { path, client }))
    }
}

impl BackupSource for Elsewhere {
    fn mark(&mut self, forget: &[[u8; 16]]) -> Result<Option<Mark>> {
        let forget = forget.iter().map(|id| Name(id.to_vec())).collect();
        match self.client.ask(&Ask::Mark { forget })? {
            Answer::Marked { id: Name(id), lsn } => {
                let id =
                    id.try_into().map_err(|_| Error::Invalid("a mark without a number".into()))?;
                Ok(Some(Mark { id, lsn: Lsn(lsn) }))
            }
            other => self.client.unexpected(&other),
        }
    }

    fn state(&mut self) -> Result<Reader> {
        let ended = || Error::Invalid("the process that had the store open has closed it".into());
        let client = Client::connect(&self.path)?.ok_or_else(ended)?;
        client.hold(&Options::default())?.read()
    }
}
