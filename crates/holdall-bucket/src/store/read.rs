//! Reading an object: one version of it, any range.
//!
//! Owns: [`Object`], [`Pieces`]. A version's blobs stay for the grace at least after it was replaced. Who reads
//! longer finds one missing: then the object was changed, or it is damaged, and its record tells which.

use super::ahead::{Ahead, Given};
use super::current::{Current, Target};
use super::inner::Inner;
use super::layout::Layout;
use super::missing::is_missing;
use super::version::ObjectVersion;
use crate::format::{Record, RecordHeader};
use bytes::Bytes;
use futures::stream::BoxStream;
use holdall::{Attributes, Error, Result};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Small parts that follow each other are given together up to this many bytes.
const PIECE: usize = 1 << 20;

/// What is known of an object without reading its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// Its name.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Changes with every change of its bytes or attributes.
    pub version: ObjectVersion,
    /// When it was created, by the clock of who did it.
    pub created: SystemTime,
    /// When its bytes or attributes last changed, likewise.
    pub modified: SystemTime,
    /// Its attributes.
    pub attributes: Attributes,
}

impl ObjectInfo {
    /// When the bytes last changed, for display: as the attribute [`holdall::MTIME`] says, which a
    /// change of the bytes drops, else [`ObjectInfo::modified`].
    #[must_use]
    pub fn last_modified(&self) -> SystemTime {
        holdall::mtime(&self.attributes).unwrap_or(self.modified)
    }

    pub(crate) fn of(record: &Record) -> Self {
        RecordHeader::from(record).into()
    }
}

impl From<RecordHeader> for ObjectInfo {
    fn from(header: RecordHeader) -> Self {
        Self {
            version: ObjectVersion::made(header.incarnation, header.change, header.operation),
            name: header.name,
            size: header.size,
            created: UNIX_EPOCH + Duration::from_nanos(header.created),
            modified: UNIX_EPOCH + Duration::from_nanos(header.modified),
            attributes: header.attributes,
        }
    }
}

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Object {
    pub(super) layout: Layout,
}

impl Object {
    pub(crate) fn new(store: Arc<Inner>, target: Target, current: Current) -> Self {
        Self { layout: Layout::new(store, target, current) }
    }

    /// What is known of it.
    pub fn info(&self) -> ObjectInfo {
        ObjectInfo::of(&self.layout.current.record)
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.layout.current.record.tree.size
    }

    /// The bytes `range`, cut to the object's size. Cost: a request for each blob they lie in, and one
    /// for each level of nodes that is not at hand; eight requests are under way together.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] if the object was changed longer ago than the store's grace and the
    /// version's bytes are gone; [`Error::Corrupt`]; those of the backend.
    pub async fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        let range = self.cut(range);
        let mut out = self.room(range.end - range.start)?;
        let mut ahead = Ahead::new(range);
        while let Some(given) = self.go_on(&mut ahead).await? {
            given.append(&self.layout, &mut out)?;
        }
        Ok(out.into())
    }

    /// The bytes `range`, cut to the object's size, in order and in pieces of some MiB at most. While
    /// the caller works on one, eight requests for the next are under way, across all of the range.
    pub fn pieces(self, range: Range<u64>) -> Pieces {
        let range = self.cut(range);
        Pieces { object: self, left: range.end - range.start, ahead: Ahead::new(range) }
    }

    fn cut(&self, range: Range<u64>) -> Range<u64> {
        let end = range.end.min(self.size());
        range.start.min(end)..end
    }

    async fn go_on(&mut self, ahead: &mut Ahead) -> Result<Option<Given>> {
        match ahead.next(&mut self.layout).await {
            Err(e) if is_missing(&e) => Err(self.missing(e).await),
            other => other,
        }
    }

    /// Room for this many bytes: an object may have more than memory, of which a record of a few bytes
    /// may tell.
    fn room(&self, len: u64) -> Result<Vec<u8>> {
        let mut room = Vec::new();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        room.try_reserve_exact(len).map_err(|_| {
            let shown = self.layout.target.shown();
            Error::Invalid(format!("{len} bytes of {shown} are more than memory; read it in parts"))
        })?;
        Ok(room)
    }

    /// The error that a missing blob means.
    async fn missing(&self, missing: Error) -> Error {
        match self.layout.store.read(&self.layout.target).await {
            Ok(Some(now)) if now.tag == self.layout.current.tag => missing,
            Ok(now) => {
                let since = now.and_then(|now| now.written).unwrap_or(0);
                let age =
                    self.layout.store.environment.now().saturating_sub(Duration::from_secs(since));
                Error::SnapshotTooOld { age }
            }
            Err(e) => e,
        }
    }
}

/// The bytes of an object, from [`Object::pieces`].
#[derive(Debug)]
pub struct Pieces {
    object: Object,
    left: u64,
    ahead: Ahead,
}

impl Pieces {
    /// Bytes that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The piece that comes next; `None` at the end.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let mut out = Vec::new();
        while out.len() < PIECE {
            let Some(given) = self.object.go_on(&mut self.ahead).await? else { break };
            given.append(&self.object.layout, &mut out)?;
        }
        self.left = self.left.saturating_sub(out.len() as u64);
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// The same as a stream, which ends after an error.
    pub fn into_stream(self) -> BoxStream<'static, Result<Bytes>> {
        let next =
            |mut pieces: Self| async move { Ok(pieces.next().await?.map(|piece| (piece, pieces))) };
        Box::pin(futures::stream::try_unfold(self, next))
    }
}
