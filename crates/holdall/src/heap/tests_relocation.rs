//! Records of very different lengths, replaced at random: how full pages stay.

use super::tests::World;
use super::*;
use rand::Rng;

impl World {
    /// A length as of objects of the web: many short ones, some that fill most of a page.
    fn web(&mut self) -> usize {
        let u: f64 = self.rng.random_range(0.07..1.0);
        (430.0 / u.powf(1.0 / 1.2)) as usize
    }

    /// Puts a record in as the object layer does: if need be others make room.
    fn make_room(&mut self, len: usize) {
        let plan = self.file.relocate(&self.pages, &mut self.placement, len).unwrap();
        let Some(plan) = plan else {
            self.insert(len..len + 1, None);
            return;
        };
        self.placement.close(Some(plan.index));
        for old in &plan.records {
            let record = self.model.remove(old).unwrap();
            let (pages, placement) = (&mut self.pages, &mut self.placement);
            let new = self.file.insert(pages, placement, &record, None).unwrap();
            assert_ne!(new.page, plan.page, "a closed page takes no record");
            self.file.delete(pages, placement, *old).unwrap();
            self.model.insert(new, record);
            let at = self.locs.iter().position(|l| l == old).unwrap();
            self.locs[at] = new;
        }
        self.placement.close(None);
        let loc = self.insert(len..len + 1, Some(plan.page));
        assert_eq!(loc.page, plan.page, "what was chosen makes enough room");
    }

    fn at_hand(&mut self, len: usize) -> bool {
        let record = vec![len as u8; len];
        let (pages, placement) = (&mut self.pages, &mut self.placement);
        let loc = self.file.insert_at_hand(pages, placement, &record, None).unwrap();
        if let Some(loc) = loc {
            self.model.insert(loc, record);
            self.locs.push(loc);
        }
        loc.is_some()
    }
}

fn after_replacements(making_room: bool) -> f64 {
    // As few as for a large file.
    let mut w = World::new(4096, Policy { cache_pages: 8, utilization: 94 }, 11);
    for round in 0..20_000 {
        let len = w.web();
        if round >= 4000 {
            w.delete();
        }
        if !making_room {
            w.insert(len..len + 1, None);
        } else if !w.at_hand(len) {
            w.make_room(len);
        }
    }
    w.verify();
    let (used, capacity) = w.file.utilization(4096);
    used as f64 / capacity as f64
}

#[test]
fn making_room_keeps_pages_full() {
    let (with, without) = (after_replacements(true), after_replacements(false));
    assert!(with > 0.9, "{with}");
    assert!(with > without + 0.03, "{with} against {without}");
}

#[test]
fn a_dense_file_grows() {
    let mut w = World::new(4096, Policy { cache_pages: 8, utilization: 50 }, 12);
    for _ in 0..500 {
        w.insert(500..900, None);
    }
    assert!(w.file.relocate(&w.pages, &mut w.placement, 3000).unwrap().is_none());
}

#[test]
fn slots_in_the_midst_make_no_room() {
    for short in 301..=412 {
        let mut w = World::new(4096, Policy { cache_pages: 8, utilization: 94 }, 13);
        // The slots of the short ones stay, for a longer record has one behind them.
        for len in [100, 100, 100, 100, 1000, 3100] {
            w.insert(len..len + 1, None);
        }
        let (crowded, other) = (w.locs[0].page, w.locs[5].page);
        assert_ne!(crowded, other);
        let page = w.pages.page(crowded, PageKind::Heap).unwrap();
        let need = HeapPage::new(&page, crowded).unwrap().free_bytes() + short;
        drop(page);
        let plan = w.file.relocate(&w.pages, &mut w.placement, need).unwrap();
        assert_eq!(plan.map(|c| c.records.len()), (short <= 400).then_some(4), "{short}");
        w.make_room(need);
        w.verify();
    }
}
