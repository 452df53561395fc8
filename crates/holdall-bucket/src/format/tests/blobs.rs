//! Blobs: stretches of all kinds of borders, headers, damage.

use super::super::blob::Header;
use super::super::{
    BlobId, BlobKind, BlobRef, HEADER, MAX_PAYLOAD, Stretch, UNIT, decode_stored, encode_blob,
    stored_len,
};
use super::{blob, detail, id, notices_damage};
use holdall_core::bytes::{put_u32, put_u64};
use holdall_core::checksum::crc;
use proptest::prelude::*;

fn payload(len: u64) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

const ID: BlobId = BlobId { operation: super::super::Id([5; 16]), number: 3 };

/// Reads `range` as a store does, and compares.
fn read_range(bytes: &[u8], stored: &[u8], range: std::ops::Range<u64>) {
    let blob = BlobRef { id: ID, len: bytes.len() as u64 };
    let stretch = Stretch::around(blob, range.clone());
    let (place, holds) = (stretch.stored(), stretch.payload());
    assert!(place.start <= place.end && place.end <= stored.len() as u64, "{range:?}: {place:?}");
    let got = stretch.verify(&stored[place.start as usize..place.end as usize]).unwrap();
    assert_eq!(got, bytes[holds.start as usize..holds.end as usize], "{range:?}");
    assert!(
        range.is_empty() || (holds.start <= range.start && range.end <= holds.end),
        "{range:?}"
    );
    // No more units than it takes.
    assert!(
        range.is_empty() || holds.end - holds.start <= range.end - range.start + 2 * (UNIT - 1)
    );
}

#[test]
fn ranges_at_all_borders() {
    let edges = [0, 1, UNIT - 1, UNIT, UNIT + 1, 2 * UNIT - 1, 2 * UNIT, 2 * UNIT + 1, 3 * UNIT];
    for len in edges.into_iter().filter(|len| *len > 0) {
        let bytes = payload(len);
        let stored = encode_blob(ID, BlobKind::Segment, &bytes);
        assert_eq!(stored.len() as u64, stored_len(len));
        assert_eq!(decode_stored(ID, BlobKind::Segment, &stored).unwrap(), bytes);
        let points =
            || edges.into_iter().chain([len / 2, len - 1, len]).filter(move |at| *at <= len);
        for start in points() {
            for end in points().filter(|end| *end >= start) {
                read_range(&bytes, &stored, start..end);
            }
        }
    }
}

#[test]
fn a_byte_lies_where_the_formula_says() {
    let bytes = payload(2 * UNIT + 100);
    let stored = encode_blob(ID, BlobKind::Segment, &bytes);
    for x in [0, 1, UNIT - 1, UNIT, 2 * UNIT - 1, 2 * UNIT, 2 * UNIT + 99] {
        assert_eq!(stored[(HEADER + x + 4 * (x / UNIT)) as usize], bytes[x as usize], "byte {x}");
    }
}

#[test]
fn ranges_that_lie_outside_do_no_harm() {
    let blob = blob(1, 1, 20_000);
    for range in [20_000..20_000, 20_000..50_000, 40_000..50_000, 0..u64::MAX, u64::MAX..u64::MAX] {
        let stretch = Stretch::around(blob, range);
        assert!(stretch.stored().start <= stretch.stored().end);
        assert!(stretch.stored().end <= stored_len(20_000));
        assert!(
            stretch.payload().start <= stretch.payload().end && stretch.payload().end <= 20_000
        );
        let _ = stretch.verify(&[0; 100]);
    }
}

#[test]
fn damage_of_any_byte_is_noticed() {
    let stored = encode_blob(ID, BlobKind::List, &payload(300));
    notices_damage(&stored, |stored| decode_stored(ID, BlobKind::List, stored));
    let stored = encode_blob(ID, BlobKind::Segment, &payload(UNIT + 9));
    for at in (0..stored.len()).step_by(97).chain(stored.len() - 30..stored.len()) {
        let mut flipped = stored.to_vec();
        flipped[at] ^= 0x10;
        assert!(decode_stored(ID, BlobKind::Segment, &flipped).is_err(), "byte {at}");
    }
}

#[test]
fn a_unit_in_anothers_place_is_noticed() {
    // Two units of the same bytes, whose checksums differ all the same.
    let bytes = vec![7; 2 * UNIT as usize];
    let stored = encode_blob(ID, BlobKind::Segment, &bytes);
    let unit = (UNIT + 4) as usize;
    let mut swapped = stored.to_vec();
    swapped.copy_within(HEADER as usize + unit.., HEADER as usize);
    assert!(detail(decode_stored(ID, BlobKind::Segment, &swapped)).contains("unit 0"));
    // The units of another blob.
    let other = BlobId { number: 4, ..ID };
    let foreign = encode_blob(other, BlobKind::Segment, &bytes);
    let mut mixed = stored.to_vec();
    mixed[HEADER as usize..].copy_from_slice(&foreign[HEADER as usize..]);
    assert!(decode_stored(ID, BlobKind::Segment, &mixed).is_err());
    assert!(detail(decode_stored(other, BlobKind::Segment, &stored)).contains("another blob"));
    // A length that is not the blob's.
    let stretch = Stretch::whole(BlobRef { id: ID, len: 2 * UNIT - 1 });
    let range = stretch.stored();
    assert!(stretch.verify(&stored[range.start as usize..range.end as usize]).is_err());
}

#[test]
fn headers_that_cannot_be() {
    let stored = encode_blob(ID, BlobKind::Node, &payload(50));
    let changed = |edit: &dyn Fn(&mut [u8])| {
        let mut stored = stored.to_vec();
        edit(&mut stored);
        let sum = crc(&stored[..36]);
        put_u32(&mut stored, 36, sum);
        Header::read(ID, &stored)
    };
    assert_eq!(changed(&|_| ()).unwrap().blob.len, 50);
    for len in [0, 49, 51, MAX_PAYLOAD + 1, u64::MAX] {
        assert!(detail(changed(&|stored| put_u64(stored, 28, len))).contains("length"), "{len}");
    }
    for at in [4, 6, 7] {
        let read = changed(&|stored| stored[at] ^= 2);
        assert!(matches!(read, Err(holdall::Error::Unsupported { .. })), "byte {at}: {read:?}");
    }
    assert!(changed(&|stored| stored[0] = b'X').is_err());
    assert!(changed(&|stored| stored[24] ^= 1).is_err());
    assert!(changed(&|stored| stored[8] ^= 1).is_err());
    // A kind that is not the one asked for.
    let kinds = [BlobKind::Segment, BlobKind::Node, BlobKind::List];
    for (at, kind) in kinds.into_iter().enumerate() {
        let stored = encode_blob(ID, kind, &payload(50));
        for (other, read) in kinds.into_iter().enumerate() {
            assert_eq!(decode_stored(ID, read, &stored).is_ok(), at == other);
        }
    }
    let mut unknown = stored.to_vec();
    unknown[5] = 9;
    let sum = crc(&unknown[..36]);
    put_u32(&mut unknown, 36, sum);
    assert!(detail(decode_stored(ID, BlobKind::Node, &unknown)).contains("kind 9"));
}

#[test]
fn the_longest_blob_comes_back_and_a_longer_one_does_not() {
    let bytes = vec![1; MAX_PAYLOAD as usize];
    let stored = encode_blob(ID, BlobKind::Segment, &bytes);
    assert_eq!(decode_stored(ID, BlobKind::Segment, &stored).unwrap(), bytes);
    let stored = encode_blob(ID, BlobKind::Segment, &vec![1; MAX_PAYLOAD as usize + 1]);
    assert!(decode_stored(ID, BlobKind::Segment, &stored).is_err());
    let nothing = encode_blob(BlobId { operation: id(1), number: 1 }, BlobKind::Segment, &[]);
    assert!(
        decode_stored(BlobId { operation: id(1), number: 1 }, BlobKind::Segment, &nothing).is_err()
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_range_of_any_blob(len in 1..5 * UNIT, cuts in any::<(u16, u16)>()) {
        let bytes = payload(len);
        let stored = encode_blob(ID, BlobKind::Segment, &bytes);
        let at = |cut: u16| len * u64::from(cut) / u64::from(u16::MAX);
        let (a, b) = (at(cuts.0), at(cuts.1));
        read_range(&bytes, &stored, a.min(b)..a.max(b));
    }
}

#[test]
fn a_stretch_that_came_in_parts_is_read_as_one() {
    let bytes = payload(3 * UNIT + 9);
    let stored = encode_blob(ID, BlobKind::Segment, &bytes);
    let blob = BlobRef { id: ID, len: bytes.len() as u64 };
    let end = bytes.len() as u64;
    for range in [0..end, 0..1, UNIT - 1..UNIT + 1, UNIT..2 * UNIT, 3 * UNIT + 1..end] {
        let stretch = Stretch::around(blob, range.clone());
        let place = stretch.stored();
        let came = &stored[place.start as usize..place.end as usize];
        let want = &bytes[range.start as usize..range.end as usize];
        for size in [1, 3, 4, 1000, UNIT as usize, UNIT as usize + 4, 40_000, 100_000] {
            let mut parts: Vec<Vec<u8>> = came.chunks(size).map(<[u8]>::to_vec).collect();
            parts.insert(parts.len().div_ceil(2), Vec::new());
            let mut out = vec![9];
            stretch.append(&parts, range.clone(), &mut out).unwrap();
            assert_eq!(out[1..], *want, "{range:?} in parts of {size}");
            parts[0][0] ^= 1;
            assert!(stretch.append(&parts, range.clone(), &mut out).is_err(), "{range:?}");
            parts[0].remove(0);
            assert!(stretch.append(&parts, range.clone(), &mut out).is_err(), "{range:?}");
        }
    }
}
