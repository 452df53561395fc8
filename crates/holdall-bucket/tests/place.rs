//! Backups in a place, which is a directory here: taken, broken off, followed, restored, removed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{BackupId, Error, Options, Store};
use holdall_bucket::{
    Access, BackedUp, Base, Bucket, Event, Follow, Followed, Keep, Listed, Settings, Which, follow,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

struct Place {
    dir: tempfile::TempDir,
    bucket: Arc<Bucket>,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bucket = open(&dir.path().join("place"));
        Self { dir, bucket }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn files(&self, folder: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("place").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    }

    /// Restores a backup and reads all of it.
    fn restored(&self, which: Which) -> holdall::Result<Objects> {
        let path = self.path("restored");
        let _ = fs::remove_file(&path);
        holdall::restore(&path, self.bucket.parts(which)?, &mut |_| ControlFlow::Continue(()))?;
        Ok(objects(&Store::open(&path)?))
    }
}

fn open(path: &Path) -> Arc<Bucket> {
    let name = format!("file://{}", path.display());
    Arc::new(Bucket::open(&name, &Access::default()).unwrap())
}

type Objects = BTreeMap<String, Vec<u8>>;

fn objects(store: &Store) -> Objects {
    let reader = store.read().unwrap();
    let name = |entry: holdall::Result<holdall::Entry>| String::from_utf8(entry.unwrap().name);
    let names: Vec<String> = reader.names("").map(|entry| name(entry).unwrap()).collect();
    names.into_iter().map(|name| (name.clone(), reader.get(&name).unwrap().unwrap())).collect()
}

fn data(seed: u64, len: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..len).map(|_| next()).collect()
}

fn back_up(bucket: &Bucket, store: &Store, base: Base) -> holdall::Result<BackedUp> {
    let settings = Settings { base, ..Settings::default() };
    bucket.back_up(&mut store.clone(), settings, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn each_backup_of_a_place_comes_back() {
    let place = Place::new();
    let store = Store::create(place.path("s")).unwrap();
    for n in 0..40 {
        store.write(|tx| tx.put(format!("o{n}"), &data(n, 1 << 20)).map(drop)).unwrap();
    }
    let whole = back_up(&place.bucket, &store, Base::None).unwrap();
    assert!(whole.listed.base.is_none() && place.files("parts").len() > 3);
    assert_eq!(place.files("unfinished"), [] as [PathBuf; 0]);
    let mut states = vec![(whole.listed.id, objects(&store))];
    for n in 1..40_u64 {
        store.write(|tx| tx.put(format!("o{}", n % 7), &data(100 + n, 300_000))).unwrap();
        let more = back_up(&place.bucket, &store, Base::Newest).unwrap();
        assert_eq!(more.listed.number, n);
        assert!(more.bytes < 8 << 20, "{} bytes for an object", more.bytes);
        states.push((more.listed.id, objects(&store)));
    }
    for (id, state) in [&states[0], &states[1], &states[15], &states[16], &states[17], &states[38]]
    {
        assert!(place.restored(Which::Id(*id)).unwrap() == *state);
    }
    assert!(place.restored(Which::Newest).unwrap() == states[39].1);
    // Few lead back to the whole one, and their marks are all that the store remembers.
    assert!(place.bucket.parts(Which::Newest).unwrap().len() <= 2 + 1 + 7);
    let listed = place.bucket.list().unwrap();
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), ids(&states));
    assert!(store.backup_marks().unwrap().len() <= 5);
    let early = place.restored(Which::Time(listed[3].time)).unwrap();
    assert!(early == states[3].1);
    let e = place.restored(Which::Time(5)).unwrap_err();
    assert!(matches!(e, Error::NotFound(_)), "{e}");
}

fn ids(states: &[(BackupId, Objects)]) -> Vec<BackupId> {
    states.iter().map(|(id, _)| *id).collect()
}

#[test]
fn a_whole_backup_that_was_broken_off_goes_on() {
    let place = Place::new();
    let store = Store::create(place.path("s")).unwrap();
    for n in 0..100 {
        store.write(|tx| tx.put(format!("o{n}"), &data(n, 1 << 20)).map(drop)).unwrap();
    }
    let mut before = Vec::new();
    for most in [30_u64, 60] {
        let mut stop = |progress: holdall::Progress| match progress.done > most << 20 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let source = &mut store.clone();
        let e = place.bucket.back_up(source, Settings::default(), &mut stop).unwrap_err();
        assert!(matches!(e, Error::Cancelled), "{e}");
        assert_eq!(place.bucket.list().unwrap(), []);
        assert!(matches!(place.restored(Which::Newest), Err(Error::NotFound(_))));
        // What is being written still has another name, and may be given up.
        std::thread::sleep(Duration::from_millis(300));
        before = place.files("parts");
        before.retain(|part| !part.display().to_string().contains('#'));
        // What was copied changes.
        store.write(|tx| tx.put("o1", &data(most, 900_000)).map(drop)).unwrap();
        store.write(|tx| tx.remove("o2").map(drop)).unwrap_or_default();
    }
    let last = before.pop().unwrap();
    fs::remove_file(last).unwrap();
    let done = back_up(&open(&place.path("place")), &store, Base::None).unwrap();
    assert!(done.resumed > 20 << 20, "{} bytes of before", done.resumed);
    assert!(before.iter().all(|part| part.exists()));
    assert_eq!(place.files("unfinished"), [] as [PathBuf; 0]);
    assert!(place.restored(Which::Newest).unwrap() == objects(&store));
    // What a store does not remember does not go on.
    let other = Store::create(place.path("t")).unwrap();
    let e = back_up(&place.bucket, &other, Base::None).unwrap_err();
    assert!(matches!(&e, Error::Invalid(text) if text.contains("of store")), "{e}");
}

#[test]
fn what_is_damaged_or_missing_is_named() {
    let place = Place::new();
    let store = Store::create(place.path("s")).unwrap();
    store.write(|tx| tx.put("a", &data(1, 3 << 20)).map(drop)).unwrap();
    let e = back_up(&place.bucket, &store, Base::Newest).unwrap_err();
    assert!(matches!(e, Error::NotFound(_)), "{e}");
    back_up(&place.bucket, &store, Base::None).unwrap();
    store.write(|tx| tx.put("b", b"b").map(drop)).unwrap();
    back_up(&place.bucket, &store, Base::Newest).unwrap();
    for file in place.files("") {
        let whole = fs::read(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let middle = whole.len() / 2;
        let mut other = whole.clone();
        other[middle] ^= 1;
        for bytes in [Some(other), Some(whole[..middle].to_vec()), Some(Vec::new()), None] {
            match &bytes {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            match place.restored(Which::Newest) {
                // A flip in a text may leave its meaning; the newest list may be gone.
                Ok(found) => {
                    assert!(!file.starts_with(place.path("place/parts")), "{name}");
                    assert!(found.contains_key("a") && found["a"] == data(1, 3 << 20), "{name}");
                }
                Err(e) => {
                    let part = file.starts_with(place.path("place/parts"));
                    assert!(!part || matches!(e, Error::Corrupt { .. }), "{name}: {e}");
                    assert!(!place.path("restored").exists(), "{name}: {e}");
                }
            }
        }
        fs::write(&file, &whole).unwrap();
    }
    assert!(place.restored(Which::Newest).unwrap() == objects(&store));
    for (text, said) in [
        (r#"{"holds": "store", "version": 1, "store": "00"}"#, "holds a store, no backups"),
        (r#"{"holds": "backups", "version": 9, "store": "00"}"#, "version 9"),
        ("hello", "not understood"),
    ] {
        fs::write(place.path("place/holdall.json"), text).unwrap();
        let takes = back_up(&place.bucket, &store, Base::None).unwrap_err().to_string();
        let gives = place.restored(Which::Newest).unwrap_err().to_string();
        let lists = place.bucket.list().unwrap_err().to_string();
        for e in [takes, gives, lists] {
            assert!(e.contains(said), "{e}");
        }
    }
}

#[test]
fn what_need_not_stay_goes_and_the_rest_is_whole() {
    let place = Place::new();
    let store = Store::create(place.path("s")).unwrap();
    let mut states = BTreeMap::new();
    for n in 0..20 {
        store.write(|tx| tx.put(format!("o{n}"), &data(n, 50_000)).map(drop)).unwrap();
        let base = if n % 5 == 0 { Base::None } else { Base::Newest };
        let made = back_up(&place.bucket, &store, base).unwrap();
        states.insert(made.listed.id.0, objects(&store));
    }
    let parts = place.files("parts").len();
    let keep: Keep = "last=2".parse().unwrap();
    let pruned = place.bucket.prune(&keep).unwrap();
    let left: Vec<Listed> = place.bucket.list().unwrap();
    // The last two, and what they build on.
    assert_eq!((pruned.backups.len(), left.len()), (15, 5));
    assert_eq!(place.files("parts").len(), parts - 15);
    assert!(pruned.bytes > 0);
    for listed in &left {
        assert!(place.restored(Which::Id(listed.id)).unwrap() == states[&listed.id.0]);
    }
    // All are of this hour.
    assert_eq!(place.bucket.prune(&"hourly=3".parse().unwrap()).unwrap().backups.len(), 0);
    let more = back_up(&place.bucket, &store, Base::Newest).unwrap();
    assert_eq!(more.listed.base, Some(left[4].id));
    for text in ["", "last", "last=0", "last=1,last=2", "often=3", "last=-1", "last=1 ,daily=2"] {
        assert!(matches!(text.parse::<Keep>(), Err(Error::Invalid(_))), "{text}");
    }
}

#[test]
fn a_store_is_followed() {
    let place = Place::new();
    let store = Options::default().create(place.path("s")).unwrap();
    store.write(|tx| tx.put("a", &data(1, 100_000)).map(drop)).unwrap();
    let settings = Follow {
        every: Duration::from_millis(100),
        verify: true,
        rate: None,
        keep: Some("last=3".parse().unwrap()),
    };
    let mut added = 0;
    let (mut writes, began) = (0, Instant::now());
    let mut sources = || Ok(Followed::Shared(store.clone()));
    follow(&place.bucket, settings, &mut sources, &mut |event| {
        match event {
            Some(Event::Added(_)) => added += 1,
            Some(Event::Failed(e)) => panic!("{e}"),
            _ if writes < 20 && added > writes => {
                writes += 1;
                store.write(|tx| tx.put(format!("o{writes}"), b"more").map(drop)).unwrap();
            }
            _ => {}
        }
        // What did not change is not backed up.
        match added > 20 && began.elapsed() > Duration::from_secs(4)
            || began.elapsed().as_secs() > 60
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
    .unwrap();
    assert_eq!((writes, added), (20, 21));
    assert!(place.restored(Which::Newest).unwrap() == objects(&store));
    assert_eq!(place.bucket.list().unwrap().iter().filter(|one| one.base.is_none()).count(), 1);
    // A restored store has another history from there on; what it remembers is built on.
    drop(store);
    let path = place.path("again");
    let parts = place.bucket.parts(Which::Newest).unwrap();
    holdall::restore(&path, parts, &mut |_| ControlFlow::Continue(())).unwrap();
    let again = Store::open(&path).unwrap();
    again.write(|tx| tx.put("later", b"x").map(drop)).unwrap();
    let made = back_up(&place.bucket, &again, Base::Newest).unwrap();
    assert!(made.listed.base.is_some());
    assert!(place.restored(Which::Newest).unwrap() == objects(&again));
}

#[test]
fn a_whole_backup_is_taken_beside_the_increments() {
    let place = Place::new();
    let store = Store::create(place.path("s")).unwrap();
    let every = Duration::from_millis(10);
    let keep = Some("last=40".parse().unwrap());
    let settings = Follow { every, verify: false, rate: None, keep };
    let (mut wholes, mut after, mut n) = (0, 0, 0);
    let began = Instant::now();
    let mut sources = || Ok(Followed::Shared(store.clone()));
    follow(&place.bucket, settings, &mut sources, &mut |event| {
        match event {
            Some(Event::Added(added)) => {
                wholes += u32::from(added.listed.base.is_none());
                after += u32::from(wholes > 2);
                // What is committed while it is taken must not be lost.
                n += 1;
                let name = format!("o{}", n % 3);
                store.write(|tx| tx.put(name, &data(n, 3 << 20)).map(drop)).unwrap();
            }
            Some(Event::Failed(e)) => panic!("{e}"),
            _ => {}
        }
        match after > 3 || began.elapsed().as_secs() > 100 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })
    .unwrap();
    assert!(after > 3, "{wholes} whole backups, {n} in all");
    let last = back_up(&place.bucket, &store, Base::Newest).unwrap();
    assert!(place.restored(Which::Newest).unwrap() == objects(&store));
    // Another follower goes on behind the newest whole one.
    store.write(|tx| tx.put("later", b"x").map(drop)).unwrap();
    let mut once = 0;
    follow(&place.bucket, settings, &mut sources, &mut |event| {
        once +=
            u32::from(matches!(&event, Some(Event::Added(added)) if added.listed.base.is_some()));
        if once > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert!(place.restored(Which::Newest).unwrap() == objects(&store));
    for listed in place.bucket.list().unwrap() {
        assert!(place.bucket.parts(Which::Id(listed.id)).is_ok(), "{listed:?} after {last:?}");
    }
}
