//! What tests of damage share: small stores with a bit of everything, and a disk of which
//! single bytes differ.

#![expect(dead_code, reason = "each test uses its part")]

use holdall::{Attributes, Error, Oid, Options, PutOptions, Result, Store};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::superblock::Superblock;
use holdall_io::{Disk, MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub fn quiet() -> Options {
    Options::default().background(false).page_size(4096).tuning(|t| t.store_id([7; 16]).clock(|| 1))
}

/// Bytes that differ at every place.
pub fn bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

const COLLECTIONS: [&str; 3] = ["default", "photos", "z"];

/// One random transaction: puts of all sizes, deletes, renames, attributes; sometimes it is
/// given up.
pub fn random_step(store: &Store, rng: &mut SmallRng) {
    let result = store.write(|tx| {
        for _ in 0..rng.random_range(1..6) {
            let mut tx = tx.collection(COLLECTIONS[rng.random_range(0..3)])?;
            let name = format!("name {}", rng.random_range(0..40));
            let len = match rng.random_range(0..10) {
                0..5 => rng.random_range(0..300),
                5..8 => rng.random_range(0..9000),
                _ => rng.random_range(0..300_000),
            };
            let there = tx.lookup(&name)?.is_some();
            match rng.random_range(0..8) {
                0..4 => drop(tx.put(&name, &bytes(rng, len))?),
                4 => drop(tx.create(&bytes(rng, len))?),
                5 if there => assert!(tx.remove(&name)?),
                6 if there => match tx.rename(&name, format!("{name} again")) {
                    Ok(()) | Err(Error::Exists(_)) => {}
                    Err(e) => return Err(e),
                },
                7 if there => {
                    let attributes = Attributes::from([("k".into(), bytes(rng, len % 300))]);
                    tx.set_attributes(&name, &attributes)?;
                }
                _ => {}
            }
        }
        if rng.random_range(0..6) == 0 { Err(Error::Invalid("given up".into())) } else { Ok(()) }
    });
    assert!(matches!(result, Ok(()) | Err(Error::Invalid(_))), "{result:?}");
}

/// Objects by collection and name, and those without a name.
#[derive(Debug, Default, Clone)]
pub struct Model {
    pub named: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    pub unnamed: Vec<(Oid, Vec<u8>)>,
}

impl Model {
    pub fn objects(&self) -> usize {
        self.named.values().map(BTreeMap::len).sum::<usize>() + self.unnamed.len()
    }

    /// Reads everything: each answer must be right or damage; returns how many were damage.
    pub fn check(&self, store: &Store, context: &dyn Fn() -> String) -> usize {
        let mut damaged = 0;
        let mut see = |result: Result<bool>| match result {
            Ok(right) => assert!(right, "wrong answer: {}", context()),
            Err(e) => {
                let names_it = e.to_string().contains("page ") || e.to_string().contains("oid:");
                let unsupported = matches!(e, Error::Unsupported { .. });
                assert!(names_it || unsupported, "{e}: {}", context());
                assert!(e.is_corrupt() || unsupported, "{e:?}: {}", context());
                damaged += 1;
            }
        };
        let reader = match store.read() {
            Ok(reader) => reader,
            Err(e) => {
                see(Err(e));
                return 1;
            }
        };
        for (name, objects) in &self.named {
            let reader = match reader.collection(name) {
                Ok(reader) => reader,
                Err(e) => {
                    see(Err(e));
                    continue;
                }
            };
            let listed: Result<Vec<_>> =
                reader.names("").map(|e| e.map(|entry| entry.name)).collect();
            see(listed.map(|l| l.iter().eq(objects.keys())));
            for (name, bytes) in objects {
                see(reader.get(name).map(|b| b.as_ref() == Some(bytes)));
            }
        }
        for (oid, bytes) in &self.unnamed {
            see(reader.get(*oid).map(|b| b.as_ref() == Some(bytes)));
        }
        damaged
    }
}

/// A small closed store with a bit of everything, and what it holds.
pub fn sample(page_size: usize) -> (Vec<u8>, Model) {
    let mut rng = SmallRng::seed_from_u64(page_size as u64);
    let mut model = Model::default();
    let storage = Arc::new(MemoryStorage::new());
    let options =
        quiet().page_size(page_size).tuning(|t| t.space_pages(64).growth_bytes(page_size as u64));
    // "photos" is large, "gaps" small.
    let options = options.tuning(|t| t.small_collections(50, 1 << 20));
    let store = options.create_on(storage.clone()).unwrap();
    let mut put = |collection: &str, name: &str, bytes: Vec<u8>| {
        let attributes = match bytes.len() % 3 {
            0 => Attributes::from([("type".into(), b"image/png".to_vec())]),
            _ => Attributes::new(),
        };
        store
            .write(|tx| {
                tx.collection(collection)?.put_with(
                    name,
                    &bytes,
                    &PutOptions::with_attributes(attributes.clone()),
                )
            })
            .unwrap();
        model.named.entry(collection.into()).or_default().insert(name.into(), bytes);
    };
    for i in 0..30 {
        put("default", &format!("small {i}"), bytes(&mut rng, i * 9));
    }
    for i in 0..page_size / 32 {
        put("photos", &format!("a folder/and a long name {i:06}"), bytes(&mut rng, 20));
    }
    // Records in two parts.
    for i in 0..6 {
        put("photos", &format!("part {i}"), bytes(&mut rng, page_size * 5 / 8));
    }
    put("default", "large", bytes(&mut rng, 6 * page_size + 1000));
    put("photos", "exact", bytes(&mut rng, 2 * page_size));
    // Gaps of one page each; the object that fills them gets a tree.
    for i in 0..40 {
        put("gaps", &format!("gap {i}"), bytes(&mut rng, page_size));
    }
    for i in (0..40).step_by(2) {
        let name = format!("gap {i}");
        store.write(|tx| tx.collection("gaps")?.remove(&name)).unwrap();
        model.named.get_mut("gaps").unwrap().remove(name.as_bytes());
    }
    store.close().unwrap();
    // The file cannot grow from here on, and has no reserve for a log.
    let mut volume = storage.snapshot().0;
    volume.truncate(volume.len() - 65536);
    let max_bytes = volume.len() as u64;
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    let store = options.clone().max_bytes(max_bytes).open_on(storage.clone()).unwrap();
    let tree = bytes(&mut rng, 10 * page_size + 100);
    let (oid, lone) = store
        .write(|tx| {
            tx.put("tree", &tree)?;
            let lone = bytes(&mut SmallRng::seed_from_u64(9), page_size * 3 / 2);
            Ok((tx.create(&lone)?, lone))
        })
        .unwrap();
    model.named.get_mut("default").unwrap().insert(b"tree".to_vec(), tree);
    model.unnamed.push((oid, lone));
    store.write(|tx| tx.remove("small 3")).unwrap();
    model.named.get_mut("default").unwrap().remove(&b"small 3"[..]);
    store.close().unwrap();
    (storage.snapshot().0, model)
}

/// As [`sample`], with pages that lie elsewhere than in their places: a transaction with room for
/// two pages in memory replaces the small objects by the same bytes.
pub fn sample_with_images(page_size: usize) -> (Vec<u8>, Model) {
    let (volume, model) = sample(page_size);
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    let options = quiet().tuning(|t| t.transaction_bytes(2 * page_size));
    let store = options.open_on(storage.clone()).unwrap();
    // They come home once nobody reads what was before.
    let before = store.read().unwrap();
    let small = model.named["default"].iter().filter(|(_, bytes)| bytes.len() < 1000);
    store.write(|tx| small.clone().try_for_each(|(name, b)| tx.put(name, b).map(drop))).unwrap();
    store.close().unwrap();
    drop(before);
    (storage.snapshot().0, model)
}

/// Pages in use by the directories of a closed store.
pub fn pages_in_use(volume: &[u8]) -> BTreeSet<u64> {
    let slots = [0, 65536].map(|at| Superblock::decode(&volume[at..at + 4096]).unwrap());
    let sb = slots.into_iter().flatten().max_by_key(|sb| sb.sequence).unwrap();
    let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages).unwrap();
    let mut used = BTreeSet::new();
    for space in 0..sb.spaces {
        let at = layout.dir_page(space).0 as usize * layout.page_size();
        let dir = SpaceDir::open(layout, space, &volume[at..at + layout.page_size()]).unwrap();
        let all = (0..layout.space_pages()).filter(|i| dir.is_allocated(*i));
        used.extend(all.map(|i| layout.page_at(space, i).0));
    }
    used
}

/// Pages of a kind in a closed store.
pub fn pages_of(volume: &[u8], page_size: usize, kind: PageKind) -> Vec<u64> {
    let is = |no: u64| {
        let at = no as usize * page_size;
        let found = holdall_core::page::check(&volume[at..at + page_size], holdall::PageNo(no));
        found.is_ok_and(|k| k == kind)
    };
    pages_in_use(volume).into_iter().filter(|no| is(*no)).collect()
}

/// A closed store of which one byte differs, without copying it.
#[derive(Debug, Clone)]
pub struct Flipped {
    pub volume: Arc<Vec<u8>>,
    pub at: u64,
    pub mask: u8,
}

fn refuse<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "the store was opened read-only"))
}

impl Disk for Flipped {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let from = offset as usize;
        let bytes = self.volume.get(from..from + buf.len());
        buf.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        if let Some(i) = self.at.checked_sub(offset)
            && let Some(byte) = buf.get_mut(i as usize)
        {
            *byte ^= self.mask;
        }
        Ok(())
    }
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        refuse()
    }
    fn sync(&self) -> io::Result<()> {
        refuse()
    }
    fn len(&self) -> io::Result<u64> {
        Ok(self.volume.len() as u64)
    }
    fn grow(&self, _: u64) -> io::Result<()> {
        refuse()
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        refuse()
    }
    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
}

impl Storage for Flipped {
    fn volume(&self) -> Arc<dyn Disk> {
        Arc::new(self.clone())
    }
    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(None)
    }
    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        refuse()
    }
    fn remove_log(&self, _: &dyn Disk) -> io::Result<()> {
        refuse()
    }
    fn sync_dir(&self) -> io::Result<()> {
        refuse()
    }
    fn name(&self) -> String {
        "flipped".into()
    }
    fn now(&self) -> Duration {
        Duration::ZERO
    }
}
