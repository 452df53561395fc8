//! The map of old versions against one in memory, and damaged.

use super::*;
use holdall_io::{MemoryStorage, Storage};
use parking_lot::Mutex;
use rand::{Rng, SeedableRng, rngs::SmallRng};

const PAGE: usize = 4096;

/// Scratch on a disk in memory: single pages, each given out once at a time, at most `most`.
struct Pages {
    disk: Arc<dyn Disk>,
    free: Mutex<Vec<u64>>,
}

impl Pages {
    fn new(most: u64) -> Self {
        let disk = MemoryStorage::new().volume();
        disk.write_at((most + 1) * PAGE as u64, &[0]).unwrap();
        Self { disk, free: Mutex::new((0..most).collect()) }
    }
}

impl ScratchPages for Pages {
    fn reserve(&self, _: u64) -> Result<Option<PageRun>> {
        Ok(self.free.lock().pop().map(|no| PageRun::new(PageNo(no), 1)))
    }

    fn write(&self, at: PageNo, bytes: &[u8]) -> Result<()> {
        self.disk.write_at(at.0 * PAGE as u64, bytes).unwrap();
        Ok(())
    }

    fn give_back(&self, run: PageRun) {
        let mut free = self.free.lock();
        for no in run.start.0..run.end() {
            assert!(!free.contains(&no), "page {no} was given back twice");
            free.push(no);
        }
    }
}

fn bound(map: &mut ScratchMap, most: usize, oldest: Lsn, pages: &Pages) -> Result<()> {
    let Some(young) = map.young(most, oldest) else { return Ok(()) };
    let entries = young.iter().map(|entry| Ok(*entry));
    let Some(piece) = write(entries, 0, PAGE, pages)? else { return Ok(()) };
    map.push(Some(piece));
    while let Some(old) = map.to_merge() {
        let Some(piece) = merge(&old, oldest, (&*pages.disk, PAGE), pages)? else { break };
        map.replace(&old, piece);
        old.iter().for_each(|piece| piece.give_back(pages));
    }
    Ok(())
}

/// Against a map in memory: versions come in the order of their LSNs, states grow older, and now and
/// then there is no room.
#[test]
fn a_version_is_found_wherever_its_entry_lies() {
    for seed in 0..20 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let few = seed % 4 == 3;
        let pages = Pages::new(if few { 12 } else { 5000 });
        let (mut map, mut model) = (ScratchMap::default(), BTreeMap::<Key, Place>::new());
        let mut newest = vec![1_u64; 300];
        let mut oldest = 0;
        for lsn in 2..6000 {
            let page = rng.random_range(0..300);
            let place = Place { at: PageNo(rng.random_range(0..1 << 40)), until: Lsn(lsn) };
            let key = (PageNo(page), Lsn(newest[page as usize]));
            newest[page as usize] = lsn;
            map.insert(key, place);
            model.insert(key, place);
            bound(&mut map, 64, Lsn(oldest), &pages).unwrap();
            if rng.random_bool(0.002) {
                oldest = rng.random_range(oldest..lsn);
                map.take_free(Lsn(oldest), false).iter().for_each(|p| p.give_back(&pages));
            }
            if rng.random_bool(0.1) {
                let (page, state) =
                    (PageNo(rng.random_range(0..300)), Lsn(rng.random_range(oldest..=lsn)));
                let wanted = model.range((page, Lsn(0))..=(page, state)).next_back();
                let wanted = wanted.filter(|(_, p)| state < p.until).map(|(_, p)| p.at);
                let found = map.find(&*pages.disk, PAGE, page, state).unwrap();
                assert_eq!(found, wanted, "seed {seed}, {page:?} at {state:?}");
            }
        }
        assert!(few || map.recent.len() <= 64 && map.pieces.len() < 2 * MERGED);
        map.take_free(Lsn(0), true).iter().for_each(|p| p.give_back(&pages));
        let all = if few { 12 } else { 5000 };
        assert_eq!(pages.free.lock().len(), all, "seed {seed}: pages are missing");
    }
}

#[test]
fn a_damaged_piece_is_an_error() {
    let pages = Pages::new(100);
    let mut map = ScratchMap::default();
    for no in 0..100 {
        map.insert((PageNo(no), Lsn(1)), Place { at: PageNo(no + 7), until: Lsn(9) });
    }
    bound(&mut map, 10, Lsn(0), &pages).unwrap();
    assert_eq!(map.find(&*pages.disk, PAGE, PageNo(3), Lsn(5)).unwrap(), Some(PageNo(10)));
    let at = map.pieces[0].runs[0].start.0 * PAGE as u64;
    pages.disk.write_at(at + 500, &[77]).unwrap();
    let error = map.find(&*pages.disk, PAGE, PageNo(3), Lsn(5)).unwrap_err();
    assert!(error.to_string().contains("map of old versions"), "{error}");
}
