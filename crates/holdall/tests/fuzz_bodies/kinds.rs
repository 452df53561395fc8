//! A store with pages of every kind, of which pages of one kind were changed by somebody who can
//! compute checksums; every sort of call is tried on it.

use super::Input;
use holdall::{
    Attributes, Error, Hints, ListOptions, ObjectsMut, Oid, Options, PageNo, PutOptions, Store,
    Target,
};
use holdall_core::page::{self, PageKind};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES};
use holdall_io::{MemoryStorage, Storage};
use std::io::Write;
use std::sync::{Arc, OnceLock};

const PAGE: usize = 4096;
/// Objects that claim more are not read as a whole.
const MOST_READ: u64 = 4 << 20;
const COLLECTIONS: [&str; 3] = ["default", "many", "new"];
const NAMES: [&str; 6] = ["small", "tree", "shared", "copy", "none", "folder/000123"];

fn options() -> Options {
    Options::default()
        .background(false)
        .page_size(PAGE)
        .tuning(|t| t.space_pages(256))
        .cache_bytes(1 << 20)
        .tuning(|t| t.log_bytes(1 << 20).first_log_bytes(1 << 20))
        .max_bytes(16 << 20)
        .tuning(|t| t.store_id([5; 16]))
}

/// The store and its pages by kind; superblocks are not among them.
struct Base {
    volume: Vec<u8>,
    kinds: Vec<(PageKind, Vec<usize>)>,
}

fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| {
        let storage = Arc::new(MemoryStorage::new());
        let store = options().create_on(storage.clone()).unwrap();
        let part: Vec<u8> = (0..40 * PAGE).map(|i| (i / 5) as u8).collect();
        let attributes = Attributes::from([("type".into(), b"text/plain".to_vec())]);
        store
            .write(|tx| {
                tx.put_with("small", b"small", &PutOptions::with_attributes(attributes.clone()))?;
                tx.put("shared", &part)?;
                tx.put("tree", b"")?;
                // Few segments fit the record: this one has two levels of nodes.
                for at in 0..300 {
                    tx.copy_range("shared", 0..part.len() as u64, "tree", at * part.len() as u64)?;
                }
                tx.copy("shared", "copy")?;
                tx.create(&part[..2 * PAGE])?;
                let mut tx = tx.collection("many")?;
                (0..700).try_for_each(|i| tx.put(format!("folder/{i:06}"), &part[..i]).map(drop))
            })
            .unwrap();
        store.close().unwrap();
        // Some pages lie elsewhere than in their places.
        let few = options().tuning(|t| t.transaction_bytes(2 * PAGE));
        let store = few.open_on(storage.clone()).unwrap();
        let before = store.read().unwrap();
        let many = (0..700).step_by(9);
        store
            .write(|tx| {
                let mut tx = tx.collection("many")?;
                many.clone()
                    .try_for_each(|i| tx.put(format!("folder/{i:06}"), &part[..i]).map(drop))
            })
            .unwrap();
        store.close().unwrap();
        drop(before);
        let volume = storage.snapshot().0;
        let kind_of = |no: usize| page::check(&volume[no * PAGE..][..PAGE], PageNo(no as u64)).ok();
        let of = |kind| (1..volume.len() / PAGE).filter(|no| kind_of(*no) == Some(kind)).collect();
        let kinds: Vec<(_, Vec<usize>)> =
            PageKind::ALL.into_iter().map(|kind| (kind, of(kind))).collect();
        assert!(
            kinds.len() == PageKind::ALL.len() && kinds.iter().all(|k| !k.1.is_empty()),
            "{kinds:?}"
        );
        Base { volume, kinds }
    })
}

/// Writes a number that is likely to matter over a field of 1 to 8 bytes.
fn replace(input: &mut Input<'_>, bytes: &mut [u8], from: usize) {
    // Mostly where something is; near the front, where counts, roots and heights are; at the
    // end, where slots are; anywhere.
    let last = bytes.len() - 8;
    let at = match input.u8() % 8 {
        0 => from + usize::from(input.u8()) % 64,
        1 => last - usize::from(input.u8()) % 64,
        2 => from + usize::from(input.u16()) % (last - from),
        _ => {
            let used = |at: &usize| bytes[*at] != 0;
            let count = (from..last).filter(used).count().max(1);
            let nth = usize::from(input.u16()) % count;
            (from..last).filter(used).nth(nth).unwrap_or(from)
        }
    };
    let len = [1, 2, 4, 6, 8][usize::from(input.u8() % 5)];
    let number = match input.u8() % 6 {
        0 => u64::from(input.u8() % 4),
        1 => u64::from(input.u16()),
        2 => u64::MAX - u64::from(input.u8() % 4),
        3 => 1 << (input.u8() % 64),
        4 => (1 << 63) - u64::from(input.u8() % 4),
        _ => u64::from(input.u32()) << (input.u8() % 33),
    };
    bytes[at..at + len].copy_from_slice(&number.to_le_bytes()[..len]);
}

fn changed(input: &mut Input<'_>) -> Vec<u8> {
    let Base { volume, kinds } = base();
    let mut volume = volume.clone();
    let kind = usize::from(input.u8() % 10);
    for _ in 0..1 + input.u8() % 3 {
        let no = input.u16();
        let Some((_, pages)) = kinds.get(kind) else {
            // Both superblocks alike.
            let mut slot = volume[..SLOT_BYTES].to_vec();
            replace(input, &mut slot[..216], 40);
            let seal = holdall_core::checksum::crc(&slot[12..]).to_le_bytes();
            slot[8..12].copy_from_slice(&seal);
            for at in SLOT_AT {
                volume[at as usize..][..SLOT_BYTES].copy_from_slice(&slot);
            }
            continue;
        };
        // The first few are those of the collection that most calls go to.
        let few = if no & 0x300 == 0 { pages.len() } else { pages.len().min(3) };
        let bytes = &mut volume[pages[usize::from(no) % few] * PAGE..][..PAGE];
        // One of three keeps to the body; the header's own fields are what they may be.
        let from = if no.is_multiple_of(3) { 4 } else { page::HEADER };
        if no & 1 == 0 {
            replace(input, bytes, from);
        } else {
            input.edit(bytes, from, 3);
        }
        let lsn = page::lsn(bytes);
        page::seal(bytes, lsn);
    }
    volume
}

fn read_some(store: &Store) {
    let Ok(report) = store.verify() else { return };
    let _ = store.stat();
    for no in 0..report.pages.min(60) {
        let _ = holdall::inspect::page(store, PageNo(no));
    }
    let _ = (holdall::inspect::sharing(store), holdall::inspect::space(store, 0));
    let Ok(reader) = store.read() else { return };
    for oid in reader.oids().take(1000) {
        let Ok(oid) = oid else { break };
        let _ = (reader.metadata(oid), reader.segments(oid));
        let Ok(object) = reader.open(oid) else { continue };
        if object.size() <= MOST_READ {
            let _ = reader.get(oid);
        } else {
            let mut buf = vec![0; 1 << 16];
            let _ = (object.read_at(0, &mut buf), object.read_at(object.size() / 2, &mut buf));
        }
    }
    for name in COLLECTIONS {
        let Ok(reader) = reader.collection(name) else { continue };
        let list = |prefix: &'static [u8], delimiter| {
            let options = ListOptions { prefix, start_after: None, delimiter, limit: 100 };
            drop(reader.list(&options));
        };
        let _ = (list(b"", None), list(b"folder", Some(b"/")));
        let _ = reader.names("").take(1000).take_while(Result::is_ok).count();
        let _ = reader.names("").rev().take(1000).take_while(Result::is_ok).count();
        for name in NAMES {
            let _ = (reader.lookup(name), holdall::inspect::object(store, "default", name));
        }
    }
}

/// One call of every sort.
fn call(
    tx: &mut ObjectsMut,
    how: u8,
    name: &str,
    other: &str,
    at: u64,
    bytes: &[u8],
) -> Result<(), Error> {
    match how % 18 {
        0 => tx.put(name, bytes).map(drop),
        1 => tx.create(bytes).map(drop),
        2 => tx.remove(name).map(drop),
        3 => tx.rename(name, "renamed"),
        4 => tx.insert(name, at, bytes).map(drop),
        5 => tx.append(name, bytes).map(drop),
        6 => tx.replace(name, at, bytes).map(drop),
        7 => tx.delete_range(name, at..at.saturating_add(5000)).map(drop),
        8 => tx.set_len(name, at).map(drop),
        9 => tx.write_at(name, at, bytes).map(drop),
        10 => tx.copy(name, Target::New).map(drop),
        11 => tx.copy_range(name, at..at.saturating_add(200_000), other, 0).map(drop),
        12 => tx.concat(&[name.into(), other.into()], "joined").map(drop),
        13 => tx.set_attributes(name, &Attributes::from([("a".into(), bytes[..9].to_vec())])),
        14 => tx.set_hints(name, Hints { threshold: Some(at as u16), ..Hints::default() }),
        15 => tx.set_bytes(name, bytes),
        16 => tx.put_many((0..40).map(|i| (format!("{name}{i}"), &bytes[..9]))).map(drop),
        _ => {
            let mut object = tx.open(name)?;
            object.set_position(at);
            object.write_all(bytes).map_err(|e| Error::io("writing", e))?;
            object.finish().map(drop)
        }
    }
}

/// Opens a changed store, reads it, then makes calls of every sort, each in a transaction.
pub fn hostile_store(data: &[u8]) {
    let mut input = Input(data);
    let storage = Arc::new(MemoryStorage::from_bytes(changed(&mut input), None));
    let before = storage.volume().len().unwrap();
    if let Ok(store) = options().open_read_only_on(storage.clone()) {
        read_some(&store);
    }
    if let Ok(store) = options().open_on(storage.clone()) {
        let oids: Vec<Oid> = store.read().map_or_else(
            |_| Vec::new(),
            |reader| reader.oids().map_while(Result::ok).take(5).collect(),
        );
        let bytes = vec![7; 70_000];
        for how in 0..18 {
            let (name, other) = (input.u8(), NAMES[usize::from(input.u8() % 6)]);
            let at = u64::from(input.u16()) << (input.u8() % 12);
            let bytes = &bytes[..[10, 700, 9000, 70_000][usize::from(name >> 6)]];
            let _ = store.write(|tx| {
                let mut tx = tx.collection(COLLECTIONS[usize::from(name % 3)])?;
                call(&mut tx, how, NAMES[usize::from(name % 6)], other, at, bytes)
            });
            if name % 8 == 0 {
                let _ = store.checkpoint();
            }
        }
        for oid in oids {
            let _ = store.write(|tx| tx.insert(oid, 0, b"by its id").and_then(|_| tx.remove(oid)));
        }
        let _ = (store.verify(), store.close());
    }
    if let Ok(store) = options().open_on(storage.clone()) {
        let _ = store.verify();
    }
    let after = storage.volume().len().unwrap();
    assert!(after <= before.max(16 << 20), "grown from {before} to {after} bytes");
}
