//! Salvage: everything of a damaged store that is whole comes back, and nothing as what it is not.
//!
//! The number of stores of the campaign is 150, or that in `HOLDALL_SALVAGE_STORES`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod damage;
mod salvaged;

use damage::quiet;
use holdall::{Error, LostObject, Oid, Salvage, SalvageReport, Store};
use holdall_core::page::PageKind;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES};
use holdall_io::{Disk, MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use salvaged::{Files, State, Truth, Unreadable, files, salvaged, state};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What was done to a store.
#[derive(Debug, Default)]
struct Damage {
    what: Vec<String>,
    /// Places of pages that do not hold what they did.
    places: BTreeSet<u64>,
    /// The log is gone, or a part of it.
    log: bool,
}

impl Damage {
    fn zero(&mut self, files: &mut Files, no: u64) {
        files.page(no).fill(0);
        self.places.insert(no);
    }

    fn garble(&mut self, files: &mut Files, no: u64, rng: &mut SmallRng) {
        rng.fill(files.page(no));
        self.places.insert(no);
    }

    fn random(&mut self, files: &mut Files, rng: &mut SmallRng) {
        let pages = files.pages();
        match rng.random_range(0..8) {
            0 | 1 => {
                let count = rng.random_range(1..=pages / 4 + 1);
                let garbled = rng.random_bool(0.3);
                self.what.push(format!("{count} pages zeroed or garbled ({garbled})"));
                for _ in 0..count {
                    let no = rng.random_range(0..pages);
                    if garbled { self.garble(files, no, rng) } else { self.zero(files, no) }
                }
            }
            2 => {
                self.what.push("pages swapped".into());
                for _ in 0..rng.random_range(1..20) {
                    let [a, b] = [0; 2].map(|_| rng.random_range(0..pages));
                    let (page, other) = (files.page(a).to_vec(), files.page(b).to_vec());
                    files.page(b).copy_from_slice(&page);
                    files.page(a).copy_from_slice(&other);
                    self.places.extend([a, b]);
                }
            }
            3 => {
                let keep = rng.random_range(pages / 2..=pages);
                self.what.push(format!("cut to {keep} of {pages} pages"));
                files.volume.truncate(keep as usize * files.page_size);
                self.places.extend(keep..pages);
            }
            4 => self.superblocks(files, rng),
            5 | 6 => {
                let kinds = PageKind::ALL.into_iter();
                let kinds: Vec<_> = kinds
                    .filter(|kind| !matches!(kind, PageKind::Heap | PageKind::SegmentNode))
                    .filter(|_| rng.random_bool(0.4))
                    .collect();
                self.what.push(format!("lost all of {kinds:?}"));
                let all: Vec<u64> = kinds.iter().flat_map(|kind| files.of_kind(*kind)).collect();
                all.into_iter().for_each(|no| self.zero(files, no));
            }
            _ => self.log(files, rng),
        }
    }

    fn superblocks(&mut self, files: &mut Files, rng: &mut SmallRng) {
        let lost = rng.random_range(1..=2);
        self.what.push(format!("{lost} superblocks lost"));
        for at in SLOT_AT.into_iter().rev().take(lost) {
            if let Some(slot) = files.volume.get_mut(at as usize..at as usize + SLOT_BYTES) {
                slot.fill(0);
            }
        }
    }

    fn log(&mut self, files: &mut Files, rng: &mut SmallRng) {
        let Some(log) = &mut files.log else { return };
        self.log = true;
        let blocks = log.len() / 4096;
        match rng.random_range(0..3) {
            0 => {
                self.what.push("log lost".into());
                files.log = None;
            }
            1 => {
                self.what.push("blocks of the log zeroed".into());
                for _ in 0..rng.random_range(1..5) {
                    log[rng.random_range(0..blocks) * 4096..][..4096].fill(0);
                }
            }
            _ => {
                self.what.push("log cut".into());
                log.truncate(rng.random_range(0..blocks) * 4096);
            }
        }
    }
}

fn salvage(files: &Files) -> holdall::Result<(SalvageReport, BTreeMap<Oid, Truth>)> {
    let damaged = MemoryStorage::from_bytes(files.volume.clone(), files.log.clone());
    let damaged: Arc<dyn Storage> = Arc::new(damaged);
    let new = Arc::new(MemoryStorage::new());
    let report = Salvage::new().on(&damaged, &(new.clone() as Arc<dyn Storage>))?;
    Ok((report, salvaged(&quiet(), new)))
}

/// Whether `found` is `truth`: the name of its collection may have become a number, and its name be
/// lost if the report says so.
fn is_same(found: &Truth, truth: &Truth, doubtful: bool) -> bool {
    let number = found.collection.trim_end_matches('\'').parse::<u64>().is_ok();
    let collection = number || truth.collection.is_empty() || found.collection == truth.collection;
    let name = found.name == truth.name || doubtful && found.name.is_none();
    let rest = |t: &Truth| (t.attributes.clone(), t.version, t.modified);
    (collection || found.name.is_none())
        && name
        && rest(found) == rest(truth)
        && found.bytes == truth.bytes
}

/// Objects that must come back, and those of which another version came, as the report says.
#[derive(Debug, Default)]
struct Tally {
    must: u64,
    guessed: u64,
    /// Missing where the tree of images was hit.
    unknown: u64,
}

struct Case {
    seed: u64,
    before: Files,
    last: State,
    checkpoint: Option<State>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let before = files(seed);
        let last = state(&before);
        let crashed = before.log.is_some();
        let checkpoint = before.at_checkpoint().filter(|_| crashed).map(|files| state(&files));
        Self { seed, before, last, checkpoint }
    }

    fn check(&self, rng: &mut SmallRng, tally: &mut Tally) {
        let (mut files, mut damage) = (self.before.clone(), Damage::default());
        for _ in 0..rng.random_range(1..=2) {
            damage.random(&mut files, rng);
        }
        let context =
            format!("seed {}, {} bytes a page: {:?}", self.seed, files.page_size, damage.what);
        let (report, found) = match salvage(&files) {
            Ok(found) => found,
            Err(e @ Error::NotAStore { .. }) => {
                let whole = PageKind::ALL.iter().any(|kind| !files.of_kind(*kind).is_empty());
                assert!(!whole, "{e}: {context}");
                return;
            }
            Err(e) => panic!("{e}: {context}"),
        };
        let doubtful = report.doubtful.iter().map(|d| d.oid).collect();
        let lost = report.lost.iter().map(|lost| lost.oid).collect();
        let case = self;
        let brought = Brought { case, files, damage, report, found, doubtful, lost, context };
        brought.has_what_is_whole(tally);
        brought.has_nothing_else();
        brought.tells_the_rest();
    }
}

/// What came of a damaged store.
struct Brought<'c> {
    case: &'c Case,
    files: Files,
    damage: Damage,
    report: SalvageReport,
    found: BTreeMap<Oid, Truth>,
    doubtful: BTreeSet<Oid>,
    lost: BTreeSet<Oid>,
    context: String,
}

impl Brought<'_> {
    fn hit(&self, kind: PageKind) -> bool {
        self.case.before.of_kind(kind).iter().any(|no| self.damage.places.contains(no))
    }

    fn has_images(&self) -> bool {
        self.case.last.images || !self.case.before.of_kind(PageKind::Images).is_empty()
    }

    fn notes(&self, parts: &[&str]) -> bool {
        self.report.notes.iter().any(|note| parts.iter().any(|part| note.contains(part)))
    }

    /// Whether all that an object needs is whole, of the last state or of the checkpoint before.
    fn must_have(&self, oid: Oid, truth: &Truth, pages: &BTreeSet<u64>) -> bool {
        let whole = |pages| self.damage.places.is_disjoint(pages);
        let old = self.case.checkpoint.as_ref().and_then(|state| state.objects.get(&oid));
        match (self.damage.log, old) {
            (false, _) => whole(pages),
            (true, Some((was, places))) => was == truth && whole(pages) && whole(places),
            (true, None) => false,
        }
    }

    fn has_what_is_whole(&self, tally: &mut Tally) {
        // Without their tree nobody can tell images from those that an abort has left.
        let tree = self.hit(PageKind::Images) || self.hit(PageKind::Root);
        let guesses = self.has_images() && tree;
        for (oid, (truth, pages)) in &self.case.last.objects {
            if !self.must_have(*oid, truth, pages) {
                continue;
            }
            tally.must += 1;
            let (found, told) = (self.found.get(oid), self.doubtful.contains(oid));
            match found {
                Some(found) if is_same(found, truth, told) => {}
                // Of two records nobody can tell which was of a transaction that was given up.
                Some(_) if told => tally.guessed += 1,
                _ if guesses => tally.unknown += 1,
                _ => {
                    let (lost, places) = (self.lost.contains(oid), &self.damage.places);
                    panic!(
                        "{oid} {truth:?} in {pages:?} is missing ({lost}): {found:?}; {:?}; \
                         damaged {places:?}; {}",
                        self.report.notes, self.context
                    );
                }
            }
        }
    }

    /// Whether all that was read is of one state.
    fn is_sure(&self) -> bool {
        !self.damage.log && !self.notes(&["the log"]) && self.files.superblocks() > 0
    }

    fn has_nothing_else(&self) {
        for (oid, found) in &self.found {
            assert!(!self.lost.contains(oid), "{oid} is lost and there: {}", self.context);
            let told = self.doubtful.contains(oid);
            // Nobody knows whether a collection whose name is lost was dropped.
            let dropped = !self.case.last.objects.contains_key(oid);
            let guessed =
                self.notes(&["tree of images", "root page"]) || dropped && self.notes(&["catalog"]);
            if told || guessed || !self.is_sure() {
                continue;
            }
            let states = std::iter::once(&self.case.last).chain(&self.case.checkpoint);
            let mut truths = states.filter_map(|state| state.objects.get(oid));
            let same = truths.any(|(truth, _)| is_same(found, truth, false));
            let last = self.case.last.objects.get(oid);
            assert!(same, "{oid} {found:?} is none: {last:?} {}", self.context);
        }
    }

    fn tells_the_rest(&self) {
        let known = !self.has_images() && !self.hit(PageKind::Handle);
        if !known || !self.is_sure() || self.case.before.log.is_some() {
            return;
        }
        for oid in self.case.last.objects.keys() {
            let told = self.found.contains_key(oid) || self.lost.contains(oid);
            assert!(told, "{oid} is missing, and nothing says so: {}", self.context);
        }
    }
}

#[test]
fn what_is_whole_of_damaged_stores_comes_back() {
    let stores = std::env::var("HOLDALL_SALVAGE_STORES").ok().and_then(|n| n.parse().ok());
    let mut tally = Tally::default();
    for seed in 0..stores.unwrap_or(150_u64).div_ceil(10) {
        let case = Case::new(seed);
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x5a17_a6e5);
        for _ in 0..10 {
            case.check(&mut rng, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.must > 0 && (tally.guessed + tally.unknown) * 1000 < tally.must, "{tally:?}");
}

#[test]
fn of_a_sound_store_nothing_is_lost() {
    for seed in 0..30 {
        let case = Case::new(seed);
        let (report, found) = salvage(&case.before).unwrap();
        assert!(report.is_whole(), "seed {seed}: {report:?}");
        assert_eq!(found.len(), case.last.objects.len(), "seed {seed}");
        for (oid, (truth, _)) in &case.last.objects {
            assert!(is_same(&found[oid], truth, false), "seed {seed}: {oid}");
        }
    }
}

/// A store in a file, and what has it open.
fn in_file(dir: &std::path::Path) -> Store {
    let store = quiet().create(dir.join("s")).unwrap();
    store
        .write(|tx| {
            tx.put("small", b"1")?;
            tx.put("large", &[7; 200_000])?;
            tx.copy("large", "copy")?;
            tx.put("sparse", b"begin")?;
            tx.set_len("sparse", 1 << 40)?;
            tx.append("sparse", b"end")
        })
        .unwrap();
    store
}

#[test]
fn the_new_store_goes_on_where_the_old_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let store = in_file(dir.path());
    let oids: Vec<Oid> = store.read().unwrap().oids().map(Result::unwrap).collect();
    let version = store.read().unwrap().metadata("small").unwrap().version;
    store.write(|tx| tx.remove("small")).unwrap();
    store.close().unwrap();
    let (from, to) = (dir.path().join("s"), dir.path().join("n"));
    let report = Salvage::new().to_file(&from, &to, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.objects, report.collections), (3, 1));
    let store = quiet().open(&to).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.get("copy").unwrap().unwrap(), [7; 200_000]);
    let mut end = [0; 3];
    reader.read_at("sparse", 1 << 40, &mut end).unwrap();
    assert_eq!((&end, reader.metadata("sparse").unwrap().size), (b"end", (1 << 40) + 3));
    assert!(store.stat().unwrap().file_bytes < 2 << 20, "what was never written takes nothing");
    // No OID is given out twice, nor a version.
    let new = store.write(|tx| tx.put("small", b"1")).unwrap();
    assert!(!oids.contains(&new));
    assert_ne!(store.read().unwrap().metadata("small").unwrap().version, version);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn nothing_is_replaced_and_what_is_ended_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = in_file(dir.path());
    let (from, to) = (dir.path().join("s"), dir.path().join("n"));
    let salvage = |from: &std::path::Path, to: &std::path::Path| {
        Salvage::new().to_file(from, to, &mut |_| ControlFlow::Continue(()))
    };
    assert!(matches!(salvage(&from, &to), Err(Error::Locked { .. })), "a writer has it");
    store.close().unwrap();
    let before = std::fs::read(&from).unwrap();
    assert!(matches!(salvage(&from, &from), Err(Error::Exists(_))));
    let stopped = Salvage::new().to_file(&from, &to, &mut |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    let mut calls = 0;
    let late = Salvage::new().to_file(&from, &to, &mut |at| {
        calls += 1;
        if at.done * 4 > at.total * 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(late, Err(Error::Cancelled)) && calls > 1, "{late:?}");
    assert!(matches!(salvage(&dir.path().join("none"), &to), Err(Error::NotFound(_))));
    std::fs::write(dir.path().join("text"), [b'x'; 100_000]).unwrap();
    assert!(matches!(salvage(&dir.path().join("text"), &to), Err(Error::NotAStore { .. })));
    std::fs::write(dir.path().join("empty"), b"").unwrap();
    assert!(matches!(salvage(&dir.path().join("empty"), &to), Err(Error::NotAStore { .. })));
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        3,
        "the store, the text, the empty one"
    );
    assert_eq!(std::fs::read(&from).unwrap(), before);
}

#[test]
fn lost_bytes_are_named_and_zeros_stand_for_them_if_asked() {
    let dir = tempfile::tempdir().unwrap();
    in_file(dir.path()).close().unwrap();
    let (from, to) = (dir.path().join("s"), dir.path().join("n"));
    let mut bytes = std::fs::read(&from).unwrap();
    let at = bytes.windows(8192).position(|w| w.iter().all(|b| *b == 7)).unwrap();
    bytes[at + 5000] ^= 1;
    std::fs::write(&from, &bytes).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let report = Salvage::new().to_file(&from, &to, &mut go_on).unwrap();
    let mut lost: Vec<_> = report.lost.iter().map(|lost| lost.name.clone().unwrap()).collect();
    lost.sort();
    assert_eq!((lost, report.objects), (vec![b"copy".to_vec(), b"large".to_vec()], 2));
    let range = |lost: &LostObject| (lost.ranges.len(), lost.ranges[0].clone(), lost.brought);
    assert!(report.lost.iter().all(|lost| range(lost) == (1, 4096..8192, false)));
    let whole = dir.path().join("p");
    let report = Salvage::new().partial(true).to_file(&from, &whole, &mut go_on).unwrap();
    assert!(report.lost.iter().all(|lost| lost.brought) && report.objects == 4, "{report:?}");
    let large = quiet().open(&whole).unwrap().read().unwrap().get("large").unwrap().unwrap();
    assert!(large[4096..8192].iter().all(|b| *b == 0) && large.len() == 200_000);
    assert!(large[..4096].iter().chain(&large[8192..]).all(|b| *b == 7));
}

#[test]
fn what_a_device_cannot_read_is_lost_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    in_file(dir.path()).close().unwrap();
    let bytes = std::fs::read(dir.path().join("s")).unwrap();
    let at = bytes.windows(8192).position(|w| w.iter().all(|b| *b == 7)).unwrap() as u64;
    let volume: Arc<dyn Disk> = MemoryStorage::from_bytes(bytes, None).volume();
    let bad = vec![0..4096, at + 8192..at + 8292];
    let damaged: Arc<dyn Storage> = Arc::new(Unreadable { volume, bad });
    let new: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let report = Salvage::new().on(&damaged, &new).unwrap();
    assert_eq!((report.objects, report.unreadable), (2, 8192), "{report:?}");
    assert_eq!(report.notes, ["the superblock at byte 0 is lost"]);
    let ranges: Vec<_> = report.lost.iter().flat_map(|lost| lost.ranges.clone()).collect();
    assert_eq!(ranges, [8192..12288, 8192..12288]);
    assert!(report.lost.iter().all(|lost| lost.why.contains("the device cannot read")));
}
