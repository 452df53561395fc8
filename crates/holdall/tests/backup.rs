//! Backups: whole ones and increments of a store that is being written, and what is made of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{
    Backup, BackupId, BackupInfo, BackupPart, BackupReport, Error, Options, Store, restore,
};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

type Model = BTreeMap<String, Vec<u8>>;

struct Home {
    dir: tempfile::TempDir,
    store: Store,
}

fn home(options: &Options) -> Home {
    let dir = tempfile::tempdir().unwrap();
    let store = options.create(dir.path().join("s")).unwrap();
    Home { dir, store }
}

impl Home {
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn take(&mut self, name: &str, base: Option<BackupId>) -> BackupReport {
        let path = self.at(name);
        take(&mut self.store, &path, base).unwrap()
    }
}

fn take(store: &mut Store, path: &Path, base: Option<BackupId>) -> holdall::Result<BackupReport> {
    let backup = base.map_or_else(Backup::new, |base| Backup::new().base(base));
    backup.to_file(store, path, &mut |_| ControlFlow::Continue(()))
}

fn restored(to: &Path, parts: &[PathBuf]) -> holdall::Result<holdall::RestoreReport> {
    let parts = parts.iter().cloned().map(BackupPart::File);
    restore(to, parts, &mut |_| ControlFlow::Continue(()))
}

fn contents(store: &Store) -> Model {
    let reader = store.read().unwrap();
    let names: Vec<_> = reader.names("").map(|entry| entry.unwrap().name).collect();
    let get = |name: Vec<u8>| {
        let bytes = reader.get(&name).unwrap().unwrap();
        (String::from_utf8(name).unwrap(), bytes)
    };
    names.into_iter().map(get).collect()
}

fn bytes(rng: &mut SmallRng) -> Vec<u8> {
    let len = match rng.random_range(0..10) {
        0..6 => rng.random_range(0..3_000),
        6..9 => rng.random_range(0..60_000),
        _ => rng.random_range(0..600_000),
    };
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

/// Some random changes, each a transaction of its own.
fn change(store: &Store, model: &mut Model, rng: &mut SmallRng, times: usize) {
    for _ in 0..times {
        let name = format!("n{:03}", rng.random_range(0..150));
        let known = model.contains_key(&name);
        match rng.random_range(0..10) {
            0..2 if known => {
                store.write(|tx| tx.remove(&name)).unwrap();
                model.remove(&name);
            }
            2..5 if known => {
                let (more, old) = (bytes(rng), model.get_mut(&name).unwrap());
                let at = rng.random_range(0..=old.len());
                store.write(|tx| tx.insert(&name, at as u64, &more)).unwrap();
                old.splice(at..at, more);
            }
            5 if known => {
                store.write(|tx| tx.copy(&name, format!("{name}c"))).ok();
                let copy = model[&name].clone();
                model.entry(format!("{name}c")).or_insert(copy);
            }
            _ => {
                let new = bytes(rng);
                store.write(|tx| tx.put(&name, &new).map(drop)).unwrap();
                model.insert(name, new);
            }
        }
    }
}

#[test]
fn every_backup_is_the_state_it_was_taken_at() {
    for seed in 0..8_u64 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let page = [4096, 8192, 16384][seed as usize % 3];
        let options = Options::default().page_size(page).cache_bytes(2 << 20);
        let (mut home, mut model) = (home(&options), Model::new());
        change(&home.store, &mut model, &mut rng, 60);
        let mut at = vec![(home.take("0", None), model.clone())];
        let mut parts = vec![home.at("0")];
        for n in 1..6 {
            change(&home.store, &mut model, &mut rng, 15);
            match rng.random_range(0..4) {
                0 => home.store.checkpoint().unwrap(),
                1 => {
                    drop(home.store.defrag(&Default::default(), &mut |_| ControlFlow::Continue(())))
                }
                2 => {
                    let Home { dir, store } = home;
                    store.close().unwrap();
                    let store = options.open(dir.path().join("s")).unwrap();
                    home = Home { dir, store };
                }
                _ => {}
            }
            let report = home.take(&n.to_string(), at[n - 1].0.id);
            at.push((report, model.clone()));
            parts.push(home.at(&n.to_string()));
        }
        for (n, (report, model)) in at.iter().enumerate() {
            let to = home.at(&format!("r{n}"));
            let got = restored(&to, &parts[..=n]).unwrap();
            assert_eq!(got.id, report.id);
            let store = Store::open(&to).unwrap();
            assert!(contents(&store) == *model, "seed {seed}, backup {n}");
            assert!(store.verify().unwrap().is_sound());
            store.write(|tx| tx.put("more", &[1; 9000]).map(drop)).unwrap();
            store.close().unwrap();
        }
        let whole = Store::open_read_only(home.at("0")).unwrap();
        assert!(contents(&whole) == at[0].1);
    }
}

#[test]
fn an_increment_costs_what_changed() {
    let mut home = home(&Options::default());
    let large = |n: usize| vec![n as u8; 1 << 20];
    for n in 0..100 {
        home.store.write(|tx| tx.put(format!("{n}"), &large(n)).map(drop)).unwrap();
    }
    let base = home.take("base", None);
    assert!(base.copied >= 100 << 20 && base.verified.unwrap().is_sound());
    home.store.write(|tx| tx.put("50", &large(7)).map(drop)).unwrap();
    let next = home.take("next", base.id);
    assert!(next.copied < 5 << 20, "{next:?}");
    let none = home.take("none", next.id);
    assert!(none.copied < 200 << 10, "{none:?}");
    let file = std::fs::metadata(home.at("none")).unwrap().len();
    assert!(file < 200 << 10, "{file}");
}

#[test]
fn what_is_written_meanwhile_is_there_or_not() {
    let mut home = home(&Options::default().cache_bytes(4 << 20));
    let put = |store: &Store, n: u32| {
        store
            .write(|tx| {
                (0..20).try_for_each(|i| {
                    let len = if i < 2 { 200_000 } else { 900 };
                    tx.put(format!("{i}"), &[n.to_le_bytes(); 4].concat().repeat(len / 16))
                        .map(drop)
                })
            })
            .unwrap();
    };
    put(&home.store, 0);
    home.store
        .write(|tx| (0..60).try_for_each(|i| tx.put(format!("x{i}"), &[i; 500_000]).map(drop)))
        .unwrap();
    let (stop, writer) = (AtomicBool::new(false), home.store.clone());
    let mut base = None;
    std::thread::scope(|scope| {
        scope.spawn(|| (1..).take_while(|_| !stop.load(SeqCst)).for_each(|n| put(&writer, n)));
        for n in 0..10 {
            base = home.take(&n.to_string(), base).id;
        }
        stop.store(true, SeqCst);
    });
    let parts: Vec<PathBuf> = (0..10).map(|n| home.at(&n.to_string())).collect();
    let mut last = 0;
    for n in 0..10 {
        let to = home.at(&format!("r{n}"));
        restored(&to, &parts[..=n]).unwrap();
        let all = contents(&Store::open(&to).unwrap());
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let first = number(&all["0"]);
        assert!(first >= last, "{first} after {last}");
        last = first;
        for i in 0..20 {
            let bytes = &all[&i.to_string()];
            assert!(bytes.chunks_exact(4).all(|part| number(part) == first), "{n}: object {i}");
        }
    }
    assert!(last > 10);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let mut home = home(&Options::default());
    let put = |store: &Store, n: u8| store.write(|tx| tx.put("a", &[n; 100]).map(drop)).unwrap();
    put(&home.store, 0);
    let ids: Vec<_> = (0..3_u8)
        .scan(None, |base, n| {
            put(&home.store, n + 1);
            *base = home.take(&n.to_string(), *base).id;
            Some(base.unwrap())
        })
        .collect();
    let (to, at) = (home.at("to"), |n: u8| home.at(&n.to_string()));
    let refused = |parts: &[PathBuf], why: &str| {
        let error = restored(&to, parts).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(!to.exists());
    };
    refused(&[at(0), at(2)], &ids[1].to_string());
    refused(&[at(1), at(2)], "none of these is a whole backup");
    refused(&[at(0), at(0)], "both whole");
    refused(&[at(0), at(1), at(1)], "build on the same backup");
    let mut other = home_of_other();
    other.take("x", None);
    let y = other.at("y");
    let error = take(&mut other.store, &y, Some(ids[0])).unwrap_err();
    assert!(matches!(error, Error::NotFound(_)), "{error}");
    assert!(!y.exists());
    refused(&[other.at("x"), at(1)], "of another store");
    refused(&[home.at("s"), at(1)], "store of its own");
    // A file with that name stays as it is.
    std::fs::write(&to, b"mine").unwrap();
    assert!(matches!(restored(&to, &[at(0)]), Err(Error::Exists(_))));
    assert!(matches!(take(&mut home.store, &to, None), Err(Error::Exists(_))));
    assert_eq!(std::fs::read(&to).unwrap(), b"mine");
    std::fs::remove_file(&to).unwrap();
    // A backup that was written is one no more.
    assert_eq!(BackupInfo::read(home.at("0")).unwrap().id, Some(ids[0]));
    put(&Store::open(home.at("0")).unwrap(), 9);
    assert!(BackupInfo::read(home.at("0")).is_err());
    let refused_now = restored(&home.at("to2"), &[home.at("0"), home.at("1")]).unwrap_err();
    assert!(matches!(refused_now, Error::NotAStore { .. }), "{refused_now}");
    let left = std::fs::read_dir(home.dir.path()).unwrap();
    let left = left.filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
}

fn home_of_other() -> Home {
    let home = home(&Options::default());
    home.store.write(|tx| tx.put("other", b"1").map(drop)).unwrap();
    home
}

#[test]
fn every_flipped_byte_of_an_increment_is_found() {
    let mut home = home(&Options::default());
    let base = home.take("base", None);
    home.store.write(|tx| tx.put("a", &[7; 30_000]).map(drop)).unwrap();
    home.take("next", base.id);
    let path = home.at("next");
    let whole = std::fs::read(&path).unwrap();
    let parts = [home.at("base"), path.clone()];
    let mut rng = SmallRng::seed_from_u64(1);
    for n in 0..60 {
        let to = home.at(&format!("r{n}"));
        let at = rng.random_range(0..whole.len());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        if n % 3 == 0 {
            file.set_len(at as u64).unwrap();
        } else {
            file.write_all_at(&[whole[at] ^ 16], at as u64).unwrap();
        }
        assert!(restored(&to, &parts).is_err(), "byte {at}");
        assert!(!to.exists());
        std::fs::write(&path, &whole).unwrap();
    }
    restored(&home.at("to"), &parts).unwrap();
}

#[test]
fn a_damaged_page_is_named_and_no_backup_made() {
    let mut home = home(&Options::default());
    home.store.write(|tx| tx.put("a", &[0xa7; 300_000]).map(drop)).unwrap();
    home.store.checkpoint().unwrap();
    let path = home.at("s");
    let all = std::fs::read(&path).unwrap();
    let at = all.windows(4096).position(|part| part == [0xa7; 4096]).unwrap() as u64 + 9000;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"x", at).unwrap();
    let to = home.at("to");
    let error = take(&mut home.store, &to, None).unwrap_err();
    assert!(matches!(&error, Error::Corrupt { .. }), "{error}");
    assert!(!to.exists());
    file.write_all_at(&[0xa7], at).unwrap();
    take(&mut home.store, &to, None).unwrap();
}

#[test]
fn a_compact_backup_is_a_small_store_of_its_own() {
    let mut home = home(&Options::default());
    let mut rng = SmallRng::seed_from_u64(5);
    for i in 0..300 {
        home.store.write(|tx| tx.put(format!("n{i:03}"), &[i as u8; 20_000])).unwrap();
    }
    home.store.write(|tx| tx.copy("n001", "n001 copied")).unwrap();
    for i in (0..300).filter(|i| i % 3 != 1) {
        home.store.write(|tx| tx.remove(format!("n{i:03}"))).unwrap();
    }
    home.store.write(|tx| tx.insert("n004", 10_000, &bytes(&mut rng))).unwrap();
    let oids = |store: &Store| {
        let reader = store.read().unwrap();
        reader
            .oids()
            .map(|oid| oid.unwrap())
            .map(|oid| (oid, reader.metadata(oid).unwrap().version))
            .collect::<Vec<_>>()
    };
    let (whole, packed) = (home.at("whole"), home.at("packed"));
    let (other, never) = (home.at("i"), home.at("e"));
    take(&mut home.store, &whole, None).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let report = Backup::new().compact(true).to_file(&mut home.store, &packed, &mut go_on).unwrap();
    assert!(report.id.is_none() && report.verified.is_some());
    let len = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(len(&packed) < len(&whole) * 2 / 3, "{} of {}", len(&packed), len(&whole));
    assert!(matches!(BackupInfo::read(&packed), Err(Error::NotAStore { .. })), "it is no base");
    let store = Store::open(&packed).unwrap();
    assert_eq!((contents(&store), oids(&store)), (contents(&home.store), oids(&home.store)));
    // What cannot be packed is refused, and nothing is left of what is ended.
    let base = BackupInfo::read(&whole).unwrap().id.unwrap();
    let increment = Backup::new().base(base).compact(true);
    let refused = increment.to_file(&mut home.store, &other, &mut go_on);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let refused = Backup::new().compact(true).to_stream(&mut home.store, Vec::new(), &mut go_on);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let mut stop = |at: holdall::Progress| {
        if at.total == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let ended = Backup::new().compact(true).to_file(&mut home.store, &never, &mut stop);
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    let mut left: Vec<_> = std::fs::read_dir(home.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["packed", "s", "s-log", "whole"]);
}
