//! Edits inside an object: any range replaced by other bytes, by zeros, or by what another object has.
//!
//! Owns: [`Splice`], what one edit does; applying several as one change. New bytes lie in the record
//! while all of them fit there, then all go into a blob; a record that would list too many slices gets
//! a tree of nodes.

use super::change::{Edit, named_inline};
use super::current::{Current, Target};
use super::inner::Inner;
use super::operation::Operation;
use super::put::{PutMode, check_mode};
use super::tree::{Draft, options};
use super::version::ObjectVersion;
use crate::format::{
    BlobId, BlobRef, EMBEDDED, Named, Part, Record, Retired, alias_of, byte_of, reference,
};
use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_core::attributes::drop_those_of_bytes;
use holdall_core::segment_tree::{
    Content, Descriptor, MAX_OBJECT, Slice, Top, Tree, build, splice,
};
use std::collections::BTreeSet;
use std::ops::Range;

/// One edit. Ranges are of the object as the edits before it left it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Splice {
    /// Replaces a range, which may be empty, by bytes, which may be none.
    Replace(Range<u64>, Bytes),
    /// Replaces a range by this many zeros, which take no space.
    Zeros(Range<u64>, u64),
    /// Puts bytes behind the last one.
    Append(Bytes),
    /// Writes bytes at a place, over what is there; what lacks before it becomes zeros.
    WriteAt(u64, Bytes),
    /// Cuts the object, or adds zeros, so that it has this size.
    SetLen(u64),
}

/// What comes into an object.
#[derive(Debug, Clone)]
pub(crate) enum Piece {
    Bytes(Bytes),
    Zeros(u64),
    /// Bytes `from`, `len` of them, of a blob.
    Blob(BlobRef, u64, u64),
}

impl Piece {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(len) | Self::Blob(_, _, len) => *len,
        }
    }
}

/// An edit whose place is known.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) range: Range<u64>,
    pub(super) pieces: Vec<Piece>,
}

impl Splice {
    /// The edit in an object of `size` bytes.
    fn place(&self, size: u64) -> Placed {
        let bytes = |bytes: &Bytes| vec![Piece::Bytes(bytes.clone())];
        match self {
            Self::Replace(range, new) => Placed { range: range.clone(), pieces: bytes(new) },
            Self::Zeros(range, len) => {
                Placed { range: range.clone(), pieces: vec![Piece::Zeros(*len)] }
            }
            Self::Append(new) => Placed { range: size..size, pieces: bytes(new) },
            Self::WriteAt(at, new) => {
                let gap = Piece::Zeros(at.saturating_sub(size));
                let end = at.saturating_add(new.len() as u64);
                let range = (*at).min(size)..end.min(size);
                Placed { range, pieces: vec![gap, Piece::Bytes(new.clone())] }
            }
            Self::SetLen(len) => {
                let more = Piece::Zeros(len.saturating_sub(size));
                Placed { range: (*len).min(size)..size, pieces: vec![more] }
            }
        }
    }
}

/// Several edits as one change of an object.
pub(crate) struct Splices {
    pub(super) target: Target,
    pub(super) what: What,
    /// The version that it must have.
    pub(super) only: Option<ObjectVersion>,
    /// Blobs of long pieces, by edit and piece: they are written once.
    sent: std::collections::BTreeMap<(usize, usize), Vec<BlobRef>>,
    /// What the last attempt wrote for itself.
    written: Vec<BlobRef>,
    /// Whether what comes in may belong to other objects.
    shares: bool,
}

/// What the edits are.
pub(crate) enum What {
    /// As a caller gave them.
    Splices(Vec<Splice>),
    /// Bytes that are there already, to be written to blobs of their own however few.
    Rewrite(Vec<Splice>),
    /// Pieces to be put in at a place.
    Insert(u64, Vec<Piece>),
}

impl Splices {
    pub(crate) fn new(
        target: &Target,
        what: What,
        only: Option<ObjectVersion>,
        shares: bool,
    ) -> Self {
        let (sent, written) = Default::default();
        Self { target: target.clone(), what, only, sent, written, shares }
    }

    fn count(&self) -> usize {
        match &self.what {
            What::Splices(splices) | What::Rewrite(splices) => splices.len(),
            What::Insert(..) => 1,
        }
    }

    fn placed(&self, at: usize, size: u64) -> Placed {
        match &self.what {
            What::Splices(splices) | What::Rewrite(splices) => splices[at].place(size),
            What::Insert(at, pieces) => Placed { range: *at..*at, pieces: pieces.clone() },
        }
    }

    /// # Errors
    /// [`Error::Range`]; [`Error::Invalid`] for an object that would be too long.
    fn check(&self, placed: &Placed, size: u64) -> Result<u64> {
        let Range { start, end } = placed.range;
        if start > end || end > size {
            let object = self.target.shown();
            return Err(Error::Range { object, start, end, size });
        }
        let new = placed.pieces.iter().try_fold(0_u64, |all, piece| all.checked_add(piece.len()));
        let new = new.filter(|new| new.checked_add(size).is_some_and(|n| n <= MAX_OBJECT));
        let detail = || format!("an object can have {MAX_OBJECT} bytes at most");
        new.ok_or_else(|| Error::Invalid(detail()))
    }

    /// The slices of what comes in.
    async fn slices_of(
        &mut self,
        store: &Inner,
        draft: &mut Draft<'_>,
        edit: usize,
        pieces: &[Piece],
        inline: bool,
    ) -> Result<Vec<Slice>> {
        let mut slices = Vec::new();
        for (at, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.len() > 0) {
            // What an attempt sent before is there, and is to be named.
            if let Some(sent) = self.sent.get(&(edit, at)) {
                let blobs = &mut draft.blobs;
                let run = |b: &BlobRef| Slice::run(reference(blobs.alias(*b), 0), b.len);
                slices.extend(sent.iter().map(run));
                continue;
            }
            match piece {
                Piece::Zeros(len) => slices.push(Slice::zeros(*len)),
                Piece::Blob(blob, from, len) => {
                    let alias = draft.blobs.alias(*blob);
                    slices.push(Slice::run(reference(alias, *from), *len));
                }
                Piece::Bytes(bytes) if inline && bytes.len() as u64 <= store.sizes().embedded => {
                    slices.push(draft.embed(bytes));
                }
                Piece::Bytes(bytes) => {
                    let own = draft.write_segments(store, &self.target, bytes).await?;
                    let sent = own.iter().filter_map(|s| draft.blobs.get(alias_of(s.reference)));
                    self.sent.insert((edit, at), sent.collect());
                    slices.extend(own);
                }
            }
        }
        Ok(slices)
    }

    /// Applies all edits to a tree.
    async fn apply_all(
        &mut self,
        store: &Inner,
        draft: &mut Draft<'_>,
        mut tree: Tree,
    ) -> Result<Option<Tree>> {
        let mut changed = false;
        for at in 0..self.count() {
            let placed = self.placed(at, tree.size);
            let new = self.check(&placed, tree.size)?;
            if placed.range.is_empty() && new == 0 {
                continue;
            }
            changed = true;
            let inline = matches!(tree.top, Top::Inline(_));
            let embeds = inline && !matches!(self.what, What::Rewrite(_));
            let slices = self.slices_of(store, draft, at, &placed.pieces, embeds).await?;
            let most = if inline { usize::MAX } else { store.sizes().slices };
            let options = options(most, store.sizes().segment);
            let descriptor = Descriptor { tree, ..Descriptor::default() };
            let edited = draft
                .run(store, &mut |draft| {
                    let content = Content::Staged { head: &[], slices: slices.clone(), tail: &[] };
                    splice(draft, &descriptor, placed.range.clone(), content, &options)
                })
                .await?;
            tree = settle(store, draft, &self.target, edited.tree).await?;
        }
        Ok(changed.then_some(tree))
    }
}

/// Brings a tree within what a record may hold.
async fn settle(store: &Inner, draft: &mut Draft<'_>, target: &Target, tree: Tree) -> Result<Tree> {
    let Top::Inline(mut slices) = tree.top else { return Ok(tree) };
    let sizes = store.sizes();
    let mut live: u64 = embedded_of(&slices).map(|slice| slice.len).sum();
    let nodes = slices.len() > sizes.slices;
    if live > sizes.embedded || (nodes && live > 0) {
        flush(store, draft, target, &mut slices).await?;
        live = 0;
    }
    pack(draft, &mut slices, live);
    if !nodes {
        return Ok(Tree { size: tree.size, top: Top::Inline(slices) });
    }
    let blobs = slices.iter().filter_map(|s| draft.blobs.get(alias_of(s.reference)));
    draft.kept = blobs.map(|blob| blob.id).collect();
    let most = sizes.slices;
    draft.run(store, &mut |draft| build(draft, slices.iter().copied(), most)).await
}

fn embedded_of(slices: &[Slice]) -> impl Iterator<Item = &Slice> {
    slices.iter().filter(|s| s.is_run() && alias_of(s.reference) == EMBEDDED)
}

/// Puts all embedded bytes that slices name into blobs.
async fn flush(
    store: &Inner,
    draft: &mut Draft<'_>,
    target: &Target,
    slices: &mut Vec<Slice>,
) -> Result<()> {
    let mut bytes = Vec::new();
    for slice in embedded_of(slices) {
        bytes.extend_from_slice(embedded_bytes(&draft.embedded, slice)?);
    }
    let written = draft.write_segments(store, target, &bytes).await?;
    let own = written.iter().filter_map(|s| draft.blobs.get(alias_of(s.reference)));
    let own: Vec<BlobRef> = own.collect();
    draft.written.extend(own);
    let (segment, mut at) = (store.sizes().segment, 0);
    let mut new = Vec::with_capacity(slices.len() + written.len());
    for slice in slices.drain(..) {
        if !slice.is_run() || alias_of(slice.reference) != EMBEDDED {
            new.push(slice);
            continue;
        }
        let mut rest = slice.len;
        while rest > 0 {
            let (blob, byte) = ((at / segment) as usize, at % segment);
            let len = rest.min(segment - byte);
            let first = written.get(blob).ok_or_else(|| Error::corrupt("a tree", "lost bytes"))?;
            new.push(Slice::run(first.reference + byte, len));
            (at, rest) = (at + len, rest - len);
        }
    }
    *slices = new;
    draft.embedded.clear();
    Ok(())
}

/// Keeps only the embedded bytes that slices name, `live` of them if none is named twice.
fn pack(draft: &mut Draft<'_>, slices: &mut [Slice], live: u64) {
    if live == draft.embedded.len() as u64 {
        return;
    }
    let old = std::mem::take(&mut draft.embedded);
    for slice in slices.iter_mut().filter(|s| s.is_run() && alias_of(s.reference) == EMBEDDED) {
        if let Ok(bytes) = embedded_bytes(&old, slice) {
            *slice = draft.embed(bytes);
        }
    }
}

fn embedded_bytes<'b>(embedded: &'b [u8], slice: &Slice) -> Result<&'b [u8]> {
    let from = byte_of(slice.reference) as usize;
    let bytes = embedded.get(from..from + slice.len as usize);
    bytes.ok_or_else(|| Error::corrupt("a tree", "a slice is not in its record"))
}

#[async_trait]
impl Edit for Splices {
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<Record>> {
        let missing = || Error::NotFound(self.target.shown());
        let base = base.ok_or_else(missing)?;
        let old = base.object().ok_or_else(missing)?;
        let mode = self.only.map_or(PutMode::Overwrite, PutMode::Update);
        check_mode(&self.target, Some(base), mode)?;
        operation.unused.append(&mut self.written);
        let id = operation.id;
        let writer = operation.writer(store)?;
        let fanout = store.sizes().fanout;
        let mut draft = Draft::new(old.blobs.clone(), old.embedded.to_vec(), fanout, writer);
        let tree = self.apply_all(store, &mut draft, old.tree.clone()).await;
        let nodes = match &tree {
            Ok(Some(_)) => draft.write_nodes(store, &self.target).await,
            _ => Ok(()),
        };
        self.written.append(&mut draft.written);
        nodes?;
        let Some(tree) = tree? else { return Ok(None) };
        let mut record = Record::clone(old);
        record.tree = tree;
        record.blobs = draft.blobs;
        record.embedded = draft.embedded.into();
        record.shared =
            (old.shared && (old.names_blobs() || !old.retired.is_empty())) || self.shares;
        record.modified = store.nanos();
        drop_those_of_bytes(&mut record.attributes);
        let seconds = store.retired_at(Some(base));
        retire(&mut record, old, draft.dropped, &draft.kept, seconds);
        record.changed_by(id);
        Ok(Some(record))
    }
}

/// Moves what an edit dropped to what `record` retires.
fn retire(
    record: &mut Record,
    old: &Record,
    dropped: Vec<Named>,
    kept: &BTreeSet<BlobId>,
    seconds: u64,
) {
    let before = named_inline(old).unwrap_or_default();
    let listed = before.into_iter().filter(|id| !kept.contains(id)).filter_map(|id| {
        let blob = old.blobs.find(id)?;
        Some(Named { blob, part: Part::Segment })
    });
    let live: BTreeSet<_> = named_inline(record).unwrap_or_default();
    let candidates: Vec<Named> = listed.chain(dropped).collect();
    let gone = candidates.into_iter().filter(|named| !live.contains(&named.blob.id));
    record.retired.extend(gone.map(|named| Retired { named, seconds }));
}
