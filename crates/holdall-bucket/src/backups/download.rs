//! The stream of a backup from its parts.
//!
//! Owns: [`Download`], which reads some parts ahead. What a part gives is held against its length and
//! checksum before any of it is used.

use super::bucket::{Bucket, Client, Job};
use super::manifest::{Manifest, Part};
use super::parts;
use bytes::{Buf, Bytes};
use holdall::{BackupHead, BackupId, Error, Result};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;

/// Most bytes that are read ahead.
const MOST_BYTES: u64 = 64 << 20;
/// Most requests at a time.
const MOST_JOBS: usize = 4;

/// A stream being read.
pub(crate) struct Download {
    bucket: Arc<Bucket>,
    id: BackupId,
    parts: VecDeque<Part>,
    jobs: VecDeque<(u64, Job<Bytes>)>,
    now: Bytes,
}

impl Download {
    pub(crate) fn new(
        bucket: Arc<Bucket>,
        id: BackupId,
        head: &BackupHead,
        manifest: Manifest,
    ) -> Self {
        let now = Bytes::copy_from_slice(&head.encode());
        Self { bucket, id, parts: manifest.parts.into(), jobs: VecDeque::new(), now }
    }

    /// Asks for what comes next.
    fn ahead(&mut self) -> Result<()> {
        let mut busy: u64 = self.jobs.iter().map(|(bytes, _)| bytes).sum();
        while let Some(part) = self.parts.front()
            && (self.jobs.is_empty()
                || (self.jobs.len() < MOST_JOBS && busy + part.bytes <= MOST_BYTES))
        {
            busy += part.bytes;
            let name = parts::name(self.id, &part.name);
            let (bytes, crc32c) = (part.bytes, part.crc32c);
            let work = fetch(self.bucket.client.clone(), name, bytes, crc32c);
            self.jobs.push_back((bytes, self.bucket.start(work)?));
            self.parts.pop_front();
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        self.ahead()?;
        let Some((_, job)) = self.jobs.pop_front() else { return Ok(None) };
        let bytes = self.bucket.join(job)?;
        self.ahead()?;
        Ok(Some(bytes))
    }
}

impl Read for Download {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.now.is_empty() && !to.is_empty() {
            match self.next().map_err(io::Error::other)? {
                Some(bytes) => self.now = bytes,
                None => return Ok(0),
            }
        }
        let count = to.len().min(self.now.len());
        self.now.copy_to_slice(&mut to[..count]);
        Ok(count)
    }
}

async fn fetch(client: Client, name: String, bytes: u64, crc32c: u32) -> Result<Bytes> {
    let found = client.get_if(&name).await?;
    let corrupt = |detail: String| Error::Corrupt { place: name.clone(), detail };
    let found = found.ok_or_else(|| corrupt("this part of a backup is not there".into()))?;
    if found.len() as u64 != bytes {
        return Err(corrupt(format!("has {} bytes, its list names {bytes}", found.len())));
    }
    // Other requests go on meanwhile.
    let sum = tokio::task::block_in_place(|| parts::crc_of(&found));
    if sum != crc32c {
        return Err(corrupt("its checksum is wrong".into()));
    }
    Ok(found)
}
