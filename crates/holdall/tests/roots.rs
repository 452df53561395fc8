//! Roots and superblocks made by somebody who can compute checksums: what contradicts the rest is
//! refused at the opening or reported by verification, and nothing of the content is cut away.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use holdall::{DefragOptions, Error, Options, Store};
use holdall_core::page::{self, PageKind};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{PageNo, root_page};
use holdall_io::{MemoryStorage, Storage};
use std::ops::ControlFlow;
use std::sync::Arc;

const PAGE: usize = 4096;

fn options() -> Options {
    Options::default()
        .background(false)
        .page_size(PAGE)
        .tuning(|t| t.space_pages(64).growth_bytes(1))
}

fn bytes(i: usize) -> Vec<u8> {
    vec![i as u8; 9000]
}

/// A store of several spaces, closed or as a crash leaves it.
fn made(closed: bool) -> (Vec<u8>, Option<Vec<u8>>) {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    for i in 0..100 {
        store.write(|tx| tx.put(format!("{i:03}"), &bytes(i))).unwrap();
    }
    store.write(|tx| tx.copy("001", "a copy").map(drop)).unwrap();
    store.write(|tx| tx.collection("more")?.put("x", b"y").map(drop)).unwrap();
    if closed {
        store.close().unwrap();
        return storage.snapshot();
    }
    store.checkpoint().unwrap();
    storage.snapshot()
}

fn superblock(volume: &[u8]) -> Superblock {
    let slots = SLOT_AT.map(|at| &volume[at as usize..][..SLOT_BYTES]);
    let read = slots.iter().filter_map(|slot| Superblock::decode(slot).unwrap());
    read.max_by_key(|sb| sb.sequence).unwrap()
}

fn change_superblocks(volume: &mut [u8], change: impl Fn(&mut Superblock)) {
    for at in SLOT_AT {
        let slot = &mut volume[at as usize..][..SLOT_BYTES];
        let mut sb = Superblock::decode(slot).unwrap().unwrap();
        change(&mut sb);
        slot.copy_from_slice(&sb.encode());
    }
}

fn change_root(volume: &mut [u8], change: impl Fn(&mut [u8])) {
    let at = superblock(volume).root.0 as usize * PAGE;
    let root = &mut volume[at..][..PAGE];
    assert_eq!(page::kind(root), Some(PageKind::Root));
    change(root);
    page::seal(root, page::lsn(root));
}

enum Said {
    Refused(String),
    Problems(Vec<String>),
}

/// What opening says, or verification; compacting what opens takes nothing away.
fn said(volume: &[u8], log: Option<&[u8]>, what: &str) -> Said {
    let storage = Arc::new(MemoryStorage::from_bytes(volume.to_vec(), log.map(<[u8]>::to_vec)));
    let read_only = options().open_read_only_on(storage.clone()).map(drop);
    let store = match options().open_on(storage.clone()) {
        Ok(store) => store,
        Err(Error::Corrupt { place, detail }) => {
            assert!(read_only.is_err(), "{what}");
            assert_eq!(storage.volume().len().unwrap(), volume.len() as u64, "{what}");
            return Said::Refused(format!("{place}: {detail}"));
        }
        Err(e) => panic!("{what}: {e:?}"),
    };
    assert!(read_only.is_ok(), "{what}");
    let problems = store.verify().unwrap().problems;
    let _ = store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(()));
    whole(&store, what);
    drop(store);
    Said::Problems(problems.iter().map(ToString::to_string).collect())
}

fn whole(store: &Store, what: &str) {
    let reader = store.read().unwrap();
    for i in 0..100 {
        match reader.get(format!("{i:03}")) {
            // A root whose names or handles lead elsewhere; never other bytes.
            Ok(found) => assert!(found.is_none_or(|found| found == bytes(i)), "{what}"),
            Err(e) => assert!(e.is_corrupt() || matches!(e, Error::Dangling(_)), "{what}: {e:?}"),
        }
    }
}

#[track_caller]
fn refused(volume: &[u8], log: Option<&[u8]>, part: &str) {
    match said(volume, log, part) {
        Said::Refused(text) => assert!(text.contains(part), "{text}"),
        Said::Problems(all) => panic!("{part}: opened, {all:?}"),
    }
}

#[track_caller]
fn told(volume: &[u8], log: Option<&[u8]>, what: &str) {
    if let Said::Problems(all) = said(volume, log, what) {
        assert!(!all.is_empty(), "{what}: sound");
    }
}

#[test]
fn a_root_that_names_other_spaces_is_refused() {
    for closed in [true, false] {
        let (volume, log) = made(closed);
        let spaces = superblock(&volume).spaces;
        assert!(spaces > 3, "{spaces}");
        let others = (0..spaces).chain([spaces + 1, spaces + 2, 1 << 20, u32::MAX]);
        for n in others {
            let mut crafted = volume.clone();
            change_root(&mut crafted, |root| root_page::set_spaces(root, n));
            // One more may be there after a crash, but has a directory then.
            let part = format!("names {n} spaces");
            if n > spaces && !closed {
                told(&crafted, log.as_deref(), &part);
            } else {
                refused(&crafted, log.as_deref(), &part);
            }
            // The superblock in accord with it.
            change_superblocks(&mut crafted, |sb| sb.spaces = n);
            told(&crafted, log.as_deref(), &part);
        }
    }
}

#[test]
fn a_root_whose_parts_lie_nowhere_is_refused() {
    type Set = fn(&mut [u8], PageNo);
    let parts: [(&str, Set); 6] = [
        ("collections", |root, page| root_page::set_entries(root, page)),
        ("small collections", |root, page| root_page::set_small(root, page)),
        ("drop list", |root, page| root_page::set_drops(root, page)),
        ("catalog", |root, page| root_page::set_catalog(root, page)),
        ("tree of shared pages", |root, page| root_page::set_sharing(root, page)),
        ("handle table", |root, page| {
            let mut map = root_page::handles(root);
            map[..6].copy_from_slice(&page.0.to_le_bytes()[..6]);
            root_page::set_handles(root, map);
        }),
    ];
    for closed in [true, false] {
        let (volume, log) = made(closed);
        let end = volume.len() as u64 / PAGE as u64;
        for (what, set) in parts {
            // Superblocks, a directory, the first page behind, and none.
            for no in [16, 3, 64, end, end + 1, 1 << 40, PageNo::MAX.0] {
                let mut crafted = volume.clone();
                change_root(&mut crafted, |root| set(root, PageNo(no)));
                refused(&crafted, log.as_deref(), &format!("names page {no} for its {what}"));
            }
            for no in 1..end {
                let mut crafted = volume.clone();
                let before = crafted.clone();
                change_root(&mut crafted, |root| set(root, PageNo(no)));
                if crafted != before {
                    told(&crafted, log.as_deref(), &format!("page {no} as {what}"));
                }
            }
        }
    }
}

#[test]
fn numbers_of_the_root_that_cannot_be_are_refused_or_told() {
    for closed in [true, false] {
        let (volume, log) = made(closed);
        let mut crafted = volume.clone();
        change_root(&mut crafted, |root| root_page::set_next_collection(root, 0));
        refused(&crafted, log.as_deref(), "next collection");
        for n in 1..3 {
            let mut crafted = volume.clone();
            change_root(&mut crafted, |root| root_page::set_next_collection(root, n));
            told(&crafted, log.as_deref(), &format!("next collection {n}"));
        }
        for len in [0_u32, 1, 2, 507, 1 << 20, u32::MAX] {
            for height in 0..6 {
                let mut crafted = volume.clone();
                change_root(&mut crafted, |root| {
                    let mut map = root_page::handles(root);
                    map[6] = height;
                    map[8..12].copy_from_slice(&len.to_le_bytes());
                    root_page::set_handles(root, map);
                });
                if crafted != volume {
                    let what = format!("{len} handle pages in {height} levels");
                    told(&crafted, log.as_deref(), &what);
                }
            }
        }
    }
}

#[test]
fn a_superblock_that_contradicts_the_root_is_refused_or_told() {
    for closed in [true, false] {
        let (volume, log) = made(closed);
        let sb = superblock(&volume);
        for pages in (sb.root.0 + 1..sb.volume_pages).step_by(7) {
            let mut crafted = volume.clone();
            change_superblocks(&mut crafted, |sb| sb.volume_pages = pages);
            if closed {
                told(&crafted, log.as_deref(), &format!("{pages} pages"));
            } else {
                said(&crafted, log.as_deref(), "nothing that a later step trusts");
            }
        }
        for spaces in (0..sb.spaces).chain([sb.spaces + 1, u32::MAX]) {
            let mut crafted = volume.clone();
            change_superblocks(&mut crafted, |sb| sb.spaces = spaces);
            // Behind a crash the log may hold the commit that added some.
            // and one that gave some up, of which nothing lies in the file.
            if closed || spaces > sb.spaces + 1 {
                refused(&crafted, log.as_deref(), "spaces, the superblock");
            }
        }
        for unique in [0, 1, 50] {
            let mut crafted = volume.clone();
            change_superblocks(&mut crafted, |sb| sb.unique_ceiling = unique);
            told(&crafted, log.as_deref(), &format!("unique {unique}"));
        }
        for (size, pages) in [(4096, 65), (4096, 63), (4096, 32768), (8192, 64), (65536, 64)] {
            let mut crafted = volume.clone();
            change_superblocks(&mut crafted, |sb| (sb.page_size, sb.space_pages) = (size, pages));
            told(&crafted, log.as_deref(), &format!("{pages} pages of {size}"));
        }
        for no in (0..sb.volume_pages).filter(|no| *no != sb.root.0) {
            let mut crafted = volume.clone();
            change_superblocks(&mut crafted, |sb| sb.root = PageNo(no));
            told(&crafted, log.as_deref(), &format!("root {no}"));
        }
    }
}
