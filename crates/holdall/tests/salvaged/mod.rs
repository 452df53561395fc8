//! Stores to be damaged, what is in them, and what must come back.

use super::damage::{bytes, quiet};
use holdall::inspect::{LogPart, ObjectBody, TreePart, object, page, spaces};
use holdall::{Attributes, Oid, Options, PutOptions, Reader, Result, Store, Version};
use holdall_core::log_format::Record;
use holdall_core::page::PageKind;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_io::{Disk, MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An object as a state has it.
#[derive(Clone, PartialEq, Eq)]
pub struct Truth {
    pub collection: String,
    pub name: Option<Vec<u8>>,
    pub attributes: Attributes,
    pub version: Version,
    pub modified: Option<SystemTime>,
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (collection, len) = (&self.collection, self.bytes.len());
        let name = self.name.as_deref().map(String::from_utf8_lossy);
        write!(f, "{collection}/{name:?}, version {}, {len} bytes", self.version)
    }
}

/// All objects of a state, with the pages without which an object is not whole.
#[derive(Debug, Default, Clone)]
pub struct State {
    pub objects: BTreeMap<Oid, (Truth, BTreeSet<u64>)>,
    /// There are images, or were since the last checkpoint.
    pub images: bool,
}

/// The files of a store.
#[derive(Debug, Clone)]
pub struct Files {
    pub page_size: usize,
    pub volume: Vec<u8>,
    pub log: Option<Vec<u8>>,
}

impl Files {
    pub fn open(&self) -> Result<Store> {
        let storage = MemoryStorage::from_bytes(self.volume.clone(), self.log.clone());
        quiet().open_read_only_on(Arc::new(storage))
    }

    /// The last checkpoint, as if the store had been closed then; None while one was under way.
    pub fn at_checkpoint(&self) -> Option<Self> {
        let mut files = Self { log: None, ..self.clone() };
        for at in SLOT_AT {
            let slot = &mut files.volume[at as usize..][..SLOT_BYTES];
            let sb = Superblock::decode(slot).ok()??;
            if sb.in_place > sb.replay {
                return None;
            }
            slot.copy_from_slice(&Superblock { log_required: false, ..sb }.encode());
        }
        Some(files)
    }

    /// Superblocks that are whole.
    pub fn superblocks(&self) -> usize {
        let slot = |at: u64| self.volume.get(at as usize..at as usize + SLOT_BYTES);
        let whole = |slot: &[u8]| Superblock::decode(slot).is_ok_and(|sb| sb.is_some());
        SLOT_AT.into_iter().filter_map(slot).filter(|slot| whole(slot)).count()
    }

    pub fn pages(&self) -> u64 {
        (self.volume.len() / self.page_size) as u64
    }

    pub fn page(&mut self, no: u64) -> &mut [u8] {
        let size = self.page_size;
        &mut self.volume[no as usize * size..][..size]
    }

    /// Pages with a header of this kind.
    pub fn of_kind(&self, kind: PageKind) -> Vec<u64> {
        let pages = self.volume.chunks_exact(self.page_size).zip(0..);
        let whole = pages.filter(|(bytes, no)| {
            holdall_core::page::check(bytes, holdall_core::PageNo(*no)).is_ok_and(|k| k == kind)
        });
        whole.map(|(_, no)| no).collect()
    }
}

/// Files on a device that cannot read a part of them.
#[derive(Debug, Clone)]
pub struct Unreadable {
    pub volume: Arc<dyn Disk>,
    pub bad: Vec<Range<u64>>,
}

impl Disk for Unreadable {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let end = offset + buf.len() as u64;
        match self.bad.iter().any(|bad| bad.start < end && offset < bad.end) {
            true => Err(io::Error::other("the device cannot read this")),
            false => self.volume.read_at(offset, buf),
        }
    }
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
    fn len(&self) -> io::Result<u64> {
        self.volume.len()
    }
    fn grow(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn allocated(&self) -> io::Result<u64> {
        self.volume.allocated()
    }
}

impl Storage for Unreadable {
    fn name(&self) -> String {
        "a device".into()
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn volume(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }
    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(None)
    }
    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn remove_log(&self, _: &dyn Disk) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

pub const COLLECTIONS: [&str; 5] = ["default", "photos", "small", "z", "gone"];

fn step(store: &Store, rng: &mut SmallRng, ends: bool) {
    let done = store.write(|tx| {
        let collection = COLLECTIONS[rng.random_range(0..COLLECTIONS.len())];
        if collection == "gone" && rng.random_bool(0.1) {
            return tx.drop_collection("gone").map(drop);
        }
        let mut tx = tx.collection(collection)?;
        for _ in 0..rng.random_range(1..8) {
            let names = if collection == "small" { 6 } else { 30 };
            let name = format!("name {}", rng.random_range(0..names));
            let len = match rng.random_range(0..20) {
                0..10 => rng.random_range(0..300),
                10..15 => rng.random_range(0..9000),
                15..19 => rng.random_range(0..60_000),
                _ => rng.random_range(0..300_000),
            };
            let size = match tx.lookup(&name)? {
                Some(oid) => Some(tx.metadata(oid)?.size),
                None => None,
            };
            let attributes = Attributes::from([("k".into(), bytes(rng, len % 200))]);
            match (rng.random_range(0..12), size) {
                (0..4, _) => {
                    tx.put(&name, &bytes(rng, len))?;
                }
                (4, _) if collection != "small" => {
                    tx.create(&bytes(rng, len))?;
                }
                (5, Some(_)) => {
                    tx.remove(&name)?;
                }
                (6, Some(size)) => {
                    tx.set_len(&name, size + len as u64)?;
                }
                (7, Some(_)) => tx.set_attributes(&name, &attributes)?,
                (8, Some(size)) => {
                    tx.insert(&name, rng.random_range(0..=size), &bytes(rng, len % 5000))?;
                }
                (9, Some(size)) => {
                    let from = rng.random_range(0..=size);
                    tx.delete_range(&name, from..rng.random_range(from..=size))?;
                }
                (10, Some(_)) => {
                    tx.copy(&name, format!("{name} copied"))?;
                }
                _ => {
                    let options = PutOptions::with_attributes(attributes);
                    tx.put_with(&name, &bytes(rng, len), &options)?;
                }
            }
        }
        if ends { Err(holdall::Error::Invalid("given up".into())) } else { Ok(()) }
    });
    assert!(matches!(done, Ok(()) | Err(holdall::Error::Invalid(_))), "{done:?}");
}

/// A store after random transactions, closed or as a crash leaves it.
pub fn files(seed: u64) -> Files {
    let mut rng = SmallRng::seed_from_u64(seed);
    let page_size = [4096, 8192, 16384][rng.random_range(0..3)];
    let pages = [64, 512, 4096][rng.random_range(0..3)];
    let images = rng.random_bool(0.2);
    let options = quiet().page_size(page_size).tuning(|t| {
        let t = t.space_pages(pages).small_collections(12, 1 << 20).log_bytes(4 << 20);
        if images { t.transaction_bytes(2 * page_size) } else { t }
    });
    let storage = Arc::new(MemoryStorage::new());
    let mut store = options.create_on(storage.clone()).unwrap();
    let mut before = None;
    for _ in 0..rng.random_range(3..60) {
        let ends = rng.random_bool(0.1);
        step(&store, &mut rng, ends);
        match rng.random_range(0..30) {
            0 => store.checkpoint().unwrap(),
            1 => before = Some(store.read().unwrap()),
            2 => drop(before.take()),
            3 => {
                drop(before.take());
                store.close().unwrap();
                store = options.open_on(storage.clone()).unwrap();
            }
            _ => {}
        }
    }
    if rng.random_bool(0.6) {
        store.close().unwrap();
        drop(before);
        let (volume, log) = storage.snapshot();
        return Files { page_size, volume, log };
    }
    let (volume, log) = storage.snapshot();
    Files { page_size, volume, log }
}

/// Where images lie from which the log makes pages.
fn bases(files: &Files) -> BTreeMap<u64, Vec<u64>> {
    let mut bases: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let storage = MemoryStorage::from_bytes(files.volume.clone(), files.log.clone());
    for part in holdall::inspect::log_of(&storage).unwrap().map(Result::unwrap) {
        let LogPart::Group(group) = part else { continue };
        for record in group.records().map(Result::unwrap) {
            if let Record::FromImage { page, image, .. } = record {
                bases.entry(page.0).or_default().push(image.0);
            }
        }
    }
    bases
}

/// What `files` hold.
pub fn state(files: &Files) -> State {
    let store = files.open().unwrap();
    let reader = store.read().unwrap();
    let (infos, bases) = (infos(&store), bases(files));
    let mut all = State { images: !bases.is_empty(), ..State::default() };
    all.images |= store.written_elsewhere().images > 0;
    for collection in reader.collections().unwrap() {
        let reader = reader.collection(&collection).unwrap();
        for entry in reader.names("") {
            let oid = entry.unwrap().oid;
            all.objects.insert(oid, truth(&store, &reader, &collection, oid, &infos));
        }
    }
    for oid in reader.oids().map(Result::unwrap) {
        // One without a name: its collection is that of its record's page.
        all.objects.entry(oid).or_insert_with(|| truth(&store, &reader, "", oid, &infos));
    }
    for (_, pages) in all.objects.values_mut() {
        let more: Vec<u64> =
            pages.iter().filter_map(|no| bases.get(no)).flatten().copied().collect();
        pages.extend(more);
    }
    all
}

/// The info page of each stretch, by its first and last page.
fn infos(store: &Store) -> Vec<(u64, u64, u64)> {
    let mut all = Vec::new();
    for (space, _) in spaces(store).unwrap() {
        for stretch in holdall::inspect::space(store, space).unwrap().stretches {
            all.push((stretch.first.0, stretch.last.0, stretch.content.unwrap().1.0));
        }
    }
    all
}

fn truth(
    store: &Store,
    reader: &Reader,
    collection: &str,
    oid: Oid,
    infos: &[(u64, u64, u64)],
) -> (Truth, BTreeSet<u64>) {
    let dump = object(store, "default", oid).unwrap();
    let mut pages = vec![dump.place.page];
    pages.extend(dump.rest.map(|loc| loc.page));
    let mut segments = BTreeSet::new();
    if let ObjectBody::Large(large) = dump.body {
        for part in large.tree {
            match part {
                TreePart::Node { page, .. } => pages.push(page),
                TreePart::Segment(_, slice) if slice.is_run() => {
                    segments
                        .extend(slice.reference..slice.reference + slice.pages(large.page_size));
                }
                _ => {}
            }
        }
    }
    let of = |page: &u64| infos.iter().find(|(first, last, _)| (first..=last).contains(&page));
    pages.extend(segments.iter().map(|page| holdall::PageNo(of(page).unwrap().2)));
    // Where they lie.
    let mut places: BTreeSet<u64> = segments;
    places.extend(pages.iter().map(|no| page(store, *no).unwrap().image.unwrap_or(*no).0));
    (truth_of(reader, collection, oid), places)
}

/// An object as a reader sees it.
fn truth_of(reader: &Reader, collection: &str, oid: Oid) -> Truth {
    let m = reader.metadata(oid).unwrap();
    Truth {
        collection: collection.into(),
        name: m.name,
        attributes: m.attributes,
        version: m.version,
        modified: m.modified,
        bytes: reader.get(oid).unwrap().unwrap(),
    }
}

/// What a salvaged store holds, by OID; it must be sound.
pub fn salvaged(options: &Options, storage: Arc<MemoryStorage>) -> BTreeMap<Oid, Truth> {
    let store = options.open_read_only_on(storage).unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    let reader = store.read().unwrap();
    let mut all = BTreeMap::new();
    for collection in reader.collections().unwrap() {
        let reader = reader.collection(&collection).unwrap();
        for entry in reader.names("") {
            let oid = entry.unwrap().oid;
            all.insert(oid, truth_of(&reader, &collection, oid));
        }
    }
    for oid in reader.oids().map(Result::unwrap) {
        all.entry(oid).or_insert_with(|| truth_of(&reader, "", oid));
    }
    all
}
