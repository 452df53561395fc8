//! Edits of any range against bytes in memory, through small and large and back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Attributes, Error, Options, PutOptions, Store};
use holdall_io::MemoryStorage;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn open(storage: &Arc<MemoryStorage>, new: bool, dirty: usize) -> Store {
    let options = Options::default()
        .background(false)
        .page_size(4096)
        .cache_bytes(64 << 10)
        .tuning(|t| t.dirty_pages(dirty));
    if new {
        options.create_on(storage.clone()).unwrap()
    } else {
        options.open_on(storage.clone()).unwrap()
    }
}

fn data(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.random()).collect()
}

/// A place worth trying: ends, page borders and their neighbours, anywhere.
fn place(rng: &mut SmallRng, len: usize) -> usize {
    let border = (rng.random_range(0..=len) / 4096 * 4096).min(len);
    match rng.random_range(0..6) {
        0 => 0,
        1 => len,
        2 => border,
        3 => (border + 1).min(len),
        4 => border.saturating_sub(1),
        _ => rng.random_range(0..=len),
    }
}

fn size(rng: &mut SmallRng) -> usize {
    match rng.random_range(0..10) {
        0..5 => rng.random_range(0..300),
        5..8 => rng.random_range(0..20_000),
        _ => rng.random_range(0..300_000),
    }
}

#[test]
fn random_edits_give_what_memory_gives() {
    for seed in 0..12 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let storage = Arc::new(MemoryStorage::new());
        let mut store = open(&storage, true, rng.random_range(64..400));
        let len = size(&mut rng);
        let mut model = data(&mut rng, len);
        store.write(|tx| tx.put("x", &model)).unwrap();
        for step in 0..120 {
            let (a, b) = (place(&mut rng, model.len()), place(&mut rng, model.len()));
            let (a, b) = (a.min(b), a.max(b));
            let n = size(&mut rng);
            let new = data(&mut rng, n);
            let kind = rng.random_range(0..8);
            let edits = rng.random_range(1..3);
            store
                .write(|tx| {
                    for _ in 0..edits {
                        apply(tx, kind, &mut model, (a, b), &new)?;
                    }
                    Ok(())
                })
                .unwrap();
            if step % 10 == 0 {
                store.checkpoint().unwrap();
            }
            if step % 40 == 39 {
                store.close().unwrap();
                store = open(&storage, false, 300);
            }
            let got = store.read().unwrap().get("x").unwrap();
            assert!(
                got.as_ref() == Some(&model),
                "seed {seed} step {step} kind {kind} {a}..{b} +{n}"
            );
            let stat = store.stat().unwrap();
            assert_eq!(stat.logical_bytes, model.len() as u64, "seed {seed} step {step}");
        }
        let report = store.verify().unwrap();
        assert!(report.problems.is_empty(), "seed {seed}: {:?}", report.problems);
    }
}

fn apply(
    tx: &mut holdall::WriteTx,
    kind: u32,
    model: &mut Vec<u8>,
    (a, b): (usize, usize),
    new: &[u8],
) -> holdall::Result<()> {
    let (a, b) = (a.min(model.len()), b.min(model.len()));
    let (from, to) = (a as u64, b as u64);
    let size = match kind {
        0 => {
            model.splice(a..a, new.iter().copied());
            tx.insert("x", from, new)?
        }
        1 => {
            model.drain(a..b);
            tx.delete_range("x", from..to)?
        }
        2 => {
            model.splice(a..b, new.iter().copied());
            tx.splice("x", from..to, new)?
        }
        3 => {
            model.extend_from_slice(new);
            tx.append("x", new)?
        }
        4 => {
            model.truncate(b);
            tx.set_len("x", to)?
        }
        5 => {
            model.resize(model.len() + new.len(), 0);
            tx.set_len("x", model.len() as u64)?
        }
        6 => {
            let at = model.len() + 5;
            model.resize(at, 0);
            model.extend_from_slice(new);
            tx.write_at("x", at as u64, new)?
        }
        _ => {
            let n = new.len().min(model.len() - a);
            model[a..a + n].copy_from_slice(&new[..n]);
            tx.replace("x", from, &new[..n])?
        }
    };
    assert_eq!(size, model.len() as u64);
    assert!(tx.get("x")?.unwrap() == *model, "kind {kind}: the transaction sees its own edit");
    Ok(())
}

#[test]
fn a_range_outside_the_object_is_refused_and_spoils_nothing() {
    let storage = Arc::new(MemoryStorage::new());
    let store = open(&storage, true, 100);
    store
        .write(|tx| {
            tx.put("x", b"hello")?;
            let bad = tx.delete_range("x", 3..9);
            assert!(matches!(bad, Err(Error::Range { start: 3, end: 9, size: 5, .. })));
            tx.insert("x", 5, b" world")
        })
        .unwrap();
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"hello world");
}

#[test]
fn snapshots_read_on_while_the_object_is_edited_and_deleted() {
    let storage = Arc::new(MemoryStorage::new());
    let store = open(&storage, true, 300);
    let mut rng = SmallRng::seed_from_u64(3);
    let first = data(&mut rng, 2_000_000);
    store.write(|tx| tx.put("x", &first)).unwrap();
    let object = store.read().unwrap().open("x").unwrap();
    let mut at = 0;
    let mut buf = vec![0; 50_000];
    for i in 0..40 {
        let n = object.read_at(at, &mut buf).unwrap();
        assert!(buf[..n] == first[at as usize..at as usize + n], "piece {i}");
        at += n as u64;
        store.write(|tx| tx.splice("x", 0..30_000, &buf[..20_000])).unwrap();
        store.checkpoint().unwrap();
        if i == 30 {
            store.write(|tx| tx.remove("x")).unwrap();
            store.write(|tx| tx.put("x", &[1; 500_000])).unwrap();
        }
    }
    assert_eq!(at, 2_000_000);
}

#[test]
fn set_bytes_keeps_everything_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path).unwrap();
    let attributes = Attributes::from([("type".into(), b"text".to_vec())]);
    let (named, plain, other) = store
        .write(|tx| {
            let named =
                tx.put_with("name", b"short", &PutOptions::with_attributes(attributes.clone()))?;
            let plain = tx.create(&[1; 100])?;
            Ok((named, plain, tx.collection("elsewhere")?.create(&[2; 5000])?))
        })
        .unwrap();
    // Within its page, out of it, into segments and back; in three collections' order.
    let mut logical = 0;
    for (round, len) in [7, 3000, 8000, 300_000, 40_000, 9000, 1, 0, 5000].into_iter().enumerate() {
        let bytes = vec![round as u8 + 3; len];
        store
            .write(|tx| {
                tx.set_bytes("name", &bytes)?;
                tx.set_bytes(other, &bytes)?;
                tx.set_bytes(plain, &bytes)
            })
            .unwrap();
        logical = 3 * len as u64;
        let reader = store.read().unwrap();
        for oid in [named, plain, other] {
            assert_eq!(reader.get(oid).unwrap().unwrap(), bytes, "{len} bytes");
        }
        let metadata = reader.metadata("name").unwrap();
        assert_eq!((metadata.oid, &metadata.attributes), (named, &attributes));
        assert_eq!(metadata.name.as_deref(), Some(&b"name"[..]));
    }
    assert_eq!(store.stat().unwrap().logical_bytes, logical);
    store.write(|tx| tx.remove(plain)).unwrap();
    let gone = store.write(|tx| tx.set_bytes(plain, b"x"));
    assert!(matches!(gone, Err(Error::Dangling(_))), "{gone:?}");
    assert!(store.verify().unwrap().is_sound());
    store.close().unwrap();
}
