//! Bodies of the fuzz targets of the bucket format: bytes in, no panic, no unbounded memory.
//!
//! Used by `fuzz/` (cargo-fuzz) and by `tests/hostile.rs`. Each makes something valid, changes it as
//! the input says, sets its checksum, and reads it. What is accepted is written again, and must decode
//! to the same. Returns whether it was accepted.

#[path = "../../../holdall/tests/fuzz_bodies/input.rs"]
mod input;
mod samples;

use holdall_bucket::format::{
    Blobs, Head, Intent, Record, RecordHeader, decode_list, decode_node, encode_list, encode_node,
    keys, seal,
};
use input::Input;

/// A body.
pub type Body = fn(&[u8]) -> bool;

/// All bodies by name.
pub const ALL: [(&str, Body); 6] = [
    ("bucket_record", bucket_record),
    ("bucket_node", bucket_node),
    ("bucket_list", bucket_list),
    ("bucket_intent", bucket_intent),
    ("bucket_head", bucket_head),
    ("bucket_key", bucket_key),
];

/// Numbers at which something may wrap, or that nothing may be allocated for.
const STRANGE: [u64; 8] = [
    0,
    1,
    127,
    u32::MAX as u64,
    u32::MAX as u64 + 1,
    i64::MAX as u64,
    i64::MAX as u64 + 1,
    u64::MAX,
];

/// Changes bytes from `from` on: a few in place, then moves what follows by something taken out, put
/// in or said twice.
fn change(input: &mut Input<'_>, bytes: &mut Vec<u8>, from: usize) {
    let changes = input.u8();
    input.edit(bytes, from, usize::from(changes & 3));
    for _ in 0..changes >> 2 & 3 {
        if bytes.len() <= from {
            return;
        }
        let at = from + usize::from(input.u16()) % (bytes.len() - from);
        let how = input.u8();
        let end = (at + usize::from(how >> 3)).min(bytes.len());
        match how & 3 {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..at, input.take(usize::from(how >> 3)).to_vec())),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            _ => {
                let mut number = Vec::new();
                holdall_core::bytes::push_varint(&mut number, STRANGE[usize::from(how >> 3 & 7)]);
                bytes.splice(at..=at, number);
            }
        }
    }
}

/// Whether the body begins with something valid, or with the rest of the input as it is.
fn is_made(input: &mut Input<'_>) -> bool {
    input.u8() & 7 != 0
}

/// Records: any change, and each padding, so that each class can be met.
pub fn bucket_record(data: &[u8]) -> bool {
    let mut input = Input(data);
    let mut stored = match is_made(&mut input) {
        true => samples::record(&mut input).encode().unwrap().to_vec(),
        false => [b"HRec\x01\x01\0\0\0\0\0\0", input.0].concat(),
    };
    change(&mut input, &mut stored, 4);
    let mut accepted = false;
    for _ in 0..8 {
        seal(&mut stored);
        let header = RecordHeader::decode(&stored);
        if let Ok(record) = Record::decode(&stored, "r") {
            assert_eq!(header, Some(RecordHeader::from(&record)));
            let again = Record::decode(&record.encode().unwrap(), "r").unwrap();
            assert_eq!(again, record);
            let _ = (record.names_blobs(), record.slices(), record.class());
            let mut next = record;
            next.changed_by(samples::id(9));
            accepted = true;
        }
        stored.push(0);
    }
    accepted
}

/// Nodes, into aliases of which some are known.
pub fn bucket_node(data: &[u8]) -> bool {
    let mut input = Input(data);
    let mut payload = match is_made(&mut input) {
        true => {
            let (node, blobs) = samples::node(&mut input);
            encode_node(&node, &blobs).unwrap()
        }
        false => input.0.to_vec(),
    };
    change(&mut input, &mut payload, 0);
    let mut blobs = Blobs::default();
    blobs.alias(samples::blob(input.u8()));
    let Ok(node) = decode_node(&payload, &mut blobs, "n") else { return false };
    let again = encode_node(&node, &blobs).unwrap();
    assert_eq!(decode_node(&again, &mut blobs, "n").unwrap(), node);
    true
}

/// Lists of retired blobs.
pub fn bucket_list(data: &[u8]) -> bool {
    let mut input = Input(data);
    let mut payload = match is_made(&mut input) {
        true => encode_list(&samples::retired(&mut input, 1)).unwrap(),
        false => input.0.to_vec(),
    };
    change(&mut input, &mut payload, 0);
    let Ok(list) = decode_list(&payload, "l") else { return false };
    assert_eq!(decode_list(&encode_list(&list).unwrap(), "l").unwrap(), list);
    true
}

/// Intents.
pub fn bucket_intent(data: &[u8]) -> bool {
    let mut input = Input(data);
    let mut stored = match is_made(&mut input) {
        true => samples::intent(&mut input).encode().unwrap().to_vec(),
        false => [b"HInt\x01\x01\x01\0\0\0\0\0", input.0].concat(),
    };
    change(&mut input, &mut stored, 4);
    seal(&mut stored);
    let Ok(intent) = Intent::decode(&stored, "i") else { return false };
    assert_eq!(Intent::decode(&intent.encode().unwrap(), "i").unwrap(), intent);
    true
}

/// Heads, which have no checksum.
pub fn bucket_head(data: &[u8]) -> bool {
    let mut input = Input(data);
    let mut stored = samples::head(&mut input).encode().unwrap().to_vec();
    change(&mut input, &mut stored, 0);
    let Ok(head) = Head::decode(&stored, "h") else { return false };
    assert_eq!(Head::decode(&head.encode().unwrap(), "h").unwrap(), head);
    true
}

/// Keys: what is parsed has this key and no other.
pub fn bucket_key(data: &[u8]) -> bool {
    let mut input = Input(data);
    let how = input.u8();
    let text = String::from_utf8_lossy(input.0).into_owned();
    let key = match how & 3 {
        0 => text,
        1 => format!("n/{text}!"),
        2 => format!("n/c/{text}/"),
        _ => keys::record(&format!("c{how}"), &text).unwrap_or_default(),
    };
    let _ = (keys::parse_collection(&key), keys::parse_intent(&key));
    assert!(keys::parse_blob(&key).is_none_or(|blob| keys::blob(blob) == key));
    let Some((collection, name)) = keys::parse_record(&key) else { return false };
    let prefix = keys::prefix(&collection, &name);
    assert!(prefix == key || format!("{prefix}!") == key, "{key:?}");
    true
}
