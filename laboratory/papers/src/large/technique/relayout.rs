//! Laying bytes of some fixed-size leaves out anew, with no more I/O than that takes
//! (Biliris §3.3, §3.4).
//!
//! Owns: [`relayout`]. A leaf that only loses bytes at its end is left as it is: the count in
//! its parent says which bytes are useful. One that only gains bytes at its end is written in
//! place, from its last page on. Any other gets new pages, shadowing the whole leaf, of which
//! those with useful bytes are written in one access. Every old leaf is read at most once,
//! all before the first write. [`Config`](crate::large::store::Config) has two other ways.

use std::ops::Range;

use anyhow::{Result, ensure};
use holdall_core::techniques::segment_tree::Slice;

use crate::large::store::{Purpose, Volume};
use crate::mutation::{Mutation, is};

/// Bytes of the new content, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Bytes of the old leaf of this index.
    Old(usize, Range<u64>),
    /// New bytes.
    New(&'a [u8]),
}

impl Piece<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Old(_, range) => range.end - range.start,
            Self::New(bytes) => bytes.len() as u64,
        }
    }
}

/// What becomes of a stretch of the new content.
enum Plan {
    /// The old leaf stays, with fewer useful bytes.
    Keep(usize),
    /// The old leaf keeps its first bytes; what follows goes behind them, on its own pages. Of
    /// the bytes kept these are written once more.
    InPlace(usize, Range<u64>),
    /// New pages.
    Fresh,
}

/// Gives the content `pieces` of the old `leaves` new leaves of these `sizes`, each on
/// `pages` pages, and frees the old ones that are not used again.
pub(super) fn relayout(
    volume: &mut Volume,
    pages: u64,
    leaves: &[Slice],
    pieces: Vec<Piece<'_>>,
    sizes: &[u64],
) -> Result<Vec<Slice>> {
    let total: u64 = pieces.iter().map(Piece::len).sum();
    ensure!(total == sizes.iter().sum::<u64>(), "sizes {sizes:?} for {total} bytes");
    let outputs = cut(pieces, sizes);
    let page = volume.page() as u64;
    // Pages that are written together.
    let unit = if is(Mutation::EsmDirty) { pages } else { volume.config().unit };
    let shadow = volume.config().shadow && !is(Mutation::LeafShadow);
    let plans: Vec<Plan> = outputs.iter().map(|o| plan(leaves, o, unit * page, shadow)).collect();
    let held = read_needed(volume, leaves, &outputs, &plans)?;
    let mut new = Vec::with_capacity(outputs.len());
    for ((output, plan), size) in outputs.iter().zip(&plans).zip(sizes) {
        let mut bytes = Vec::new();
        let (reference, first) = match plan {
            Plan::Keep(leaf) => (leaves[*leaf].reference, None),
            Plan::InPlace(leaf, again) => {
                bytes.extend_from_slice(held.bytes(*leaf, again.clone()));
                held.gather(&output[1..], &mut bytes);
                let reference = leaves[*leaf].reference;
                (reference, Some(reference + again.start / page))
            }
            Plan::Fresh => {
                held.gather(output, &mut bytes);
                let taken = volume.leaf().take(pages)?;
                (taken, Some(taken))
            }
        };
        if let Some(first) = first {
            bytes.resize(bytes.len().next_multiple_of((unit * page) as usize), 0);
            volume.write_leaf(first, bytes)?;
        }
        new.push(Slice::run(reference, *size));
    }
    for leaf in leaves {
        if !new.iter().any(|n| n.reference == leaf.reference) {
            volume.free_leaf(leaf.reference, pages);
        }
    }
    Ok(new)
}

/// Cuts the content into stretches of these sizes.
fn cut<'a>(pieces: Vec<Piece<'a>>, sizes: &[u64]) -> Vec<Vec<Piece<'a>>> {
    let mut rest = pieces.into_iter().filter(|p| p.len() > 0);
    let mut current: Option<Piece<'a>> = None;
    let mut outputs = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut output: Vec<Piece<'a>> = Vec::new();
        let mut lacks = *size;
        while lacks > 0 {
            let Some(piece) = current.take().or_else(|| rest.next()) else { break };
            let n = piece.len().min(lacks);
            let (now, later) = match piece {
                Piece::Old(leaf, r) => {
                    let middle = r.start + n;
                    (Piece::Old(leaf, r.start..middle), Piece::Old(leaf, middle..r.end))
                }
                Piece::New(bytes) => {
                    let (now, later) = bytes.split_at(n as usize);
                    (Piece::New(now), Piece::New(later))
                }
            };
            current = Some(later).filter(|p| p.len() > 0);
            push(&mut output, now);
            lacks -= n;
        }
        outputs.push(output);
    }
    outputs
}

/// Puts a piece behind the others, as one with the last if they are neighbours.
fn push<'a>(output: &mut Vec<Piece<'a>>, piece: Piece<'a>) {
    if let (Some(Piece::Old(last, a)), Piece::Old(leaf, b)) = (output.last_mut(), &piece)
        && *last == *leaf
        && a.end == b.start
    {
        a.end = b.end;
        return;
    }
    output.push(piece);
}

/// What becomes of `output`, if leaves are written by `unit` bytes.
fn plan(leaves: &[Slice], output: &[Piece<'_>], unit: u64, shadow: bool) -> Plan {
    match output {
        [Piece::Old(leaf, range)] if range.start == 0 => Plan::Keep(*leaf),
        [Piece::Old(leaf, range), _, ..] if range.start == 0 => {
            let appends = range.end == leaves[*leaf].len && !is(Mutation::AppendInPlace);
            match appends || !shadow {
                true => Plan::InPlace(*leaf, range.end - range.end % unit..range.end),
                false => Plan::Fresh,
            }
        }
        _ => Plan::Fresh,
    }
}

/// Bytes of old leaves in memory: of each one stretch.
struct Held(Vec<(Range<u64>, Vec<u8>)>);

impl Held {
    fn bytes(&self, leaf: usize, range: Range<u64>) -> &[u8] {
        if range.is_empty() {
            return &[];
        }
        let (has, bytes) = &self.0[leaf];
        &bytes[(range.start - has.start) as usize..(range.end - has.start) as usize]
    }

    fn gather(&self, pieces: &[Piece<'_>], out: &mut Vec<u8>) {
        for piece in pieces {
            match piece {
                Piece::Old(leaf, range) => out.extend_from_slice(self.bytes(*leaf, range.clone())),
                Piece::New(bytes) => out.extend_from_slice(bytes),
            }
        }
    }
}

fn read_needed(
    volume: &Volume,
    leaves: &[Slice],
    outputs: &[Vec<Piece<'_>>],
    plans: &[Plan],
) -> Result<Held> {
    let mut needed: Vec<Range<u64>> = vec![0..0; leaves.len()];
    let mut need = |leaf: usize, r: Range<u64>| {
        let all = &mut needed[leaf];
        if all.is_empty() {
            *all = r;
        } else if !r.is_empty() {
            *all = all.start.min(r.start)..all.end.max(r.end);
        }
    };
    for (output, plan) in outputs.iter().zip(plans) {
        let moved = match plan {
            Plan::Keep(_) => &[],
            Plan::InPlace(leaf, again) => {
                need(*leaf, again.clone());
                &output[1..]
            }
            Plan::Fresh => output.as_slice(),
        };
        for piece in moved {
            if let Piece::Old(leaf, range) = piece {
                need(*leaf, range.clone());
            }
        }
    }
    let mut held = Vec::with_capacity(leaves.len());
    for (leaf, range) in leaves.iter().zip(needed) {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        volume.read_leaf(leaf.reference, range.start, &mut bytes, Purpose::Update)?;
        held.push((range, bytes));
    }
    Ok(Held(held))
}
