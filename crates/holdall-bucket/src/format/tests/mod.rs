//! The format's tests: one file for each kind of object, one for keys, one for golden bytes.

mod blobs;
mod golden;
mod heads;
mod intents;
mod keys;
mod limits;
mod nodes;
mod records;

use super::{BlobId, BlobRef, Blobs, EMBEDDED, Id, MAX_PAYLOAD, Named, Part, Retired, reference};
use holdall_core::segment_tree::{MAX_HEIGHT, MAX_OBJECT, Slice};
use proptest::prelude::*;

/// An id that tests tell apart.
fn id(n: u8) -> Id {
    Id([n; Id::BYTES])
}

/// A blob of this many bytes.
fn blob(operation: u8, number: u32, len: u64) -> BlobRef {
    BlobRef { id: BlobId { operation: id(operation), number }, len }
}

/// A segment that was retired.
fn retired(blob: BlobRef, seconds: u64) -> Retired {
    Retired { named: Named { blob, part: Part::Segment }, seconds }
}

fn any_id() -> impl Strategy<Value = Id> {
    any::<[u8; Id::BYTES]>().prop_map(Id)
}

/// A blob of few operations, so that tables have rows in common. A number has always the same length.
fn any_blob() -> impl Strategy<Value = BlobRef> {
    (0..4_u8, prop_oneof![0..6_u32, any::<u32>()]).prop_map(|(operation, number)| {
        let len = 1 + (u64::from(number) * 104_729 + u64::from(operation)) % MAX_PAYLOAD;
        blob(operation, number, len)
    })
}

fn any_part() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Part::Segment),
        Just(Part::Node),
        (0..=MAX_HEIGHT).prop_map(Part::Tree),
        Just(Part::List),
    ]
}

fn any_named() -> impl Strategy<Value = Named> {
    (any_blob(), any_part()).prop_map(|(blob, part)| Named { blob, part })
}

fn any_retired() -> impl Strategy<Value = Retired> {
    (any_named(), any::<u64>()).prop_map(|(named, seconds)| Retired { named, seconds })
}

/// A slice before its blob has an alias.
#[derive(Debug, Clone)]
enum Raw {
    Zeros(u64),
    /// A share of what is embedded, in 1/256: from, length.
    Embedded(u8, u8),
    /// Of a blob, likewise.
    Blob(BlobRef, u8, u8),
}

fn any_raw() -> impl Strategy<Value = Raw> {
    prop_oneof![
        1 => (1..MAX_OBJECT >> 16).prop_map(Raw::Zeros),
        2 => any::<(u8, u8)>().prop_map(|(from, len)| Raw::Embedded(from, len)),
        4 => (any_blob(), any::<u8>(), any::<u8>()).prop_map(|(blob, from, len)| Raw::Blob(blob, from, len)),
    ]
}

/// A part of `whole` bytes: from where, how many, at least one.
fn part_of(whole: u64, from: u8, len: u8) -> (u64, u64) {
    let from = (whole * u64::from(from) / 256).min(whole - 1);
    (from, ((whole - from) * u64::from(len) / 255).max(1))
}

/// The slices, and what their aliases mean.
fn slices_of(raw: &[Raw], embedded: u64) -> (Vec<Slice>, Blobs) {
    let mut blobs = Blobs::default();
    let slices = raw.iter().filter_map(|raw| match raw {
        Raw::Zeros(len) => Some(Slice::zeros(*len)),
        Raw::Embedded(..) if embedded == 0 => None,
        Raw::Embedded(from, len) => {
            let (from, len) = part_of(embedded, *from, *len);
            Some(Slice::run(reference(EMBEDDED, from), len))
        }
        Raw::Blob(blob, from, len) => {
            let (from, len) = part_of(blob.len, *from, *len);
            Some(Slice::run(reference(blobs.alias(*blob), from), len))
        }
    });
    (slices.collect(), blobs)
}

/// Whether every cut and every flipped bit of `stored` is refused by `read`.
fn notices_damage<T>(stored: &[u8], read: impl Fn(&[u8]) -> holdall::Result<T>) {
    assert!(read(stored).is_ok());
    for end in 0..stored.len() {
        assert!(read(&stored[..end]).is_err(), "cut to {end} of {} bytes", stored.len());
    }
    let mut longer = stored.to_vec();
    longer.push(0);
    assert!(read(&longer).is_err(), "a byte more");
    let mut flipped = stored.to_vec();
    for bit in 0..stored.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&flipped).is_err(), "bit {bit}");
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
}

/// The detail of the error that `read` gives for damage.
fn detail<T: std::fmt::Debug>(read: holdall::Result<T>) -> String {
    match read {
        Err(holdall::Error::Corrupt { detail, .. }) => detail,
        other => panic!("not told as damage: {other:?}"),
    }
}
