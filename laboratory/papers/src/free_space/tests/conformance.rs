//! One suite for every algorithm, on every disk, with lazy and eager release: random
//! transactions of up to four at a time, with aborts and reopening, against a map in memory.

use crate::free_space::algorithm::Kind;
use crate::free_space::buckets::UNALLOCATED;
use crate::free_space::heap_file::{HeapFile, Options, Release, Rid, TxId};
use crate::free_space::page::PageMut;
use crate::free_space::volume::Purpose;
use crate::kit::error::Error;
use holdall_io::Disk;
use holdall_io::{FileStorage, MemoryDisk, Storage};
use holdall_testkit::{CostModel, CountedDisk};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Small pages and a small pool, so that pages leave the pool all the time.
const OPTIONS: Options =
    Options { page_size: 1024, pool_pages: 6, max_pages: 4000, release: Release::Lazy };

/// One open transaction of the model.
struct Open {
    tx: TxId,
    created: Vec<Rid>,
    deleted: Vec<(Rid, Vec<u8>)>,
}

struct World {
    file: HeapFile,
    /// Objects that are there, uncommitted ones included.
    objects: BTreeMap<Rid, Vec<u8>>,
    open: Vec<Open>,
    rng: SmallRng,
    aborted: usize,
}

impl World {
    fn step(&mut self) {
        if self.open.len() < 4 && self.rng.random_ratio(1, 6) {
            let tx = self.file.begin().unwrap();
            self.open.push(Open { tx, created: Vec::new(), deleted: Vec::new() });
        }
        let n = self.open.len();
        if n == 0 {
            return;
        }
        let at = self.rng.random_range(0..n);
        match self.rng.random_range(0..20) {
            0..=8 => self.create(at),
            9..=17 => self.delete(at),
            18 => {
                let ended = self.open.swap_remove(at);
                self.file.commit(ended.tx).unwrap();
            }
            _ => self.abort(at),
        }
    }

    fn create(&mut self, at: usize) {
        let len = match self.rng.random_range(0..20) {
            0 => self.rng.random_range(400..=936),
            _ => self.rng.random_range(1..80),
        };
        let object: Vec<u8> = (0..len).map(|_| self.rng.random()).collect();
        let rid = self.file.create(self.open[at].tx, &object).unwrap();
        let before = self.objects.insert(rid, object);
        assert_eq!(before, None, "{rid:?} was in use");
        let ghost = self.open.iter().flat_map(|o| &o.deleted).any(|(r, _)| *r == rid);
        assert!(!ghost || self.open[at].deleted.iter().all(|(r, _)| *r != rid));
        self.open[at].created.push(rid);
    }

    fn delete(&mut self, at: usize) {
        let Some(&rid) =
            self.objects.keys().nth(self.rng.random_range(0..self.objects.len().max(1)))
        else {
            return;
        };
        let locked = self.open.iter().enumerate().any(|(i, o)| i != at && o.created.contains(&rid));
        match self.file.delete(self.open[at].tx, rid) {
            Err(Error::Locked) => assert!(locked),
            Err(other) => panic!("{other}"),
            Ok(bytes) => {
                assert!(!locked);
                let object = self.objects.remove(&rid).unwrap();
                assert_eq!(bytes, object);
                self.open[at].deleted.push((rid, object));
            }
        }
    }

    fn abort(&mut self, at: usize) {
        let ended = self.open.swap_remove(at);
        self.file.abort(ended.tx).unwrap();
        self.aborted += 1;
        for rid in &ended.created {
            self.objects.remove(rid);
        }
        for (rid, object) in ended.deleted {
            if !ended.created.contains(&rid) {
                self.objects.insert(rid, object);
            }
        }
    }

    /// The file holds what the map holds, and the inventory says what the pages say.
    fn check(&mut self) {
        let mut found = BTreeMap::new();
        self.file.scan(|rid, bytes| drop(found.insert(rid, bytes.to_vec()))).unwrap();
        assert_eq!(found, self.objects);
        if let Some((&rid, object)) = self.objects.iter().next() {
            assert_eq!(self.file.read(rid).unwrap(), Some(&object[..]));
        }
        let pages = self.file.volume.pages();
        let mut histogram = [0; 16];
        for page in 0..pages {
            let bucket = self.file.volume.bucket(page).unwrap();
            histogram[usize::from(bucket)] += 1;
            if bucket == UNALLOCATED {
                continue;
            }
            let no = self.file.volume.disk_page(page);
            let frame = self.file.volume.pool().fix(no, Purpose::Read).unwrap();
            // Under eager release the entry of a page with reservations may be behind; it never
            // promises more than there is.
            let told = self.file.told(frame);
            let expected = self.file.volume.buckets().of(told);
            let pending =
                PageMut::view(self.file.volume.pool().bytes_kept(frame)).has_reservations();
            assert!(bucket == expected || (pending && bucket < expected), "{bucket} {expected}");
        }
        assert_eq!(self.file.volume.histogram().unwrap(), histogram);
    }
}

fn run(disk: &Arc<dyn Disk>, kind: Kind, release: Release, steps: usize, seed: u64) {
    let options = Options { release, ..OPTIONS };
    let mut world = World {
        file: HeapFile::open(disk.clone(), options, kind).unwrap(),
        objects: BTreeMap::new(),
        open: Vec::new(),
        rng: SmallRng::seed_from_u64(seed),
        aborted: 0,
    };
    for round in 0..4 {
        for _ in 0..steps {
            world.step();
        }
        world.check();
        for ended in std::mem::take(&mut world.open) {
            world.file.commit(ended.tx).unwrap();
        }
        world.check();
        if round == 1 {
            world.file.switch(kind).unwrap();
        } else {
            let used = world.file.counters();
            assert!(used.created > 0 && used.deleted > 0 && used.pool.writes > 0);
            let new = HeapFile::open(Arc::new(MemoryDisk::new()), options, kind).unwrap();
            std::mem::replace(&mut world.file, new).close().unwrap();
            world.file = HeapFile::open(disk.clone(), options, kind).unwrap();
        }
        world.check();
    }
    assert!(world.aborted > 0 && world.objects.len() > 50, "{}", world.objects.len());
}

fn both(kind: Kind, disk: impl Fn() -> Arc<dyn Disk>, steps: usize) {
    run(&disk(), kind, Release::Lazy, steps, 11);
    run(&disk(), kind, Release::Eager, steps, 12);
}

#[test]
fn every_algorithm_on_the_memory_disk() {
    for kind in Kind::all() {
        both(kind, || Arc::new(MemoryDisk::new()), 4000);
    }
}

#[test]
fn every_algorithm_on_the_counted_disk() {
    for kind in Kind::all() {
        let memory = Arc::new(MemoryDisk::new());
        let counted = Arc::new(CountedDisk::new(memory, CostModel::default()));
        let disk: Arc<dyn Disk> = counted.clone();
        run(&disk, kind, Release::Lazy, 2000, 13);
        let stats = counted.stats();
        assert!(stats.reads > 100 && stats.writes > 100, "{stats}");
    }
}

#[test]
fn every_algorithm_on_a_file() {
    let dir = tempfile::tempdir().unwrap();
    for (n, kind) in Kind::all().into_iter().enumerate() {
        let path = dir.path().join(n.to_string());
        let storage = FileStorage::create(&path).unwrap();
        run(&storage.volume(), kind, Release::Lazy, 1000, 14);
    }
}

/// Two transactions: what one deletes the other cannot use, by any algorithm.
#[test]
fn reserved_space_makes_collisions_under_lazy_release_only() {
    for kind in Kind::all() {
        for release in [Release::Lazy, Release::Eager] {
            let options = Options { release, ..OPTIONS };
            let disk = Arc::new(MemoryDisk::new());
            let mut file = HeapFile::open(disk, options, kind).unwrap();
            let tx = file.begin().unwrap();
            let full: Vec<Rid> = (0..8).map(|_| file.create(tx, &[1; 930]).unwrap()).collect();
            file.commit(tx).unwrap();
            let (a, b) = (file.begin().unwrap(), file.begin().unwrap());
            file.delete(a, full[7]).unwrap();
            let rid = file.create(b, &[2; 800]).unwrap();
            assert_ne!(rid.page, full[7].page, "{}", kind.name());
            let collisions = file.counters().collisions;
            assert_eq!(collisions, u64::from(release == Release::Lazy), "{}", kind.name());
            assert_eq!(file.counters().misled, 0);
            file.abort(a).unwrap();
            assert_eq!(file.read(full[7]).unwrap(), Some(&[1; 930][..]));
            file.commit(b).unwrap();
        }
    }
}

#[test]
fn a_full_volume_says_so_and_stays_usable() {
    let options = Options { max_pages: 3, ..OPTIONS };
    for kind in Kind::all() {
        let mut file = HeapFile::open(Arc::new(MemoryDisk::new()), options, kind).unwrap();
        let tx = file.begin().unwrap();
        let rids: Vec<Rid> = (0..3).map(|_| file.create(tx, &[1; 930]).unwrap()).collect();
        assert!(matches!(file.create(tx, &[1; 930]), Err(Error::Full)), "{}", kind.name());
        assert!(matches!(file.create(tx, &[1; 940]), Err(Error::Size(940))));
        file.commit(tx).unwrap();
        assert_eq!(file.read(rids[2]).unwrap().unwrap().len(), 930);
    }
}
