//! A store opened for reading beside a handle that writes it: what it sees, and for how long.

use holdall::{Durability, Error, Options, Store};
use std::os::unix::fs::FileExt;

fn options() -> Options {
    Store::builder().background(false)
}

/// Small limits: checkpoints come soon, and pages are used again soon.
fn busy() -> Options {
    options().tuning(|t| t.first_log_bytes(64 << 10).log_bytes(256 << 10))
}

/// `len` bytes that follow from `seed`.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn each_commit_is_seen_at_once_and_a_snapshot_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = options().create(&path).unwrap();
    let other = Store::open_read_only(&path).unwrap();
    assert_eq!(other.get("a").unwrap(), None);
    let mut before = None;
    for n in 0..200_u32 {
        let content = bytes(n.into(), if n % 5 == 0 { 300_000 } else { 500 });
        store.write(|tx| tx.put("a", &content)).unwrap();
        assert_eq!(other.get("a").unwrap(), Some(content.clone()), "{n}");
        if n == 150 {
            before = Some((other.read().unwrap(), content));
        }
    }
    let (reader, content) = before.unwrap();
    match reader.get("a") {
        Ok(found) => assert_eq!(found, Some(content)),
        Err(e) => assert!(matches!(e, Error::SnapshotTooOld { .. }), "{e}"),
    }
    assert!(matches!(other.write(|tx| tx.put("a", b"b")), Err(Error::ReadOnly)));
    let deferred = store.write(|tx| {
        tx.set_durability(Durability::Deferred);
        tx.put("late", b"1")
    });
    deferred.unwrap();
    assert_eq!(other.get("late").unwrap(), None, "not durable yet");
    store.flush().unwrap();
    assert_eq!(other.get("late").unwrap(), Some(b"1".to_vec()));
    assert!(other.verify().unwrap().is_sound());
    assert_eq!(other.stat().unwrap().objects, store.stat().unwrap().objects);
    let pieces = |store: &Store| store.frag(&mut |_, _| {}).unwrap().objects.pieces;
    assert_eq!(pieces(&other), pieces(&store));
}

#[test]
fn a_snapshot_that_checkpoints_pass_is_too_old_and_never_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = busy().create(&path).unwrap();
    let name = |i: u64| format!("object {i}");
    let content = |i: u64, n: u64| bytes(i * 1000 + n, 200 + (i as usize * 7919) % 60_000);
    let write = |n: u64| {
        let all = |tx: &mut holdall::WriteTx| {
            (0..40).try_for_each(|i| tx.put(name(i), &content(i, n)).map(drop))
        };
        store.write(all).unwrap();
    };
    write(0);
    let other = busy().open_read_only(&path).unwrap();
    let (mut ended, mut held) = (0, Vec::new());
    for n in 1..60 {
        held.push((other.read().unwrap(), n - 1));
        write(n);
        if n % 3 == 0 {
            store.checkpoint().unwrap();
        }
        held.retain(|(reader, n)| {
            for i in 0..40 {
                match reader.get(name(i).as_str()) {
                    Ok(found) => assert!(found == Some(content(i, *n)), "{i} of {n}"),
                    Err(e) => {
                        assert!(matches!(e, Error::SnapshotTooOld { .. }), "{i} of {n}: {e}");
                        ended += 1;
                        return false;
                    }
                }
            }
            true
        });
        assert!(other.get(name(7).as_str()).unwrap() == Some(content(7, n)));
    }
    assert!(ended > 0, "{} are left", held.len());
}

#[test]
fn a_reader_goes_on_when_the_writer_ends_and_another_begins() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    options().create(&path).unwrap().close().unwrap();
    let other = Store::open_read_only(&path).unwrap();
    for life in 0..6_u64 {
        let store = options().open(&path).unwrap();
        for n in 0..20 {
            store.write(|tx| tx.put("a", &bytes(life * 100 + n, 9_000))).unwrap();
            if n % 7 == 0 {
                assert_eq!(other.get("a").unwrap(), Some(bytes(life * 100 + n, 9_000)));
            }
        }
        let held = other.read().unwrap();
        store.close().unwrap();
        assert_eq!(held.get("a").unwrap(), Some(bytes(life * 100 + 19, 9_000)));
        assert_eq!(other.get("a").unwrap(), Some(bytes(life * 100 + 19, 9_000)));
    }
    assert!(!dir.path().join("s-log").exists());
}

#[test]
fn damage_beside_a_writer_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = options().create(&path).unwrap();
    let content = bytes(1, 100_000);
    store.write(|tx| tx.put("a", &content)).unwrap();
    store.checkpoint().unwrap();
    let all = std::fs::read(&path).unwrap();
    let at = all.windows(4096).position(|part| part == &content[..4096]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"other bytes", at as u64).unwrap();
    let other = Store::open_read_only(&path).unwrap();
    assert!(matches!(other.get("a"), Err(Error::Corrupt { .. })));
    assert!(!other.verify().unwrap().is_sound());
}
