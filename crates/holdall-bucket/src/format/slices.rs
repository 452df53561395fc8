//! Slices and the top of a tree, as records and nodes write them.

use super::part::{Table, counted, take_row};
use super::{Blobs, EMBEDDED, alias_of, byte_of, damaged, or_short, reference};
use crate::format::BlobRef;
use holdall::Result;
use holdall_core::bytes::{Reader, push_varint};
use holdall_core::segment_tree::{MAX_OBJECT, Slice, SliceKind};

/// What a slice's first number says; higher ones are rows of the table of blobs.
const ZEROS: u64 = 0;
const IN_RECORD: u64 = 1;
const FIRST_ROW: u64 = 2;
const MIN_SLICE: usize = 2;

/// Writes slices: what of, from where, how long.
pub(super) fn write_slices(
    slices: &[Slice],
    blobs: &Blobs,
    table: &mut Table,
    out: &mut Vec<u8>,
) -> Result<()> {
    push_varint(out, slices.len() as u64);
    for slice in slices {
        let alias = alias_of(slice.reference);
        if slice.kind == SliceKind::Zero {
            push_varint(out, ZEROS);
        } else if alias == EMBEDDED {
            push_varint(out, IN_RECORD);
            push_varint(out, byte_of(slice.reference));
        } else {
            let blob = blobs.get(alias).ok_or_else(|| damaged("a tree", "names no blob"))?;
            push_varint(out, FIRST_ROW + table.row(blob));
            push_varint(out, byte_of(slice.reference));
        }
        push_varint(out, slice.len);
    }
    Ok(())
}

/// How many slices there may be, and how many bytes lie in the record; `None` in a node.
pub(super) type Limits = (usize, Option<u64>);

/// Reads slices.
pub(super) fn read_slices(
    r: &mut Reader<'_>,
    table: &[BlobRef],
    blobs: &mut Blobs,
    (most, embedded): Limits,
    place: &str,
) -> Result<Vec<Slice>> {
    let count = counted(r, MIN_SLICE, most, place)?;
    let mut slices = Vec::with_capacity(count);
    let mut all = 0_u64;
    for _ in 0..count {
        let slice = read_slice(r, table, blobs, embedded, place)?;
        all = all
            .checked_add(slice.len)
            .filter(|n| *n <= MAX_OBJECT)
            .ok_or_else(|| damaged(place, "its slices have more bytes than an object can have"))?;
        slices.push(slice);
    }
    Ok(slices)
}

fn read_slice(
    r: &mut Reader<'_>,
    table: &[BlobRef],
    blobs: &mut Blobs,
    embedded: Option<u64>,
    place: &str,
) -> Result<Slice> {
    let source = or_short(r.varint(), place)?;
    let (alias, whole) = match source {
        ZEROS => {
            let len = or_short(r.varint().filter(|n| (1..=MAX_OBJECT).contains(n)), place)?;
            return Ok(Slice::zeros(len));
        }
        IN_RECORD => (EMBEDDED, embedded.ok_or_else(|| damaged(place, "a node embeds nothing"))?),
        row => {
            let at = usize::try_from(row - FIRST_ROW).ok();
            let blob = at.and_then(|at| table.get(at).copied());
            let blob = blob.ok_or_else(|| damaged(place, "a slice names no row"))?;
            (known_as(blob, blobs, place)?, blob.len)
        }
    };
    let from = or_short(r.varint(), place)?;
    let len = or_short(r.varint(), place)?;
    if len == 0 || from.checked_add(len).is_none_or(|end| end > whole) {
        return Err(damaged(place, format!("a slice of {len} bytes at {from} of {whole}")));
    }
    Ok(Slice::run(reference(alias, from), len))
}

/// The next row of the table, with its alias.
pub(super) fn read_alias(
    r: &mut Reader<'_>,
    table: &[BlobRef],
    blobs: &mut Blobs,
    place: &str,
) -> Result<u64> {
    known_as(take_row(r, table, place)?, blobs, place)
}

/// The alias of a blob that other nodes may have named before: of the same length, then.
fn known_as(blob: BlobRef, blobs: &mut Blobs, place: &str) -> Result<u64> {
    let alias = blobs.alias(blob);
    match blobs.get(alias) {
        Some(known) if known != blob => {
            let detail =
                format!("names blob {} of {} bytes, others of {}", blob.id, blob.len, known.len);
            Err(damaged(place, detail))
        }
        _ => Ok(alias),
    }
}
