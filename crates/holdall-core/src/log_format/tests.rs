//! Records and blocks round trip; bytes that are none give errors.

use super::*;
use proptest::prelude::*;

fn header() -> BlockHeader {
    BlockHeader {
        store_id: [3; 16],
        epoch: 5,
        payload: 0,
        last: false,
        lsn: Lsn(40960),
        group: Lsn(40960),
        durable: Lsn(40960),
        checkpoint: 9,
        previous: 77,
    }
}

proptest! {
    #[test]
    fn replaying_a_difference_gives_the_new_page(
        edits in proptest::collection::vec((32usize..4096, any::<u8>(), 1usize..200), 0..20),
        new in any::<bool>(),
    ) {
        let mut old = vec![0u8; 4096];
        page::format(&mut old, page::PageKind::Heap, PageNo(5), 1);
        if !new {
            old[100..900].fill(3);
            page::seal(&mut old, Lsn(1));
        }
        let mut after = old.clone();
        for (at, byte, len) in edits {
            let end = (at + len).min(4096);
            after[at..end].fill(byte);
        }
        page::seal(&mut after, Lsn(99));
        let mut log = Vec::new();
        push_page(&mut log, PageNo(5), (!new).then_some(&old[..]), &after);
        let mut r = Reader::new(&log);
        let Some(Record::Page { ranges, checksum, .. }) = next_record(&mut r).unwrap() else {
            panic!("no page record")
        };
        // Any mix of old and new sectors (a torn page) must end as the new page.
        let mut replayed = if new { vec![0; 4096] } else { old };
        if !new {
            replayed[512..1024].copy_from_slice(&after[512..1024]);
        }
        ranges.apply(&mut replayed).unwrap();
        prop_assert_eq!(page::seal(&mut replayed, Lsn(99)), checksum);
        prop_assert_eq!(replayed, after);
    }

    #[test]
    fn composed_records_round_trip(
        kinds in proptest::collection::vec((0..3_u8, 1..5000_usize, any::<u32>()), 0..12),
        bytes in proptest::collection::vec(any::<u8>(), 5000),
    ) {
        let part = |(kind, len, from): &(u8, usize, u32)| match kind {
            0 => Part::Bytes(&bytes[..*len]),
            1 => Part::Copy { from: u64::from(*from), len: *len as u64 },
            _ => Part::Zeros(*len as u64),
        };
        let all: Vec<Part<'_>> = kinds.iter().map(part).collect();
        let mut log = Vec::new();
        push_composed(&mut log, PageNo(8), 0xabcd, &all);
        let mut r = Reader::new(&log);
        let Some(Record::Composed { page, checksum, parts }) = next_record(&mut r).unwrap()
        else {
            panic!("no composed record")
        };
        prop_assert_eq!((page, checksum, parts.iter().collect::<Result<Vec<_>>>().unwrap()), (PageNo(8), 0xabcd, all));
        prop_assert!(r.rest().is_empty());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Parts::new(&bytes).iter().count();
        let mut r = Reader::new(&bytes);
        let mut page = vec![0; 4096];
        while let Ok(Some(record)) = next_record(&mut r) {
            match record {
                Record::Page { ranges, .. } => drop(ranges.apply(&mut page)),
                Record::Composed { parts, .. } => drop(parts.iter().collect::<Result<Vec<_>>>()),
                _ => {}
            }
        }
    }
}

#[test]
fn composed_data_is_bounded() {
    let mut log = Vec::new();
    push_composed(&mut log, PageNo(8), 0, &[Part::Zeros(MAX_COMPOSED), Part::Zeros(1)]);
    let mut r = Reader::new(&log);
    let Some(Record::Composed { parts, .. }) = next_record(&mut r).unwrap() else {
        panic!("no composed record")
    };
    let err = parts.iter().collect::<Result<Vec<_>>>().unwrap_err();
    assert!(matches!(err, Error::Corrupt { .. }), "{err}");
}

/// Byte by byte: a range ends before [`JOIN`] equal bytes.
fn plain_ranges(old: &[u8], new: &[u8], from: usize) -> Vec<(usize, usize)> {
    let mut all: Vec<(usize, usize)> = Vec::new();
    for at in (from..new.len()).filter(|&i| old[i] != new[i]) {
        match all.last_mut() {
            Some((_, end)) if at - *end < JOIN => *end = at + 1,
            _ => all.push((at, at + 1)),
        }
    }
    all
}

proptest! {
    #[test]
    fn ranges_are_those_of_a_look_at_each_byte(
        edits in proptest::collection::vec((32usize..4096, 1usize..300, any::<u64>(), 0u8..9), 0..12),
    ) {
        let old = vec![0u8; 4096];
        let mut new = old.clone();
        for (at, len, seed, equal) in edits {
            // Random bytes, with stretches of up to eight that stay as they are.
            let mut state = seed | 1;
            for (i, byte) in new.iter_mut().enumerate().take((at + len).min(4096)).skip(at) {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                let skip = (state >> 40) % 64 < u64::from(equal) || i % 97 < usize::from(equal);
                *byte = if skip { 0 } else { (state >> 32) as u8 | 1 };
            }
        }
        let mut log = Vec::new();
        push_page(&mut log, PageNo(5), Some(&old), &new);
        let mut r = Reader::new(&log);
        let Some(Record::Page { ranges, .. }) = next_record(&mut r).unwrap() else {
            panic!("no page record")
        };
        let found: Vec<_> = ranges.iter().map(|(at, bytes)| (at, at + bytes.len())).collect();
        prop_assert_eq!(found, plain_ranges(&old, &new, 32));
    }
}

#[test]
fn groups_are_cut_into_checked_blocks() {
    let bytes: Vec<u8> = (0..PAYLOAD * 2 + 5).map(|i| i as u8).collect();
    let (blocks, sum) = build_group(&header(), &bytes);
    assert_eq!(blocks.len(), 3 * BLOCK);
    let mut used = vec![7; 3 * BLOCK];
    assert_eq!(build_group_into(&header(), &bytes, &mut used), sum);
    assert_eq!(used, blocks, "what the buffer held before does not show");
    let (mut back, mut again) = (Vec::new(), 0);
    for (i, block) in blocks.chunks(BLOCK).enumerate() {
        let h = BlockHeader::decode(block, &[3; 16], 5).unwrap();
        assert_eq!((h.last, h.lsn.0), (i == 2, 40960 + 4096 * i as u64));
        assert_eq!((h.group, h.previous), (Lsn(40960), 77));
        back.extend_from_slice(payload(block, &h));
        again = group_sum(again, block);
    }
    assert_eq!((back, again), (bytes, sum));
    let mut bad = blocks[..BLOCK].to_vec();
    for i in 0..BLOCK {
        bad[i] ^= 4;
        assert!(BlockHeader::decode(&bad, &[3; 16], 5).is_none(), "byte {i}");
        bad[i] ^= 4;
    }
    assert!(BlockHeader::decode(&bad, &[3; 16], 6).is_none());
}
