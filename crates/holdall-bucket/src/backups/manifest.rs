//! What says that a backup is there: the list of its parts.
//!
//! Owns: the names of these lists, from which follows what builds on what, so that a place is understood
//! by listing it; their text.

use super::bucket::{Bucket, json};
use holdall::{BackupHead, BackupId, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The folder of the lists.
const FOLDER: &str = "backups";
/// What stands for the base of a whole backup.
const WHOLE: &str = "whole";

/// A backup in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Its own number.
    pub id: BackupId,
    /// The backup that it builds on; `None` if it is whole.
    pub base: Option<BackupId>,
    /// Milliseconds since 1970 UTC when it was taken.
    pub time: u64,
    /// How many were taken since the whole one that it goes back to.
    pub number: u64,
}

impl Listed {
    /// The name of its list.
    pub(crate) fn name(&self) -> String {
        let base = self.base.map_or_else(|| WHOLE.to_owned(), |base| base.to_string());
        let Self { id, time, number, .. } = self;
        format!("{FOLDER}/{time:013}-{number:08}-{id}-{base}.json")
    }

    fn of_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(".json")?;
        let mut parts = name.split('-');
        let (time, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let id = parts.next()?.parse().ok()?;
        let base = match parts.next()? {
            WHOLE => None,
            base => Some(base.parse().ok()?),
        };
        parts.next().is_none().then_some(Self { id, base, time, number })
    }
}

/// A part of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    /// Its name in the folder of the backup's parts.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// CRC-32C of its bytes.
    pub(crate) crc32c: u32,
}

/// The list of a backup's parts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    /// The head of the stream, in hexadecimal digits.
    pub(crate) head: String,
    /// The rest of it, in order.
    pub(crate) parts: Vec<Part>,
    /// Bytes of pages that the store had in use.
    pub(crate) in_use: u64,
}

impl Manifest {
    pub(crate) fn new(head: &BackupHead, parts: Vec<Part>, in_use: u64) -> Self {
        let head = hex(&head.encode());
        Self { version: super::place::VERSION, head, parts, in_use }
    }

    /// Bytes of all parts.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }
}

/// The backups of a place.
#[derive(Debug, Default)]
pub(crate) struct Backups(BTreeMap<[u8; 16], Listed>);

impl Backups {
    pub(crate) fn get(&self, id: BackupId) -> Option<&Listed> {
        self.0.get(&id.0)
    }

    pub(crate) fn newest(&self) -> Option<&Listed> {
        self.0.values().max_by_key(|listed| (listed.time, listed.number))
    }

    pub(crate) fn newest_whole(&self) -> Option<&Listed> {
        let whole = self.0.values().filter(|listed| listed.base.is_none());
        whole.max_by_key(|listed| listed.time)
    }

    /// All, the oldest first.
    pub(crate) fn by_time(&self) -> Vec<Listed> {
        let mut all: Vec<Listed> = self.0.values().copied().collect();
        all.sort_by_key(|listed| (listed.time, listed.number, listed.id.0));
        all
    }

    pub(crate) fn insert(&mut self, listed: Listed) {
        self.0.insert(listed.id.0, listed);
    }

    /// A backup and those that it goes back to, the whole one first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if one of them is not there; [`Error::Corrupt`] if they go round.
    pub(crate) fn chain(&self, id: BackupId) -> Result<Vec<Listed>> {
        let mut chain = Vec::new();
        let (mut next, mut from) = (Some(id), None);
        while let Some(id) = next {
            let listed = self.get(id).ok_or_else(|| {
                let why = from.map_or_else(String::new, |from| {
                    format!(", which backup {from} builds on, in this place")
                });
                Error::NotFound(format!("backup {id}{why}"))
            })?;
            if chain.len() > self.0.len() {
                return Err(Error::Corrupt {
                    place: format!("backup {id}"),
                    detail: "it builds on itself".into(),
                });
            }
            chain.push(*listed);
            (next, from) = (listed.base, Some(id));
        }
        chain.reverse();
        Ok(chain)
    }
}

impl Bucket {
    /// What is there. Cost: a list request for each thousand backups.
    ///
    /// # Errors
    /// Those of asking.
    pub(crate) fn backups(&self) -> Result<Backups> {
        let found = self.wait(self.client.list(FOLDER))?;
        let listed = found.iter().filter_map(|object| Listed::of_name(&object.name));
        Ok(Backups(listed.map(|listed| (listed.id.0, listed)).collect()))
    }

    /// The backups there, the oldest first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the place is used for something else; those of asking.
    pub fn list(&self) -> Result<Vec<Listed>> {
        self.first()?;
        Ok(self.backups()?.by_time())
    }

    /// Says that this backup is there.
    ///
    /// # Errors
    /// [`Error::Exists`] if another process has said so; those of asking.
    pub(crate) fn publish(&self, listed: &Listed, manifest: &Manifest) -> Result<()> {
        let bytes = json(manifest)?;
        if self.wait(self.client.put_new(&listed.name(), bytes))? {
            return Ok(());
        }
        let what = format!("backup {} in {}: another process made it", listed.id, self.name());
        Err(Error::Exists(what))
    }

    /// The parts of a backup, and its head.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Corrupt`]; [`Error::Unsupported`]; those of asking.
    pub(crate) fn manifest(&self, listed: &Listed) -> Result<(Manifest, BackupHead)> {
        let name = listed.name();
        let bytes = self.wait(self.client.get_if(&name))?.ok_or_else(|| self.lacks(&name))?;
        let corrupt =
            |detail: String| Error::Corrupt { place: format!("{name} in {}", self.name()), detail };
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|e| corrupt(e.to_string()))?;
        if manifest.version != super::place::VERSION {
            let detail = format!("backup {} has version {}", listed.id, manifest.version);
            return Err(Error::Unsupported { detail });
        }
        let head = head_of(&manifest.head).map_err(|e| corrupt(e.to_string()))?;
        let info = head.info();
        if info.id != Some(listed.id) || info.base != listed.base {
            return Err(corrupt("its name and its head are of different backups".into()));
        }
        Ok((manifest, head))
    }
}

/// A head from its hexadecimal digits.
///
/// # Errors
/// [`Error::Invalid`] if it is none; those of [`BackupHead::decode`].
pub(crate) fn head_of(text: &str) -> Result<BackupHead> {
    let bad = || Error::Invalid("the head of a backup is not understood".into());
    let digit = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(digit).collect();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(bad)?;
    BackupHead::decode(&bytes)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
