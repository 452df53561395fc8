//! A backup's stream as objects of some MiB.
//!
//! Owns: where the stream is cut. Some parts are written at a time.

use super::bucket::{Bucket, Client, Job};
use super::manifest::Part;
use super::parts::{Covers, LAST, crc_of, name};
use super::unfinished;
use bytes::Bytes;
use holdall::{BackupHead, BackupId, BackupPieces, Error, Reached, Result};
use std::collections::VecDeque;

/// Least bytes of a part that is not the last.
const PART_BYTES: usize = 8 << 20;
/// Parts after which they become twice as large, up to eight times.
const SAME_SIZE: usize = 1000;
/// Most bytes on their way.
const MOST_BYTES: usize = 64 << 20;
/// Most requests at a time.
const MOST_JOBS: usize = 4;

/// Writes parts.
pub(crate) struct Upload<'b> {
    bucket: &'b Bucket,
    /// Whether each part is read once more.
    verify: bool,
    head: Option<BackupHead>,
    parts: Vec<Part>,
    buffer: Vec<u8>,
    pages: u64,
    from: Reached,
    at: Reached,
    jobs: VecDeque<(usize, Job<()>)>,
    /// Whether the place knows that this backup is unfinished.
    noted: bool,
}

impl<'b> Upload<'b> {
    pub(crate) fn new(bucket: &'b Bucket, verify: bool) -> Self {
        Self {
            bucket,
            verify,
            head: None,
            parts: Vec::new(),
            buffer: Vec::new(),
            pages: 0,
            from: Reached::default(),
            at: Reached::default(),
            jobs: VecDeque::new(),
            noted: false,
        }
    }

    /// Goes on behind these parts.
    pub(crate) fn behind(mut self, head: BackupHead, parts: Vec<Part>, at: Reached) -> Self {
        (self.head, self.parts, self.from, self.at) = (Some(head), parts, at, at);
        self.noted = true;
        self
    }

    /// The head, once there is one.
    pub(crate) fn head(&self) -> Option<BackupHead> {
        self.head
    }

    fn id(&self) -> Result<BackupId> {
        let id = self.head.and_then(|head| head.info().id);
        id.ok_or_else(|| {
            Error::Invalid("a backup in a bucket marks the store: open it for writing".into())
        })
    }

    /// Sends what was written. `last`: with the end of the stream.
    fn cut(&mut self, last: bool) -> Result<()> {
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let crc32c = crc_of(&bytes);
        let (place, len) = (self.parts.len(), bytes.len());
        let covers = Covers { place, from: self.from, to: self.at, pages: self.pages, crc32c };
        (self.from, self.pages) = (self.at, 0);
        let own = format!("{}{}", covers.name(), if last { LAST } else { "" });
        let name = name(self.id()?, &own);
        let part = Part { name: own, bytes: len as u64, crc32c };
        self.parts.push(part);
        let busy = |jobs: &VecDeque<(usize, Job<()>)>| jobs.iter().map(|(n, _)| n).sum::<usize>();
        while self.jobs.len() >= MOST_JOBS || busy(&self.jobs) + len > MOST_BYTES {
            let Some((_, job)) = self.jobs.pop_front() else { break };
            self.bucket.join(job)?;
        }
        let work = send(self.bucket.client.clone(), name, bytes, self.verify);
        self.jobs.push_back((len, self.bucket.start(work)?));
        Ok(())
    }

    /// Waits until all is there. Returns the head, the parts, and whether it was noted as unfinished.
    pub(crate) fn finish(mut self) -> Result<(BackupHead, Vec<Part>, bool)> {
        if !self.buffer.is_empty() {
            self.cut(true)?;
        }
        while let Some((_, job)) = self.jobs.pop_front() {
            self.bucket.join(job)?;
        }
        let head = self.head.ok_or_else(|| Error::Invalid("a backup without a head".into()))?;
        Ok((head, self.parts, self.noted))
    }
}

impl BackupPieces for Upload<'_> {
    fn head(&mut self, head: &BackupHead) -> Result<()> {
        self.head = Some(*head);
        self.id().map(drop)
    }

    fn write(&mut self, bytes: &[u8], pages: u64) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.pages += pages;
        Ok(())
    }

    fn reached(&mut self, place: Reached) -> Result<()> {
        self.at = place;
        if self.buffer.len() < PART_BYTES << (self.parts.len() / SAME_SIZE).min(3) {
            return Ok(());
        }
        if !self.noted
            && let Some(head) = &self.head
        {
            unfinished::note(self.bucket, head)?;
            self.noted = true;
        }
        self.cut(false)
    }
}

async fn send(client: Client, name: String, bytes: Bytes, verify: bool) -> Result<()> {
    client.put(&name, bytes.clone()).await?;
    if verify {
        let found = client.get_if(&name).await?;
        if found.as_ref() != Some(&bytes) {
            let detail = "the server gives other bytes back than it was sent".into();
            return Err(Error::Corrupt { place: name, detail });
        }
    }
    Ok(())
}
