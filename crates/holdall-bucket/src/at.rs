//! A store at `s3://BUCKET/PREFIX`: what is seen to before it is created or opened there.
//!
//! Owns: the key `server`, in which the creation leaves what the probe found, so that an opening need
//! not ask again; the refusal of a place of backups.

use crate::access::Access;
use crate::backend::{Backend, Got, Put, Quoting, S3, Tag};
use crate::backups::FIRST;
use crate::format::keys;
use crate::probe::{ProbeReport, Progress, probe_s3};
use crate::store::{BucketStore, Environment, Machine, Options};
use bytes::Bytes;
use holdall::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The key of what the probe found.
const SERVER: &str = "server";
/// Times that a write of it is tried.
const TRIES: usize = 5;

/// A day in seconds.
const DAY: u64 = 24 * 60 * 60;

/// What the probe found of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Server {
    /// Whether tags are quoted in the conditions of writes.
    quoted: bool,
    /// When it was probed, in seconds since 1970 UTC by the clock of who did.
    #[serde(default)]
    probed: u64,
}

impl Default for Server {
    fn default() -> Self {
        Self { quoted: true, probed: 0 }
    }
}

impl Server {
    /// What a probe just found.
    fn of(s3: &S3) -> Self {
        Self { quoted: s3.quoting() == Quoting::Quoted, probed: Machine.now().as_secs() }
    }

    /// What was left; with the tag of the key, if it is there.
    async fn read(s3: &S3) -> Result<(Self, Option<Tag>)> {
        let Got::Found(found) = s3.get(SERVER, None, None).await? else {
            return Ok((Self::default(), None));
        };
        let read = serde_json::from_slice(&found.bytes.whole());
        let read = read.map_err(|e| Error::corrupt(SERVER, format!("is not understood: {e}")))?;
        Ok((read, Some(found.tag)))
    }

    /// Leaves it, unless it is there.
    async fn leave(&self, s3: &S3) -> Result<()> {
        let text = serde_json::to_vec(self);
        let text = text.map_err(|e| Error::Invalid(format!("a text for a bucket: {e}")))?;
        for _ in 0..TRIES {
            let tag = match Self::read(s3).await? {
                (found, Some(_)) if found == *self => return Ok(()),
                (_, tag) => tag,
            };
            if let Put::Done(_) = s3.put_if(SERVER, tag.as_ref(), Bytes::from(text.clone())).await?
            {
                return Ok(());
            }
        }
        Err(Error::io(format!("writing {SERVER}"), std::io::ErrorKind::TimedOut.into()))
    }

    fn set(&self, s3: S3) -> S3 {
        s3.with_quoting(if self.quoted { Quoting::Quoted } else { Quoting::Bare })
    }
}

/// # Errors
/// [`Error::Invalid`] if backups lie there.
async fn refuse_backups(s3: &S3) -> Result<()> {
    match s3.get(FIRST, None, None).await? {
        Got::Found(_) => {
            let what = format!("{} holds backups, no objects; name another prefix", s3.name());
            Err(Error::Invalid(what))
        }
        _ => Ok(()),
    }
}

impl BucketStore {
    /// Probes the server, and creates a store at `s3://BUCKET/PREFIX`. Some 900 requests.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is one; [`Error::Invalid`] if the server fails the probe, backups lie
    /// there, or that is no such place; those of asking.
    pub async fn create_at(
        place: &str,
        access: &Access,
        progress: Progress<'_>,
    ) -> Result<(Self, ProbeReport)> {
        let s3 = S3::open(place, access)?;
        refuse_backups(&s3).await?;
        if !matches!(s3.get(keys::HEAD, None, None).await?, Got::Absent) {
            return Err(Error::Exists(format!("a store in {place}")));
        }
        let (s3, report) = probe_s3(s3, "", progress).await?;
        Server::of(&s3).leave(&s3).await?;
        let store = Options::default().name(place).create(Arc::new(s3)).await?;
        Ok((store, report))
    }

    /// Opens the store at `s3://BUCKET/PREFIX`. Cost: two requests, together.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none, or no such bucket, which the text tells; [`Error::Invalid`]
    /// if backups lie there, or that is no such place; as [`Options::open`].
    pub async fn open_at(place: &str, access: &Access) -> Result<Self> {
        let s3 = S3::open(place, access)?;
        let open = |s3: S3| Options::default().name(place).open(Arc::new(s3));
        let (opened, server) = futures::join!(open(s3.clone()), Server::read(&s3));
        if matches!(opened, Err(Error::NotFound(_))) {
            refuse_backups(&s3).await?;
        }
        let (opened, (server, _)) = (opened?, server?);
        if server.quoted { Ok(opened) } else { open(server.set(s3)).await }
    }

    /// Probes the server of the store at `s3://BUCKET/PREFIX` again, unless that was done within a day:
    /// a new version of a server may have lost what it had. For who collects, which relies on it most
    /// and writes anyway. Cost: a request, or some 900.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the server fails now; those of asking.
    pub async fn probe_daily(
        place: &str,
        access: &Access,
        progress: Progress<'_>,
    ) -> Result<Option<ProbeReport>> {
        let s3 = S3::open(place, access)?;
        let (server, _) = Server::read(&s3).await?;
        if Machine.now().as_secs().saturating_sub(server.probed) < DAY {
            return Ok(None);
        }
        let (s3, report) = probe_s3(s3, "", progress).await?;
        Server::of(&s3).leave(&s3).await?;
        Ok(Some(report))
    }
}
