//! Objects that are appended to in turns, and streams whose size nobody told: in how few pieces
//! they lie, and that what is kept for them goes back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Options, PutOptions, Store};

const PART: usize = 64 << 10;

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 31 + seed * 7 + i / 251) as u8).collect()
}

fn quiet() -> Options {
    Options::default().background(false)
}

/// Appends `parts` parts to each of sixteen objects in turns; the first is put with `expected`.
fn in_turns(store: &Store, parts: usize, expected: Option<u64>) {
    for part in 0..parts {
        for key in 0..16 {
            let (name, more) = (format!("o{key}"), bytes(key + part, PART));
            let options = PutOptions { expected_size: expected, ..PutOptions::default() };
            let put = |tx: &mut holdall::WriteTx| match part {
                0 => tx.put_with(&name, &more, &options).map(drop),
                _ => tx.append(&name, &more).map(drop),
            };
            store.write(put).unwrap();
        }
    }
    for key in 0..16 {
        let whole: Vec<u8> = (0..parts).flat_map(|part| bytes(key + part, PART)).collect();
        assert!(store.get(format!("o{key}")).unwrap() == Some(whole), "object {key}");
    }
}

/// Runs of neighbouring pages in which the objects lie.
fn pieces(store: &Store, keys: usize) -> u64 {
    let reader = store.read().unwrap();
    (0..keys).map(|key| reader.segments(&*format!("o{key}")).unwrap().segments).sum()
}

#[test]
fn appends_in_turns_leave_few_pieces() {
    let store = quiet().create_in_memory().unwrap();
    // A store of some size: what is kept is a share of it.
    store.write(|tx| tx.put("large", &bytes(1, 64 << 20))).unwrap();
    in_turns(&store, 16, None);
    // A window has a sixteenth of what may be kept, here some four parts, so an object of sixteen
    // lies in about four runs (61 in all); without windows each part is one.
    assert!(pieces(&store, 16) <= 16 * 5, "{} pieces", pieces(&store, 16));
    assert!(store.windows().1 > 0);
    assert_eq!(store.stat().unwrap().reserved_bytes, 0, "what nobody asked for counts as free");
    store.checkpoint().unwrap();
    assert_eq!(store.windows().1, 0);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn appends_of_a_known_size_lie_in_one_piece() {
    let store = quiet().create_in_memory().unwrap();
    store.write(|tx| tx.put("large", &bytes(1, 64 << 20))).unwrap();
    in_turns(&store, 16, Some(16 * PART as u64));
    // All that is to come has room behind the first part: the windows are a quarter of the volume.
    assert_eq!(pieces(&store, 16), 16);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_young_store_has_room_for_what_is_to_come() {
    for (parts, more) in [(16, 0), (64, 7)] {
        let store = quiet().create_in_memory().unwrap();
        in_turns(&store, parts, Some((parts * PART + more) as u64));
        assert_eq!(pieces(&store, 16), 16, "{parts} parts");
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn an_object_of_the_told_size_has_no_room_kept_behind_it() {
    let store = quiet().create_in_memory().unwrap();
    // A store of some size, with room behind each object: what is kept is a share of both.
    store.write(|tx| tx.put("large", &bytes(1, 64 << 20))).unwrap();
    store.write(|tx| tx.put("gone", &bytes(2, 32 << 20))).unwrap();
    store.write(|tx| tx.remove("gone")).unwrap();
    store.checkpoint().unwrap();
    in_turns(&store, 16, Some(16 * PART as u64));
    assert_eq!(store.windows().1, 0, "all objects are whole");
    // One that grows beyond what was told has room as any other.
    store.write(|tx| tx.append("o3", &bytes(3, PART)).map(drop)).unwrap();
    store.write(|tx| tx.append("o3", &bytes(4, PART)).map(drop)).unwrap();
    assert!(store.windows().1 > 0);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn what_is_kept_for_appends_refuses_nobody() {
    let store = quiet().max_bytes(24 << 20).create_in_memory().unwrap();
    in_turns(&store, 4, Some(1 << 20));
    assert!(store.windows().1 > 0);
    let mut put = 0;
    while store.stat().unwrap().fullness.fits(3, 1 << 20) {
        store.write(|tx| tx.put(format!("p{put}"), &bytes(put, 1 << 20))).unwrap();
        put += 1;
    }
    // 24 MiB but for the 4 of the objects, the reserve and metadata; each of them went in.
    assert!(put >= 19, "{put} puts");
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn streams_lie_one_behind_the_other() {
    let store = quiet().create_in_memory().unwrap();
    for key in 0..16 {
        let all = bytes(key, 10 << 20);
        let stream = |tx: &mut holdall::WriteTx| {
            let mut writer = tx.writer(format!("o{key}"), PutOptions::default())?;
            all.chunks(PART).try_for_each(|part| writer.push(part))?;
            writer.finish()
        };
        store.write(stream).unwrap();
    }
    // What the last run of each has too much is where the next begins.
    assert!(pieces(&store, 16) <= 18, "{} pieces", pieces(&store, 16));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_stream_expects_the_size_of_what_it_replaces() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = quiet().create(&path).unwrap();
    let stream = |name: &str, len: usize| {
        let all = bytes(len, len);
        store
            .write(|tx| {
                let mut writer = tx.writer(name, PutOptions::default())?;
                all.chunks(PART).try_for_each(|part| writer.push(part))?;
                writer.finish()
            })
            .unwrap();
        assert!(store.get(name).unwrap() == Some(all), "{name}");
    };
    let mut most = 0;
    for round in 0..6 {
        for key in 0..8 {
            stream(&format!("o{key}"), (5 << 20) + 1000 * round);
        }
        store.checkpoint().unwrap();
        most = pieces(&store, 8);
    }
    // Two or three each (18 in all), since what they replace is free only after the next checkpoint.
    // Runs that double from 64 KiB would be up to eight each.
    assert!(most <= 20, "{most} pieces of eight objects");
    // Shorter and longer ones than before.
    stream("o0", 3 << 20);
    stream("o1", 9 << 20);
    assert!(store.verify().unwrap().is_sound());
    store.close().unwrap();
}

#[test]
fn a_closed_file_has_no_room_left_behind_what_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = quiet().create(&path).unwrap();
    in_turns(&store, 4, Some(1 << 20));
    let open = std::fs::metadata(&path).unwrap().len();
    store.close().unwrap();
    let closed = std::fs::metadata(&path).unwrap().len();
    // The last window is cut off; those between objects are free.
    assert!(closed < open, "{closed} of {open} bytes");
    let store = quiet().open(&path).unwrap();
    assert!(store.verify().unwrap().is_sound());
}
