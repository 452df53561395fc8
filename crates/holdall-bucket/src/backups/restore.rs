//! Making a store of the backups in a place.
//!
//! Owns: which backup is meant; the streams that it is made of.

use super::bucket::Bucket;
use super::download::Download;
use super::manifest::{Backups, Listed};
use holdall::{BackupId, BackupPart, Error, Result};
use std::str::FromStr;
use std::sync::Arc;

/// Which backup of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Which {
    /// The newest.
    #[default]
    Newest,
    /// The one of this number.
    Id(BackupId),
    /// The newest that was taken then or before, in milliseconds since 1970 UTC.
    Time(u64),
}

impl FromStr for Which {
    type Err = Error;

    /// A number of 32 hexadecimal digits, or a time as `2026-11-27T08:00:00Z`.
    fn from_str(text: &str) -> Result<Self> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let time: Option<jiff::Timestamp> = text.parse().ok();
        let millis = time.and_then(|time| u64::try_from(time.as_millisecond()).ok());
        millis.map(Self::Time).ok_or_else(|| {
            let text = format!("{text:?} is neither the number of a backup nor a time");
            Error::Invalid(text + " with its zone, as 2026-11-27T08:00:00Z")
        })
    }
}

impl Bucket {
    /// The backups that a store is made of, for [`holdall::restore`], the whole one first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such backup, or one that it builds on is missing;
    /// [`Error::Invalid`] if the place holds no backups; those of asking.
    pub fn parts(self: &Arc<Self>, which: Which) -> Result<Vec<BackupPart>> {
        self.must_hold_backups()?;
        let backups = self.backups()?;
        let wanted = self.choose(&backups, which)?;
        let mut parts = Vec::new();
        for listed in backups.chain(wanted.id)? {
            let (manifest, head) = self.manifest(&listed)?;
            let stream = Download::new(Arc::clone(self), listed.id, &head, manifest);
            let name = format!("backup {} in {}", listed.id, self.name());
            parts.push(BackupPart::Stream(Box::new(stream), name));
        }
        Ok(parts)
    }

    fn choose(&self, backups: &Backups, which: Which) -> Result<Listed> {
        let missing = |what: String| Error::NotFound(format!("{what} in {}", self.name()));
        match which {
            Which::Newest => backups.newest().copied().ok_or_else(|| missing("a backup".into())),
            Which::Id(id) => {
                backups.get(id).copied().ok_or_else(|| missing(format!("backup {id}")))
            }
            Which::Time(time) => {
                let before = backups.by_time().into_iter().rfind(|listed| listed.time <= time);
                before.ok_or_else(|| missing("a backup of that time or before".into()))
            }
        }
    }
}
