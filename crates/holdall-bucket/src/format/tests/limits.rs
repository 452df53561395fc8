//! What is refused although its checksum is right: records, nodes and lists made by hand.

use super::super::header::MAX_ATTRIBUTES;
use super::super::record::{MAX_EMBEDDED, MAX_RECORD};
use super::super::{
    Blobs, MAX_FANOUT, MAX_PAYLOAD, MAX_RECENT, MAX_RETIRED, MAX_SLICES, Record, decode_list,
    decode_node, seal,
};
use super::{blob, detail, id, records, retired};
use holdall::{Attributes, Error, Result};
use holdall_core::bytes::push_varint;
use holdall_core::segment_tree::{MAX_HEIGHT, MAX_OBJECT, Slice, Top, Tree};

/// A number of a body made by hand, or bytes as they are.
#[derive(Clone, Copy)]
enum Part<'a> {
    N(u64),
    Raw(&'a [u8]),
}
use Part::{N, Raw};

fn bytes(parts: &[Part<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            N(n) => push_varint(&mut out, *n),
            Raw(raw) => out.extend_from_slice(raw),
        }
    }
    out
}

const OP: &[u8] = &[7; 16];
/// A table of one blob of 100 bytes.
const TABLE: [Part<'static>; 6] = [N(1), Raw(OP), N(1), N(0), N(5), N(100)];

/// A record with this kind, flags, size and body; the body begins with the recent operations.
fn made(head: [u8; 4], change: u64, size: u64, body: &[u8], class: usize) -> Vec<u8> {
    let mut out = b"HRec".to_vec();
    out.extend(head);
    out.extend([0; 4 + 48]);
    [change, 0, 0, size].iter().for_each(|n| out.extend(n.to_le_bytes()));
    out.extend(body);
    while out.len() % 8 != class {
        out.push(0);
    }
    seal(&mut out);
    out
}

/// A plain record that has only a table, a tree and what follows.
fn record(class: usize, size: u64, parts: &[Part<'_>]) -> Result<Record> {
    // No recent operations, no collection, no name, no attributes; room for the header's checksum.
    let mut body = vec![0; 8];
    body.extend(bytes(parts));
    Record::decode(&made([1, 1, 0, 0], 0, size, &body, class), "r")
}

fn with_table(class: usize, size: u64, parts: &[Part<'_>]) -> Result<Record> {
    record(class, size, &[&TABLE[..], parts].concat())
}

#[test]
fn slices_lie_in_what_they_name() {
    // One slice of row 0: from, length; no retired ones, nothing embedded.
    let slice = |from, len| with_table(1, len, &[N(0), N(1), N(2), N(from), N(len), N(0), N(0)]);
    assert!(slice(0, 100).is_ok() && slice(99, 1).is_ok());
    for (from, len) in [(0, 101), (1, 100), (100, 1), (0, 0), (u64::MAX, 1), (1, u64::MAX)] {
        assert!(slice(from, len).is_err(), "{len} at {from}");
    }
    let embedded = |from, len| {
        record(0, len, &[N(0), N(0), N(0), N(1), N(1), N(from), N(len), N(0), N(3), Raw(b"abc")])
    };
    assert!(embedded(0, 3).is_ok() && embedded(2, 1).is_ok());
    for (from, len) in [(0, 4), (3, 1), (1, 3), (0, 0), (u64::MAX, 2)] {
        assert!(embedded(from, len).is_err(), "{len} at {from}");
    }
    // A row that the table has not; zeros of no and of too many bytes.
    assert!(with_table(1, 1, &[N(0), N(1), N(3), N(0), N(1), N(0), N(0)]).is_err());
    let zeros = |len| record(0, len, &[N(0), N(0), N(0), N(1), N(0), N(len), N(0), N(0)]);
    assert!(zeros(1).is_ok() && zeros(MAX_OBJECT).is_ok());
    assert!(zeros(0).is_err() && zeros(MAX_OBJECT + 1).is_err());
}

#[test]
fn sums_add_up() {
    let zeros =
        |size, a, b| record(0, size, &[N(0), N(0), N(0), N(2), N(0), N(a), N(0), N(b), N(0), N(0)]);
    assert!(zeros(7, 3, 4).is_ok());
    assert!(detail(zeros(8, 3, 4)).contains("8 bytes, of which slices have 7"));
    assert!(zeros(6, 3, 4).is_err());
    // More than an object can have, together; the sum would wrap.
    assert!(detail(zeros(0, MAX_OBJECT, 1)).contains("more bytes than an object"));
    let root = |size, height| with_table(1, size, &[N(1), Raw(&[height]), N(0), N(0), N(0)]);
    assert!(root(1, 0).is_ok() && root(MAX_OBJECT, MAX_HEIGHT).is_ok());
    assert!(
        root(0, 0).is_err() && root(MAX_OBJECT + 1, 0).is_err() && root(1, MAX_HEIGHT + 1).is_err()
    );
    // A form of tree that is none.
    assert!(detail(with_table(1, 1, &[N(2), N(0), N(0), N(0)])).contains("form 2"));
    // A root in no row.
    assert!(with_table(1, 1, &[N(1), N(0), N(1), N(0), N(0)]).is_err());
}

#[test]
fn tables_that_cannot_be() {
    let rows = |rows: &[Part<'_>]| record(0, 0, &[&[N(1), Raw(OP)], rows, &[N(0); 4]].concat());
    let row = |number, len| rows(&[N(1), N(0), N(number), N(len)]);
    assert!(row(5, 1).is_ok() && row(u64::from(u32::MAX), MAX_PAYLOAD).is_ok());
    assert!(row(1 << 32, 1).is_err() && row(5, 0).is_err());
    assert!(detail(row(5, MAX_PAYLOAD + 1)).contains("a blob of 8388609 bytes"));
    assert!(rows(&[N(1), N(1), N(5), N(1)]).is_err());
    let twice = rows(&[N(2), N(0), N(5), N(1), N(0), N(5), N(2)]);
    assert!(detail(twice).contains("two rows"));
    // The same operation in two rows, and so the same blob.
    let both = [N(2), Raw(OP), Raw(OP), N(2), N(0), N(5), N(1), N(1), N(5), N(2)];
    assert!(detail(record(0, 0, &[&both[..], &[N(0); 4]].concat())).contains("two rows"));
    // Counts of what cannot follow.
    for count in [2, 1 << 20, u64::MAX] {
        assert!(rows(&[N(count), N(0), N(5), N(1)]).is_err(), "{count}");
        assert!(record(0, 0, &[N(count), Raw(OP), N(0), N(0), N(0), N(0)]).is_err(), "{count}");
    }
}

#[test]
fn named_parts_that_cannot_be() {
    let entry =
        |kind, level| with_table(2, 0, &[N(0), N(0), N(1), N(0), Raw(&[kind, level]), N(9), N(0)]);
    for (kind, level) in [(1, 0), (2, 0), (3, 0), (3, MAX_HEIGHT), (4, 0)] {
        assert!(entry(kind, level).is_ok(), "{kind}, {level}");
    }
    for (kind, level) in [(0, 0), (1, 1), (2, 1), (3, MAX_HEIGHT + 1), (4, 1), (5, 0), (255, 255)] {
        assert!(detail(entry(kind, level)).contains("as kind"), "{kind}, {level}");
    }
    assert!(with_table(2, 0, &[N(0), N(0), N(1), N(1), Raw(&[1, 0]), N(9), N(0)]).is_err());
}

#[test]
fn counts_have_limits() {
    let slices = |count: usize| {
        let mut parts = vec![N(0), N(0), N(0), N(count as u64)];
        (0..count).for_each(|_| parts.extend([N(0), N(1)]));
        parts.extend([N(0), N(0)]);
        record(0, count as u64, &parts)
    };
    assert!(slices(MAX_SLICES).is_ok() && slices(MAX_SLICES + 1).is_err());
    let entries = |count: usize| {
        let mut parts = vec![N(0), N(0), N(count as u64)];
        (0..count).for_each(|_| parts.extend([N(0), N(1), N(0), N(9)]));
        parts.push(N(0));
        with_table(2, 0, &parts)
    };
    assert!(entries(MAX_RETIRED).is_ok() && entries(MAX_RETIRED + 1).is_err());
    let recent = |count: usize| {
        let mut body = vec![count as u8];
        body.extend(vec![1; 8 * count]);
        body.extend([0; 12]);
        Record::decode(&made([1, 1, 0, 0], 0, 0, &body, 0), "r")
    };
    assert!(recent(MAX_RECENT).is_ok() && recent(MAX_RECENT + 1).is_err() && recent(255).is_err());
    let change = |change| Record::decode(&made([1, 1, 0, 0], change, 0, &[0; 13], 0), "r");
    assert!(change(1 << 62).is_ok() && change((1 << 62) + 1).is_err() && change(u64::MAX).is_err());
    let embedded = |len: u64| {
        let all = vec![1; len as usize];
        record(0, 0, &[N(0), N(0), N(0), N(0), N(0), N(len), Raw(&all)])
    };
    assert!(embedded(MAX_EMBEDDED).is_ok() && embedded(MAX_EMBEDDED + 1).is_err());
    assert!(embedded(MAX_RECORD).is_err());
}

#[test]
fn attributes_and_texts_have_limits() {
    let record =
        |body: &[Part<'_>]| Record::decode(&made([1, 1, 0, 0], 0, 0, &bytes(body), 0), "r");
    let end = [N(0); 10];
    let attributes = |parts: &[Part<'_>]| record(&[&[N(0), N(0), N(0)], parts, &end].concat());
    let long = vec![b'v'; MAX_ATTRIBUTES];
    let most = MAX_ATTRIBUTES as u64;
    assert!(attributes(&[N(1), N(1), Raw(b"k"), N(most - 1), Raw(&long[1..])]).is_ok());
    assert!(attributes(&[N(1), N(1), Raw(b"k"), N(most), Raw(&long)]).is_err());
    assert!(attributes(&[N(2), N(1), Raw(b"k"), N(0), N(1), Raw(b"k"), N(0)]).is_err());
    assert!(attributes(&[N(u64::MAX)]).is_err());
    let texts = |text: &[u8]| {
        record(&[&[N(0), N(text.len() as u64), Raw(text), N(0), N(0)], &end[..]].concat())
    };
    assert!(texts("é".as_bytes()).is_ok());
    assert!(detail(texts(b"\xc3")).contains("UTF-8"));
    assert!(record(&[N(0), N(u64::MAX)]).is_err());
}

#[test]
fn heads_of_records_that_are_not_known() {
    let read =
        |head| Record::decode(&made(head, 0, 0, &[0; 13], if head[1] == 2 { 4 } else { 0 }), "r");
    assert!(read([1, 1, 0, 0]).is_ok() && read([1, 2, 0, 0]).is_ok());
    for head in [[2, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 3, 0, 0], [1, 1, 2, 0], [1, 1, 0, 1]]
    {
        assert!(matches!(read(head), Err(Error::Unsupported { .. })), "{head:?}");
    }
    let mut other = made([1, 1, 0, 0], 0, 0, &[0; 13], 0);
    other[0] = b'X';
    seal(&mut other);
    assert!(detail(Record::decode(&other, "r")).contains("no record"));
}

#[test]
fn lengths_are_those_of_the_class_and_padding_is_zero() {
    for (name, record) in records::classes() {
        let stored = record.encode().unwrap();
        for more in 1..17 {
            let mut longer = stored.to_vec();
            longer.resize(stored.len() + more, 0);
            seal(&mut longer);
            assert!(Record::decode(&longer, "r").is_err(), "{name}: {more} bytes more");
        }
        let mut flagged = stored.to_vec();
        flagged[6] ^= 1;
        seal(&mut flagged);
        let gone = record.gone;
        assert_eq!(Record::decode(&flagged, "r").is_ok(), gone, "{name}: the class says it too");
    }
    // Eight embedded bytes more or less leave room for each padding.
    for len in 0..8 {
        let tree = Tree { size: 1, top: Top::Inline(vec![Slice::zeros(1)]) };
        let name = "n".repeat(len);
        let stored = Record { tree, name, ..Record::default() }.encode().unwrap();
        let mut changed = stored.to_vec();
        *changed.last_mut().unwrap() = 1;
        seal(&mut changed);
        assert!(Record::decode(&changed, "r").is_err(), "{len}");
    }
}

#[test]
fn what_is_gone_has_nothing() {
    let gone = |body: &[Part<'_>], size| {
        Record::decode(&made([1, 2, 0, 0], 0, size, &bytes(body), 4), "r").map(drop)
    };
    let plain = [N(0); 14];
    assert!(gone(&plain, 0).is_ok());
    let zeros = [&plain[..11], &[N(1), N(0), N(5), N(0), N(0)]].concat();
    assert!(detail(gone(&zeros, 5)).contains("gone"));
    let attribute = [&[N(0), N(0), N(0), N(1), N(1), Raw(b"k"), N(0)][..], &plain[4..]].concat();
    assert!(detail(gone(&attribute, 0)).contains("gone"));
    let embedded = [&plain[..13], &[N(1), Raw(b"x")]].concat();
    assert!(detail(gone(&embedded, 0)).contains("gone"));
}

#[test]
fn nodes_that_cannot_be() {
    let node = |parts: &[Part<'_>]| decode_node(&bytes(parts), &mut Blobs::default(), "n");
    let leaf = |slices: &[Part<'_>]| node(&[&[N(0)], &TABLE[..], slices].concat());
    assert!(leaf(&[N(1), N(2), N(0), N(100)]).is_ok());
    assert!(leaf(&[N(1), N(2), N(0), N(101)]).is_err());
    assert!(detail(leaf(&[N(1), N(1), N(0), N(1)])).contains("embeds nothing"));
    assert!(leaf(&[N(0)]).is_err() && leaf(&[N(1), N(2), N(0), N(100), N(0)]).is_err());
    let inner = |level, children: &[Part<'_>]| node(&[&[N(level)], &TABLE[..], children].concat());
    assert!(
        inner(1, &[N(1), N(0), N(9)]).is_ok()
            && inner(MAX_HEIGHT.into(), &[N(1), N(0), N(9)]).is_ok()
    );
    assert!(inner(u64::from(MAX_HEIGHT) + 1, &[N(1), N(0), N(9)]).is_err());
    assert!(inner(1, &[N(1), N(1), N(9)]).is_err() && inner(1, &[N(0)]).is_err());
    assert!(
        inner(1, &[N(1), N(0), N(0)]).is_err()
            && inner(1, &[N(1), N(0), N(MAX_OBJECT + 1)]).is_err()
    );
    // Bytes below that no object can have.
    assert!(inner(1, &[N(2), N(0), N(MAX_OBJECT), N(0), N(MAX_OBJECT)]).is_err());
    let many = |count: usize| {
        let mut parts = vec![N(count as u64)];
        (0..count).for_each(|_| parts.extend([N(0), N(1)]));
        (leaf(&parts), inner(1, &parts))
    };
    let (a, b) = many(MAX_FANOUT);
    assert!(a.is_ok() && b.is_ok());
    let (a, b) = many(MAX_FANOUT + 1);
    assert!(a.is_err() && b.is_err());
}

#[test]
fn lists_that_cannot_be() {
    let list = |parts: &[Part<'_>]| decode_list(&bytes(&[&TABLE[..], parts].concat()), "l");
    assert!(list(&[N(1), N(0), N(1), N(0), N(9)]).is_ok());
    assert!(list(&[N(0)]).is_err() && list(&[N(1), N(0), N(1), N(0), N(9), N(0)]).is_err());
    assert!(
        list(&[N(1), N(0), N(5), N(0), N(9)]).is_err()
            && list(&[N(2), N(0), N(1), N(0), N(9)]).is_err()
    );
    let many = |count: usize| {
        let mut parts = vec![N(count as u64)];
        (0..count).for_each(|_| parts.extend([N(0), N(1), N(0), N(9)]));
        list(&parts)
    };
    assert!(many(64 * 1024).is_ok() && many(64 * 1024 + 1).is_err());
}

#[test]
fn what_nobody_would_read_is_not_written() {
    let (_, large) = records::classes().swap_remove(1);
    let refused = |record: Record| matches!(record.encode(), Err(Error::TooLarge(_)));
    assert!(!refused(large.clone()));
    let slices = Top::Inline(vec![Slice::zeros(1); MAX_SLICES + 1]);
    let tree = Tree { size: MAX_SLICES as u64 + 1, top: slices };
    assert!(refused(Record { tree, ..large.clone() }));
    let many = vec![retired(blob(1, 1, 1), 0); MAX_RETIRED + 1];
    assert!(refused(Record { retired: many, ..large.clone() }));
    assert!(refused(Record { recent: vec![0; MAX_RECENT + 1], ..large.clone() }));
    let long = Attributes::from([("k".into(), vec![0; MAX_ATTRIBUTES])]);
    assert!(refused(Record { attributes: long, ..large.clone() }));
    assert!(refused(Record {
        embedded: vec![0; MAX_EMBEDDED as usize + 1].into(),
        ..large.clone()
    }));
    assert!(refused(Record { gone: true, ..large.clone() }));
    assert!(refused(Record { name: "n".repeat(MAX_RECORD as usize), ..large.clone() }));
    // A tree that names what its blobs do not have.
    let strange = Record { blobs: Blobs::default(), nonce: id(1), ..large };
    assert!(matches!(strange.encode(), Err(Error::Corrupt { .. })));
}
