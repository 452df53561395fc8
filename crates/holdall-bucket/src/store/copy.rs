//! Copies that share blobs, and renames.
//!
//! A copy names another object's blobs. So that no collector takes them away meanwhile, an intent first
//! says what will be shared; then the source is seen to name it still, by the write that marks it as
//! shared or, if it is marked, by a read; only then the target is written.

use super::change::{Changed, Edit, all_named, successor};
use super::current::{Current, Target};
use super::edit::{Piece, Splices, What};
use super::inner::{Inner, TRIES};
use super::layout::Known;
use super::missing::is_missing;
use super::operation::Operation;
use super::put::{Body, PutMode, PutOptions, Replace, check_mode};
use super::read::Object;
use super::tree::{AtHand, fetch_nodes};
use super::version::ObjectVersion;
use super::write::Written;
use crate::format::{EMBEDDED, IntentKind, Named, Record, alias_of, byte_of};
use crate::mutation::{self, Mutation};
use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_core::segment_tree::slices;
use std::ops::Range;
use std::sync::Arc;

impl Inner {
    /// The object, read now.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub(crate) async fn existing(&self, target: &Target) -> Result<Current> {
        let found = self.read(target).await?.filter(|found| !found.record.gone);
        found.ok_or_else(|| Error::NotFound(target.shown()))
    }

    /// Copies an object with its attributes. Returns the version that was copied too.
    pub(crate) async fn copy(
        self: &Arc<Self>,
        from: &Target,
        to: &Target,
        mode: PutMode,
    ) -> Result<(Changed, ObjectVersion)> {
        for attempt in 0..TRIES {
            let source = self.existing(from).await?;
            let version = ObjectVersion::of(&source.record);
            if from == to && mode == PutMode::Overwrite {
                let size = source.record.tree.size;
                let same = Changed { version: Some(version), size, changed: false };
                return Ok((same, version));
            }
            let record = source.record.clone();
            let options = PutOptions { mode, attributes: record.attributes.clone() };
            if record.tree.size <= self.sizes().embedded {
                let mut object = Object::new(self.clone(), from.clone(), source.clone());
                match object.read(0..u64::MAX).await {
                    Err(e) if self.is_outdated(from, &source, &e).await? => continue,
                    bytes => return Ok((self.put(to, bytes?, options).await?, version)),
                }
            }
            let body = Body::Shared {
                tree: record.tree.clone(),
                blobs: record.blobs.clone(),
                embedded: record.embedded.clone(),
            };
            let mut edit = Replace::new(to, body, options);
            let mut operation = Operation::new(self)?;
            let base = self.read(to).await?;
            if self.share(&[(from, &source)], to, &mut operation).await? {
                let changed = self.change(to, &mut operation, base, &mut edit).await?;
                return Ok((changed, version));
            }
            self.pause(attempt).await?;
        }
        Err(busy(from))
    }

    /// Announces that `to` will name what the sources name, and sees that they still do. Returns
    /// whether; if not, they were changed, and the operation is of no use.
    async fn share(
        &self,
        sources: &[(&Target, &Current)],
        to: &Target,
        operation: &mut Operation,
    ) -> Result<bool> {
        let mut shared: Vec<Named> =
            sources.iter().flat_map(|(_, source)| all_named(&source.record)).collect();
        shared.sort();
        shared.dedup();
        if shared.is_empty() {
            return Ok(true);
        }
        operation.announce_as(self, to, IntentKind::Share, shared).await?;
        for (target, source) in sources {
            let still = if source.record.shared && mutation::is(Mutation::B06Reread) {
                true
            } else if source.record.shared {
                self.read(target).await?.is_some_and(|now| now.tag == source.tag)
            } else if source.record.names_blobs() && !mutation::is(Mutation::B06Flag) {
                let record = Record { shared: true, ..Record::clone(&source.record) };
                let written = self.write(target, Some(source), record, None).await?;
                matches!(written, Written::Done(_))
            } else {
                true
            };
            if !still {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Renames an object: a copy, then the source is removed if it still is what was copied.
    pub(crate) async fn rename(
        self: &Arc<Self>,
        from: &Target,
        to: &Target,
        mode: PutMode,
    ) -> Result<Changed> {
        if from == to {
            let source = self.existing(from).await?;
            let version = Some(ObjectVersion::of(&source.record));
            return Ok(Changed { version, size: source.record.tree.size, changed: false });
        }
        let (changed, version) = self.copy(from, to, mode).await?;
        let removed = self.remove(from, Some(version)).await;
        match removed {
            Ok(_) => Ok(changed),
            Err(Error::Conflict { object, .. }) => {
                let detail = format!("while it was renamed; {} is the copy of before", to.shown());
                Err(Error::Conflict { object, detail })
            }
            Err(e) => Err(e),
        }
    }

    /// Removes an object, if there is one and, with `only`, it is of that version. Returns whether
    /// there was one.
    pub(crate) async fn remove(
        &self,
        target: &Target,
        only: Option<ObjectVersion>,
    ) -> Result<bool> {
        let mut operation = Operation::new(self)?;
        let base = self.read(target).await?;
        let mut edit = Remove { target: target.clone(), only };
        Ok(self.change(target, &mut operation, base, &mut edit).await?.changed)
    }

    /// Inserts the bytes `range` of an object into another before byte `at`.
    pub(crate) async fn copy_range(
        self: &Arc<Self>,
        from: &Target,
        range: Range<u64>,
        to: &Target,
        at: u64,
    ) -> Result<Changed> {
        for attempt in 0..TRIES {
            let source = self.existing(from).await?;
            let pieces = match self.pieces(from, &source, range.clone()).await {
                Err(e) if self.is_outdated(from, &source, &e).await? => continue,
                pieces => pieces?,
            };
            let base = if from == to { Some(source.clone()) } else { self.read(to).await? };
            let mut operation = Operation::new(self)?;
            let blobs = pieces.iter().any(|piece| matches!(piece, Piece::Blob(..)));
            // Within one object nothing is shared with others, as long as it is what was read.
            let only = (from == to && blobs).then(|| ObjectVersion::of(&source.record));
            let shares = blobs && from != to;
            if !shares || self.share(&[(from, &source)], to, &mut operation).await? {
                let mut edit = Splices::new(to, What::Insert(at, pieces), only, shares);
                match self.change(to, &mut operation, base, &mut edit).await {
                    Err(Error::Conflict { .. }) if only.is_some() => {}
                    changed => return changed,
                }
            }
            self.pause(attempt).await?;
        }
        Err(busy(from))
    }

    /// Makes `to` the objects `parts` one behind the other, without attributes.
    pub(crate) async fn concat(
        self: &Arc<Self>,
        parts: &[Target],
        to: &Target,
        mode: PutMode,
    ) -> Result<Changed> {
        'again: for attempt in 0..TRIES {
            let mut sources = Vec::with_capacity(parts.len());
            let mut pieces = Vec::new();
            for part in parts {
                let source = self.existing(part).await?;
                match self.pieces(part, &source, 0..source.record.tree.size).await {
                    Err(e) if self.is_outdated(part, &source, &e).await? => continue 'again,
                    found => pieces.extend(found?),
                }
                sources.push(source);
            }
            let mut operation = Operation::new(self)?;
            let base = self.read(to).await?;
            let named: Vec<_> = parts.iter().zip(&sources).collect();
            if self.share(&named, to, &mut operation).await? {
                let shares = pieces.iter().any(|piece| matches!(piece, Piece::Blob(..)));
                let splices = Splices::new(to, What::Insert(0, pieces), None, shares);
                let mut edit = Join { target: to.clone(), mode, splices };
                return self.change(to, &mut operation, base, &mut edit).await;
            }
            self.pause(attempt).await?;
        }
        Err(Error::Conflict {
            object: to.shown(),
            detail: "its parts were changed each time".into(),
        })
    }

    /// Whether a read failed since the object was replaced meanwhile.
    async fn is_outdated(&self, target: &Target, source: &Current, e: &Error) -> Result<bool> {
        if !is_missing(e) && !matches!(e, Error::SnapshotTooOld { .. }) {
            return Ok(false);
        }
        let now = self.read(target).await?;
        Ok(now.is_none_or(|now| now.tag != source.tag))
    }

    /// What some bytes of an object lie in. Short ranges are read.
    async fn pieces(
        self: &Arc<Self>,
        target: &Target,
        source: &Current,
        range: Range<u64>,
    ) -> Result<Vec<Piece>> {
        let record = &source.record;
        let size = record.tree.size;
        let Range { start, end } = range;
        if start > end || end > size {
            return Err(Error::Range { object: target.shown(), start, end, size });
        }
        if end - start <= self.sizes().embedded {
            let mut object = Object::new(self.clone(), target.clone(), source.clone());
            return Ok(vec![Piece::Bytes(object.read(range).await?)]);
        }
        let (mut blobs, mut at_hand) = (record.blobs.clone(), AtHand::new());
        fetch_nodes(self, &record.tree, &mut blobs, &mut at_hand, std::slice::from_ref(&range))
            .await?;
        let mut pieces = Vec::new();
        for located in slices(&Known(&at_hand), &record.tree, range.clone()) {
            let located = located?;
            let from = start.max(located.start);
            let len = located.end().min(end) - from;
            if !located.slice.is_run() {
                pieces.push(Piece::Zeros(len));
                continue;
            }
            let byte = byte_of(located.slice.reference) + (from - located.start);
            let alias = alias_of(located.slice.reference);
            if alias == EMBEDDED {
                let bytes = record.embedded.get(byte as usize..(byte + len) as usize);
                let bytes =
                    bytes.ok_or_else(|| Error::corrupt(target.shown(), "a slice is lost"))?;
                pieces.push(Piece::Bytes(Bytes::copy_from_slice(bytes)));
            } else {
                let blob = blobs.get(alias);
                let blob = blob.ok_or_else(|| Error::corrupt(target.shown(), "names no blob"))?;
                pieces.push(Piece::Blob(blob, byte, len));
            }
        }
        Ok(pieces)
    }
}

pub(super) fn busy(source: &Target) -> Error {
    let detail = format!("it was changed {TRIES} times meanwhile");
    Error::Conflict { object: source.shown(), detail }
}

/// The edit that removes an object.
struct Remove {
    target: Target,
    only: Option<ObjectVersion>,
}

#[async_trait]
impl Edit for Remove {
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<Record>> {
        let Some(base) = base.filter(|base| !base.record.gone) else { return Ok(None) };
        let mode = self.only.map_or(PutMode::Overwrite, PutMode::Update);
        check_mode(&self.target, Some(base), mode)?;
        let mut record = successor(store, &self.target, operation, Some(base))?;
        record.gone = true;
        Ok(Some(record))
    }
}

/// The edit that makes an object of others' parts.
struct Join {
    target: Target,
    mode: PutMode,
    splices: Splices,
}

#[async_trait]
impl Edit for Join {
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<Record>> {
        // As if it were empty, of what is there now.
        let options = PutOptions { mode: self.mode, ..PutOptions::default() };
        let mut empty = Replace::new(&self.target, Body::Bytes(Bytes::new()), options);
        let Some(record) = empty.apply(store, operation, base).await? else { return Ok(None) };
        let (change, recent, retired) =
            (record.change, record.recent.clone(), record.retired.clone());
        let (tag, written, seen) = base.map_or_else(
            || (crate::backend::Tag(String::new()), None, std::time::Duration::ZERO),
            |base| (base.tag.clone(), base.written, base.seen),
        );
        let current = Current { tag, written, seen, record: Arc::new(record.clone()) };
        let edited = self.splices.apply(store, operation, Some(&current)).await?;
        let Some(mut joined) = edited else { return Ok(Some(record)) };
        (joined.change, joined.recent) = (change, recent);
        debug_assert!(joined.retired.len() >= retired.len(), "nothing retired is forgotten");
        Ok(Some(joined))
    }
}
