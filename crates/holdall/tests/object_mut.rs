//! The file-like handle against a position in bytes in memory, and what it refuses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Layout, ObjectMut, Options, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{FaultPlan, FaultyStorage};
use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

fn options() -> Options {
    Options::default()
        .background(false)
        .page_size(4096)
        .cache_bytes(64 << 10)
        .tuning(|t| t.dirty_pages(600))
}

fn empty_store() -> Store {
    options().create_on(Arc::new(MemoryStorage::new())).unwrap()
}

fn data(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// What the handle must do, over a vector.
#[derive(Clone, Default)]
struct Model {
    bytes: Vec<u8>,
    at: usize,
}

impl Model {
    fn part(&self, from: usize, len: usize) -> &[u8] {
        let from = from.min(self.bytes.len());
        &self.bytes[from..(from + len).min(self.bytes.len())]
    }

    fn write(&mut self, at: usize, new: &[u8]) {
        if new.is_empty() {
            return;
        }
        let end = at + new.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at..end].copy_from_slice(new);
    }

    fn insert(&mut self, new: &[u8]) {
        if new.is_empty() {
            return;
        }
        self.bytes.resize(self.bytes.len().max(self.at), 0);
        self.bytes.splice(self.at..self.at, new.iter().copied());
        self.at += new.len();
    }

    fn delete(&mut self, len: usize) -> bool {
        let fits = self.at + len <= self.bytes.len();
        if fits {
            self.bytes.drain(self.at..self.at + len);
        }
        fits
    }
}

fn some_len(rng: &mut SmallRng) -> usize {
    match rng.random_range(0..40) {
        0 => 0,
        1..28 => rng.random_range(0..200),
        28..36 => rng.random_range(0..20_000),
        36..39 => rng.random_range(0..400_000),
        _ => rng.random_range(1 << 20..(1 << 20) + 600_000),
    }
}

/// A seek: mostly close to where the position is, so that gathered bytes are met again.
fn some_seek(rng: &mut SmallRng, m: &Model) -> SeekFrom {
    let len = m.bytes.len() as i64;
    match rng.random_range(0..10) {
        0..5 => SeekFrom::Current(rng.random_range(-300..300)),
        5 => SeekFrom::Start(rng.random_range(0..=len as u64)),
        6 => SeekFrom::Start(m.at as u64 / 4096 * 4096),
        7 => SeekFrom::End(0),
        8 => SeekFrom::End(rng.random_range(-len - 5..=0)),
        _ => SeekFrom::End(rng.random_range(0..20_000)),
    }
}

fn seek(o: &mut ObjectMut<'_>, m: &mut Model, to: SeekFrom) {
    let target = match to {
        SeekFrom::Start(n) => n as i64,
        SeekFrom::End(n) => m.bytes.len() as i64 + n,
        SeekFrom::Current(n) => m.at as i64 + n,
    };
    match o.seek(to) {
        Ok(at) => {
            assert_eq!(at as i64, target);
            m.at = target as usize;
        }
        Err(e) => {
            assert!(target < 0, "{to:?}");
            assert_eq!(e.kind(), io::ErrorKind::InvalidInput);
        }
    }
}

fn reads(o: &mut ObjectMut<'_>, m: &mut Model, len: usize, from: Option<usize>) {
    let mut buf = vec![0; len];
    let got = match from {
        Some(from) => o.read_at(from as u64, &mut buf).unwrap(),
        None => o.read(&mut buf).unwrap(),
    };
    let want = m.part(from.unwrap_or(m.at), len);
    assert!(&buf[..got] == want, "{len} bytes at {from:?} or {}: {got}", m.at);
    m.at += if from.is_none() { got } else { 0 };
}

/// One call on both. Returns its name for messages.
fn step(o: &mut ObjectMut<'_>, m: &mut Model, rng: &mut SmallRng) -> &'static str {
    let n = some_len(rng);
    let near = (m.at + rng.random_range(0..300)).saturating_sub(150);
    let kind = if m.bytes.len() > 4 << 20 { 9 } else { rng.random_range(0..19) };
    match kind {
        0..4 => {
            let new = data(rng, n);
            match kind {
                0 => o.write_all(&new).unwrap(),
                _ => o.push(&new).unwrap(),
            }
            m.write(m.at, &new);
            m.at += new.len();
            "write"
        }
        4..7 => {
            let new = data(rng, n);
            o.insert(&new).unwrap();
            m.insert(&new);
            "insert"
        }
        7..9 => {
            let result = o.delete_range(o.position()..o.position() + n as u64);
            let fits = m.delete(n);
            assert_eq!(result.is_ok(), fits);
            assert!(matches!(result, Ok(()) | Err(Error::Range { .. })));
            "delete_range"
        }
        9 => {
            let len = rng.random_range(0..=m.bytes.len());
            o.set_len(len as u64).unwrap();
            m.bytes.truncate(len);
            "cut"
        }
        10 => {
            let len = m.bytes.len() + n;
            o.set_len(len as u64).unwrap();
            m.bytes.resize(len, 0);
            "grow"
        }
        11 => {
            o.set_len(o.position()).unwrap();
            m.bytes.resize(m.at, 0);
            "set_len"
        }
        12 => {
            let new = data(rng, n);
            o.write_at(near as u64, &new).unwrap();
            m.write(near, &new);
            "write_at"
        }
        13 => {
            reads(o, m, n, Some(near));
            "read_at"
        }
        14 => {
            reads(o, m, n, None);
            "read"
        }
        15 => {
            o.flush().unwrap();
            "flush"
        }
        _ => {
            let to = some_seek(rng, m);
            seek(o, m, to);
            "seek"
        }
    }
}

/// Opens the object, takes some steps and finishes or drops it.
fn session(tx: &mut holdall::WriteTx, m: &mut Model, rng: &mut SmallRng, label: &str) {
    let mut o = tx.open_or_create("x").unwrap();
    assert_eq!((o.size(), o.position()), (m.bytes.len() as u64, 0));
    m.at = 0;
    for i in 0..rng.random_range(1..60) {
        let before = (m.at, m.bytes.len());
        let call = step(&mut o, m, rng);
        let want = (m.bytes.len() as u64, m.at as u64);
        assert_eq!((o.size(), o.position()), want, "{label} call {i} {call}, before {before:?}");
    }
    if rng.random() {
        assert_eq!(o.finish().unwrap(), m.bytes.len() as u64);
    }
}

#[test]
fn random_calls_give_what_memory_gives() {
    for seed in 0..16 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let storage = Arc::new(MemoryStorage::new());
        let mut store = options().create_on(storage.clone()).unwrap();
        let mut m = Model::default();
        let mut copy = Vec::new();
        store.write(|tx| tx.put("x", &[]).and(tx.put("copy", &[]))).unwrap();
        for round in 0..12 {
            let label = format!("seed {seed} round {round}");
            let mut now = m.clone();
            if rng.random_range(0..3) == 0 {
                store.write(|tx| tx.copy("x", "copy")).unwrap();
                copy.clone_from(&m.bytes);
            }
            let give_up = rng.random_range(0..5) == 0;
            let result = store.write(|tx| {
                for _ in 0..rng.random_range(1..3) {
                    session(tx, &mut now, &mut rng, &label);
                    assert!(tx.get("x")?.unwrap() == now.bytes, "{label}: within the transaction");
                }
                if give_up { Err(Error::Invalid("given up".into())) } else { Ok(()) }
            });
            assert_eq!(result.is_err(), give_up, "{label}: {result:?}");
            if !give_up {
                m = now;
            }
            if rng.random_range(0..3) == 0 {
                store.close().unwrap();
                store = options().open_on(storage.clone()).unwrap();
            }
            let reader = store.read().unwrap();
            assert!(reader.get("x").unwrap().unwrap() == m.bytes, "{label}");
            assert!(
                reader.get("copy").unwrap().unwrap() == copy,
                "{label}: a copy shares segments only"
            );
            let bytes = (m.bytes.len() + copy.len()) as u64;
            assert_eq!(store.stat().unwrap().logical_bytes, bytes, "{label}");
        }
        let report = store.verify().unwrap();
        assert!(report.problems.is_empty(), "seed {seed}: {:?}", report.problems);
    }
}

#[test]
fn small_sequential_writes_and_inserts_become_few_edits() {
    let store = empty_store();
    store
        .write(|tx| {
            let mut o = tx.open_or_create("written")?;
            for i in 0..50_000_u32 {
                o.push(&i.to_le_bytes())?;
            }
            o.finish()?;
            tx.put("inserted", &[7; 100_000])?;
            let mut o = tx.open("inserted")?;
            o.set_position(50_000);
            for i in 0..50_000_u32 {
                o.insert(&i.to_le_bytes())?;
            }
            o.finish()?;
            let mut o = tx.open_or_create("gaps")?;
            for i in 1..2000 {
                o.write_at(i * 20, &[1; 10])?;
            }
            o.finish()
        })
        .unwrap();
    let reader = store.read().unwrap();
    let gaps = [[0; 10], [1; 10]].concat().repeat(1999);
    assert!(reader.get_range("gaps", 10..1999 * 20 + 10).unwrap().unwrap() == gaps);
    let numbers: Vec<u8> = (0..50_000_u32).flat_map(u32::to_le_bytes).collect();
    assert!(reader.get("written").unwrap().unwrap() == numbers);
    assert!(reader.get_range("inserted", 50_000..250_000).unwrap().unwrap() == numbers);
    for (name, most) in [("written", 1), ("inserted", 3), ("gaps", 1)] {
        let of = reader.segments(name).unwrap();
        assert!((1..=most).contains(&of.segments), "{of:?}");
    }
}

#[test]
fn a_small_object_with_a_small_gap_stays_small_and_a_long_gap_takes_no_space() {
    let store = empty_store();
    store
        .write(|tx| {
            let mut o = tx.open_or_create("small")?;
            o.set_position(100);
            o.push(b"x")?;
            o.finish()?;
            let mut o = tx.open_or_create("long")?;
            o.set_position(1 << 40);
            o.push(b"x")?;
            assert_eq!(o.finish()?, (1 << 40) + 1);
            Ok(())
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.metadata("small").unwrap().layout, Layout::Small);
    let long = reader.open("long").unwrap();
    let mut buf = [9; 3];
    assert_eq!(long.read_at((1 << 40) - 2, &mut buf).unwrap(), 3);
    assert_eq!(&buf, b"\0\0x");
    assert!(store.stat().unwrap().file_bytes < 16 << 20);
}

#[test]
fn what_cannot_be_used_is_refused_and_spoils_nothing() {
    let store = empty_store();
    let gone = store.write(|tx| tx.create(b"gone")).unwrap();
    store
        .write(|tx| {
            tx.remove(gone)?;
            assert!(matches!(tx.open("x"), Err(Error::NotFound(_))));
            assert!(matches!(tx.open(gone), Err(Error::Dangling(_) | Error::NotFound(_))));
            assert!(matches!(tx.open_or_create(""), Err(Error::Invalid(_))));
            assert!(matches!(tx.open_or_create([b'n'; 2000]), Err(Error::Invalid(_))));
            let mut o = tx.open_or_create("x")?;
            o.push(b"hello")?;
            for to in [SeekFrom::Current(-6), SeekFrom::End(-6), SeekFrom::End(i64::MIN)] {
                let e = o.seek(to).unwrap_err();
                assert_eq!(e.kind(), io::ErrorKind::InvalidInput, "{to:?}");
            }
            assert_eq!(o.position(), 5);
            assert!(matches!(
                o.delete_range(5..6),
                Err(Error::Range { start: 5, end: 6, size: 5, .. })
            ));
            for range in [5..u64::MAX, 6..6, Range { start: 3, end: 2 }] {
                assert!(matches!(o.delete_range(range), Err(Error::Range { .. })));
            }
            assert!(matches!(o.set_len(u64::MAX), Err(Error::Invalid(_))));
            assert!(matches!(o.write_at(u64::MAX, b"x"), Err(Error::Invalid(_))));
            o.set_position(i64::MAX as u64);
            assert!(matches!(o.insert(b"x"), Err(Error::Invalid(_))));
            let e = o.write(b"x").unwrap_err();
            assert!(matches!(e.downcast::<Error>().unwrap(), Error::Invalid(_)));
            assert_eq!(o.read(&mut [0; 4]).unwrap(), 0);
            o.push(b"")?;
            o.insert(b"")?;
            o.delete_range(5..5)?;
            assert_eq!(o.finish()?, 5);
            Ok(())
        })
        .unwrap();
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"hello");
}

fn full_store() -> Store {
    let options = options().max_bytes(4 << 20).tuning(|t| t.space_pages(64));
    options.create_on(Arc::new(MemoryStorage::new())).unwrap()
}

#[test]
fn dropped_without_finish_it_writes_what_is_gathered_or_fails_the_transaction() {
    let store = full_store();
    store.write(|tx| tx.open_or_create("x")?.push(b"kept")).unwrap();
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"kept");

    // Gathered bytes that have no room: the handle cannot say so, the commit must.
    let filled = store.write(|tx| {
        for i in 0..200 {
            let mut o = tx.open_or_create(format!("o{i}"))?;
            o.push(&[1; 200_000])?;
        }
        Ok(())
    });
    assert!(filled.is_err());
    let result = store.write(|tx| {
        tx.open_or_create("x")?.push(b"lost")?;
        let mut o = tx.open("x")?;
        for _ in 0..5 {
            o.push(&[2; 1_000_000])?;
            o.set_position(o.size());
        }
        Ok(())
    });
    assert!(result.is_err());
    let names: Vec<_> = store.read().unwrap().names("").map(|n| n.unwrap().name).collect();
    assert_eq!(names, [b"x"]);
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"kept");
    store.write(|tx| tx.open("x")?.push(b"more")).unwrap();
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"more");
    let report = store.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn the_commit_fails_where_only_the_drop_could_not_write() {
    let store = full_store();
    store.write(|tx| tx.put("ballast", &vec![3; 3 << 20])).unwrap();
    let mut reached_the_end = false;
    let result = store.write(|tx| {
        let mut o = tx.open_or_create("x")?;
        o.push(&[1; 1_000_000])?;
        drop(o);
        reached_the_end = true;
        Ok(())
    });
    assert!(reached_the_end, "a megabyte less is gathered, not written");
    assert!(result.is_err());
    assert_eq!(store.read().unwrap().get("x").unwrap(), None);

    // With finish the reason is returned, through std::io too.
    let told = store.write(|tx| {
        let mut o = tx.open_or_create("x")?;
        o.push(&[1; 1_000_000])?;
        let e = o.flush().unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::StorageFull);
        Err::<(), _>(e.downcast().unwrap())
    });
    assert!(matches!(told, Err(Error::Full(_))), "{told:?}");
}

#[test]
fn a_read_that_fails_in_the_drop_fails_the_transaction() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = options().create_on(storage.clone()).unwrap();
    let others = store.write(|tx| {
        tx.put("x", b"before")?;
        (0..100).map(|_| tx.create(&[5; 3000])).collect::<holdall::Result<Vec<_>>>()
    });
    let others = others.unwrap();
    store.checkpoint().unwrap();
    let result = store.write(|tx| {
        let mut o = tx.open("x")?;
        o.push(b"after!")?;
        // Drives the object's pages out of the pool.
        let reader = store.read()?;
        for oid in &others {
            reader.get(*oid)?;
        }
        storage.set_plan(FaultPlan { fail_read_at: Some(1), ..FaultPlan::default() });
        drop(o);
        storage.heal();
        Ok(())
    });
    assert!(result.is_err(), "gathered bytes were lost without a word");
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), b"before");
}

#[test]
fn a_snapshot_streams_on_while_the_object_is_edited() {
    let store = empty_store();
    let mut rng = SmallRng::seed_from_u64(5);
    let first = data(&mut rng, 1_500_000);
    store.write(|tx| tx.put("x", &first)).unwrap();
    let mut object = store.read().unwrap().open("x").unwrap();
    let mut m = Model { bytes: first.clone(), at: 0 };
    let mut got = Vec::new();
    let mut buf = vec![0; 60_000];
    for round in 0.. {
        store
            .write(|tx| {
                session(tx, &mut m, &mut rng, &format!("round {round}"));
                Ok(())
            })
            .unwrap();
        store.checkpoint().unwrap();
        let n = object.read(&mut buf).unwrap();
        if n == 0 {
            break;
        }
        got.extend_from_slice(&buf[..n]);
    }
    assert!(got == first);
    assert!(store.read().unwrap().get("x").unwrap().unwrap() == m.bytes);
}

#[test]
fn a_transaction_given_up_leaves_nothing() {
    let store = empty_store();
    store.write(|tx| tx.put("x", b"before")).unwrap();
    let before = store.stat().unwrap();
    let result = store.write(|tx| {
        let mut o = tx.open("x")?;
        o.insert(&vec![1; 3_000_000])?;
        o.push(b"small")?;
        o.finish()?;
        tx.open_or_create("y")?.push(&[2; 100_000])?;
        Err::<(), _>(Error::Invalid("given up".into()))
    });
    assert!(result.is_err());
    let reader = store.read().unwrap();
    assert_eq!(reader.get("x").unwrap().unwrap(), b"before");
    assert_eq!(reader.get("y").unwrap(), None);
    let after = store.stat().unwrap();
    assert_eq!((after.objects, after.logical_bytes), (before.objects, before.logical_bytes));
    assert!(store.verify().unwrap().problems.is_empty());
}

#[test]
fn an_object_of_another_collection_is_edited_there() {
    let store = empty_store();
    let oid = store.write(|tx| tx.collection("other")?.put("x", b"abc")).unwrap();
    store
        .write(|tx| {
            let mut o = tx.open(oid)?;
            assert_eq!(o.oid(), oid);
            o.set_position(3);
            o.push(b"def")?;
            o.finish()?;
            tx.put("here", b"1").map(|_| ())
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.collection("other").unwrap().get("x").unwrap().unwrap(), b"abcdef");
    assert_eq!(reader.get("here").unwrap().unwrap(), b"1");
    let of = store.stat().unwrap().collections;
    let other = of.iter().find(|c| c.name == "other").unwrap();
    assert_eq!((other.objects, other.logical_bytes), (1, 6));
}
