//! Scrubs: all of a store is read now and then, what is damaged is found, and the pace is kept.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{ScrubOptions, Scrubber, Store};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FAST: ScrubOptions = ScrubOptions { period: Duration::ZERO, rate: 1 << 40 };

struct Home {
    _dir: tempfile::TempDir,
    path: PathBuf,
    store: Store,
}

/// A store with 300 small objects and 3 large ones, all in place.
fn filled() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::create(&path).unwrap();
    store
        .write(|tx| {
            (0..300).try_for_each(|i| {
                tx.put(format!("small{i}"), format!("tiny {i:>900}").as_bytes()).map(drop)
            })?;
            (0..3_u8)
                .try_for_each(|i| tx.put(format!("large{i}"), &vec![0xa0 | i; 1 << 20]).map(drop))
        })
        .unwrap();
    store.checkpoint().unwrap();
    Home { _dir: dir, path, store }
}

/// Waits for `passes` more, begun from here on.
fn scrubbed(store: &Store, passes: u64) {
    // One may be under way.
    let (wanted, since) = (store.metrics().scrubs + passes + 1, Instant::now());
    while store.metrics().scrubs < wanted {
        assert!(since.elapsed() < Duration::from_secs(60), "no pass comes to its end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Changes the byte `offset` bytes into the first place that holds `bytes`.
fn flip(path: &Path, bytes: &[u8], offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let all = std::fs::read(path).unwrap();
    let at = all.windows(bytes.len()).position(|part| part == bytes).unwrap() as u64 + offset;
    file.write_all_at(&[all[at as usize] ^ 1], at).unwrap();
}

fn found(home: &Home, scrubber: &Scrubber) -> String {
    scrubbed(&home.store, 1);
    let problems = scrubber.problems();
    assert_eq!(home.store.metrics().damage, problems.len() as u64);
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn all_of_a_sound_store_is_read() {
    let home = filled();
    let scrubber = home.store.scrub(&FAST).unwrap();
    scrubbed(&home.store, 1);
    let metrics = home.store.metrics();
    assert!(metrics.scrubbed_bytes >= 3 << 20, "{metrics:?}");
    assert_eq!((metrics.damage, scrubber.problems().len()), (0, 0));
}

#[test]
fn damage_is_found_and_forgotten_once_it_is_mended() {
    let home = filled();
    let scrubber = home.store.scrub(&FAST).unwrap();
    let oid = home.store.metadata("large1").unwrap().oid;
    flip(&home.path, &[0xa1; 4096], 70);
    let text = found(&home, &scrubber);
    assert!(text.contains(&oid.to_string()), "{text}");
    let small = b"tiny                                    ";
    flip(&home.path, small, 3);
    let both = found(&home, &scrubber);
    assert!(both.contains("page ") && both.lines().count() > text.lines().count(), "{both}");
    // The store goes on meanwhile.
    home.store.write(|tx| tx.put("new", b"1")).unwrap();
    flip(&home.path, b"tinx                                    ", 3);
    let still = |text: &str| text.contains(&oid.to_string());
    // Flipped back, the first is whole again; of the other the search finds it by its neighbours.
    let file = OpenOptions::new().write(true).open(&home.path).unwrap();
    let all = std::fs::read(&home.path).unwrap();
    let at = all.windows(3).position(|w| w == [0xa1, 0xa0, 0xa1]).unwrap();
    file.write_all_at(&[0xa1], at as u64 + 1).unwrap();
    let text = found(&home, &scrubber);
    assert!(!still(&text) && text.is_empty(), "{text}");
}

#[test]
fn the_pace_is_kept_and_waiting_can_be_ended() {
    let home = filled();
    let slow = ScrubOptions { rate: 1 << 20, ..FAST };
    let (scrubber, begun) = (home.store.scrub(&slow).unwrap(), Instant::now());
    std::thread::sleep(Duration::from_millis(900));
    let read = home.store.metrics().scrubbed_bytes;
    let most = begun.elapsed().as_secs_f64() * f64::from(1 << 20) + f64::from(2 << 20);
    assert!(read > 0 && (read as f64) < most, "{read}");
    let begun = Instant::now();
    drop(scrubber);
    assert!(begun.elapsed() < Duration::from_secs(5));
    let none = ScrubOptions { rate: 0, ..FAST };
    assert!(home.store.scrub(&none).is_err());
}

#[test]
fn it_does_not_keep_the_store_open() {
    let Home { _dir, path, store } = filled();
    let slow = ScrubOptions { rate: 1 << 20, ..FAST };
    let scrubber = store.scrub(&slow).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(store);
    let since = Instant::now();
    let again = loop {
        match Store::open(&path) {
            Ok(store) => break store,
            Err(e) => assert!(since.elapsed() < Duration::from_secs(20), "{e}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(Store::open_read_only(&path).unwrap().scrub(&FAST).is_err());
    assert!(again.verify().unwrap().is_sound());
    drop(scrubber);
}
