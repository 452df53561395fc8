//! Reading an object: one version of it, any range.
//!
//! Owns: [`Object`]. A version's blobs stay for the grace at least after it was replaced. Who reads
//! longer finds one missing: then the object was changed, or it is damaged, and its record tells which.

use super::current::{Current, Target};
use super::inner::{Inner, TOGETHER};
use super::missing::{is_missing, missing_blob};
use super::tree::{AtHand, fetch_nodes};
use super::version::ObjectVersion;
use crate::format::{BlobRef, Blobs, EMBEDDED, Record, Stretch, alias_of, byte_of};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use holdall::{Attributes, Error, Result};
use holdall_core::segment_tree::{Located, Node, NodeRead, NodeRef, slices};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes that are read together: within such a window each blob is asked for once.
pub(crate) const WINDOW: u64 = 64 << 20;
/// A blob is read in one request if that gives at most this many bytes for each one wanted.
const WASTE: u64 = 4;

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
        Self {
            name: record.name.clone(),
            size: record.tree.size,
            version: ObjectVersion::of(record),
            created: UNIX_EPOCH + Duration::from_nanos(record.created),
            modified: UNIX_EPOCH + Duration::from_nanos(record.modified),
            attributes: record.attributes.clone(),
        }
    }
}

/// One version of an object.
#[derive(Debug, Clone)]
pub struct Object {
    store: Arc<Inner>,
    target: Target,
    current: Current,
    blobs: Blobs,
    at_hand: AtHand,
}

/// A part of what a read wants: where it goes, and what it is of.
#[derive(Debug, Clone)]
struct Want {
    at: usize,
    /// The payload bytes.
    range: Range<u64>,
}

impl Object {
    pub(crate) fn new(store: Arc<Inner>, target: Target, current: Current) -> Self {
        let blobs = current.record.blobs.clone();
        Self { store, target, current, blobs, at_hand: AtHand::new() }
    }

    /// What is known of it.
    pub fn info(&self) -> ObjectInfo {
        ObjectInfo::of(&self.current.record)
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.current.record.tree.size
    }

    /// The bytes `range`, cut to the object's size. Cost: a request for each blob they lie in, and one
    /// for each level of nodes that is not at hand; eight requests are under way together.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`] if the object was changed longer ago than the store's grace and the
    /// version's bytes are gone; [`Error::Corrupt`]; those of the backend.
    pub async fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        let end = range.end.min(self.size());
        let range = range.start.min(end)..end;
        let mut out = self.room(range.end - range.start)?;
        let mut at = range.start;
        while at < range.end {
            let until = range.end.min(at + WINDOW);
            let place = (at - range.start) as usize..(until - range.start) as usize;
            let read = self.read_window(at..until, &mut out[place]).await;
            match read {
                Err(e) if is_missing(&e) => return Err(self.missing(e).await),
                other => other?,
            }
            at = until;
        }
        Ok(out.into())
    }

    /// Room for this many bytes: an object may have more than memory, of which a record of a few bytes
    /// may tell.
    fn room(&self, len: u64) -> Result<Vec<u8>> {
        let mut room = Vec::new();
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        room.try_reserve_exact(len).map_err(|_| {
            let shown = self.target.shown();
            Error::Invalid(format!("{len} bytes of {shown} are more than memory; read it in parts"))
        })?;
        room.resize(len, 0);
        Ok(room)
    }

    /// The error that a missing blob means.
    async fn missing(&self, missing: Error) -> Error {
        match self.store.read(&self.target).await {
            Ok(Some(now)) if now.tag == self.current.tag => missing,
            Ok(now) => {
                let since = now.and_then(|now| now.written).unwrap_or(0);
                let age = self.store.environment.now().saturating_sub(Duration::from_secs(since));
                Error::SnapshotTooOld { age }
            }
            Err(e) => e,
        }
    }

    async fn read_window(&mut self, range: Range<u64>, out: &mut [u8]) -> Result<()> {
        let tree = &self.current.record.tree;
        fetch_nodes(
            &self.store,
            tree,
            &mut self.blobs,
            &mut self.at_hand,
            std::slice::from_ref(&range),
        )
        .await?;
        let mut wants: BTreeMap<BlobRef, Vec<Want>> = BTreeMap::new();
        for located in slices(&Known(&self.at_hand), tree, range.clone()) {
            let Located { slice, start } = located?;
            let from = range.start.max(start);
            let len = (start + slice.len).min(range.end) - from;
            let at = (from - range.start) as usize;
            if !slice.is_run() {
                continue;
            }
            let byte = byte_of(slice.reference) + (from - start);
            let alias = alias_of(slice.reference);
            if alias == EMBEDDED {
                let bytes = self.current.record.embedded.get(byte as usize..(byte + len) as usize);
                let bytes = bytes.ok_or_else(|| self.damaged("a slice is not in its record"))?;
                out[at..at + len as usize].copy_from_slice(bytes);
                continue;
            }
            let blob =
                self.blobs.get(alias).ok_or_else(|| self.damaged("a slice names no blob"))?;
            if byte + len > blob.len {
                return Err(self.damaged("a slice is not in its blob"));
            }
            wants.entry(blob).or_default().push(Want { at, range: byte..byte + len });
        }
        let store = &self.store;
        let requests = wants.into_iter().flat_map(|(blob, wants)| requests(blob, wants));
        let reads: Vec<Reading<'_>> = requests
            .map(|(blob, stretch, wants)| fetch_part(store, blob, stretch, wants))
            .collect();
        let mut reads = futures::stream::iter(reads).buffer_unordered(TOGETHER);
        while let Some((stretch, wants, stored)) = reads.try_next().await? {
            for Want { at, range } in wants {
                let len = (range.end - range.start) as usize;
                stretch.copy(&stored, range.start, &mut out[at..at + len]);
            }
        }
        Ok(())
    }

    fn damaged(&self, detail: &str) -> Error {
        Error::corrupt(self.target.shown(), detail)
    }
}

/// A read under way: of what, where its bytes go, and they as they are stored.
type Reading<'f> = BoxFuture<'f, Result<(Stretch, Vec<Want>, Bytes)>>;

fn fetch_part(store: &Inner, blob: BlobRef, stretch: Stretch, wants: Vec<Want>) -> Reading<'_> {
    Box::pin(async move {
        let bytes = store.read_stretch(blob, stretch).await?;
        let bytes = bytes.ok_or_else(|| missing_blob(blob.id))?;
        Ok((stretch, wants, bytes))
    })
}

/// The requests that read what is wanted of a blob: one, unless that would read much else.
fn requests(blob: BlobRef, mut wants: Vec<Want>) -> Vec<(BlobRef, Stretch, Vec<Want>)> {
    let start = wants.iter().map(|want| want.range.start).min().unwrap_or(0);
    let end = wants.iter().map(|want| want.range.end).max().unwrap_or(0);
    let wanted: u64 = wants.iter().map(|want| want.range.end - want.range.start).sum();
    let cover = Stretch::around(blob, start..end);
    let Range { start, end } = cover.stored();
    if end - start <= wanted.saturating_mul(WASTE).max(1 << 20) {
        return vec![(blob, cover, wants)];
    }
    wants.sort_by_key(|want| want.range.start);
    let mut all: Vec<(BlobRef, Stretch, Vec<Want>)> = Vec::new();
    for want in wants {
        let stretch = Stretch::around(blob, want.range.clone());
        match all.last_mut() {
            Some((_, last, own)) if stretch.payload().start <= last.payload().end => {
                let start = last.payload().start;
                *last = Stretch::around(blob, start..want.range.end.max(last.payload().end));
                own.push(want);
            }
            _ => all.push((blob, stretch, vec![want])),
        }
    }
    all
}

/// Nodes at hand, as core's tree reads them.
pub(crate) struct Known<'a>(pub(crate) &'a AtHand);

impl NodeRead for Known<'_> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        let found = self.0.get(&node).cloned();
        found.ok_or_else(|| Error::corrupt("a tree", format!("node {node} is not at hand")))
    }

    fn leaf_fanout(&self) -> usize {
        crate::format::MAX_FANOUT
    }

    fn inner_fanout(&self) -> usize {
        crate::format::MAX_FANOUT
    }
}
