//! Transactions larger than the memory that they may take: their pages leave it as images.

use holdall::inspect::{self, PageContent};
use holdall::{Options, PageNo, Result, Store};
use holdall_io::MemoryStorage;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store whose transactions keep 16 pages of 4 KiB.
fn options(background: bool) -> Options {
    Options::default()
        .page_size(4096)
        .background(background)
        .tuning(|t| t.transaction_bytes(64 << 10).log_bytes(1 << 20).dirty_pages(256))
}

fn name(n: u32) -> Vec<u8> {
    format!("object-{:08}", n.wrapping_mul(2_654_435_761) % 1_000_000).into_bytes()
}

fn content(rng: &mut SmallRng) -> Vec<u8> {
    let len = rng.random_range(10..1500);
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

fn check(store: &Store, model: &Model) -> Result<()> {
    let reader = store.read()?;
    for (name, bytes) in model {
        assert_eq!(reader.get(name)?.as_deref(), Some(&bytes[..]));
    }
    assert_eq!(reader.count_names()? as usize, model.len());
    Ok(())
}

fn verify(store: &Store) -> Result<()> {
    let report = store.verify()?;
    assert!(report.is_sound(), "{report:?}");
    Ok(())
}

#[test]
fn a_transaction_of_any_size_is_one_step() -> Result<()> {
    for background in [false, true] {
        let store = options(background).create_on(Arc::new(MemoryStorage::new()))?;
        let (mut rng, mut model) = (SmallRng::seed_from_u64(3), Model::new());
        store.write(|tx| {
            for n in 0..4000 {
                model.insert(name(n), content(&mut rng));
                tx.put(name(n), &model[&name(n)])?;
            }
            Ok(())
        })?;
        verify(&store)?;
        check(&store, &model)?;
        for round in 0..4 {
            let before = store.read()?;
            let was = model.clone();
            store.write(|tx| {
                for _ in 0..2000 {
                    let name = name(rng.random_range(0..5000));
                    if rng.random_bool(0.3) {
                        let there = tx.remove(&name)?;
                        assert_eq!(there, model.remove(&name).is_some());
                    } else {
                        let bytes = content(&mut rng);
                        tx.put(&name, &bytes)?;
                        assert_eq!(tx.get(&name)?.as_deref(), Some(&bytes[..]));
                        model.insert(name, bytes);
                    }
                }
                Ok(())
            })?;
            check(&store, &model)?;
            verify(&store)?;
            for (name, bytes) in &was {
                assert_eq!(before.get(name)?.as_deref(), Some(&bytes[..]), "round {round}");
            }
            drop(before);
            // Some are touched while their images are there.
            for n in 0..200 {
                let name = name(n * 7);
                let bytes = content(&mut rng);
                store.write(|tx| tx.put(&name, &bytes))?;
                model.insert(name, bytes);
            }
            check(&store, &model)?;
            verify(&store)?;
        }
        store.write(|tx| {
            for name in model.keys() {
                assert!(tx.remove(name)?);
            }
            Ok(())
        })?;
        check(&store, &Model::new())?;
        verify(&store)?;
    }
    Ok(())
}

/// A page that lies elsewhere says where, and its image whose it is.
#[test]
fn inspection_leads_from_a_page_to_its_image_and_back() -> Result<()> {
    let store = options(false).create_on(Arc::new(MemoryStorage::new()))?;
    let put = |byte: u8| {
        store.write(|tx| (0..2000).try_for_each(|n| tx.put(name(n), &[byte; 700]).map(drop)))
    };
    put(1)?;
    // It keeps pages from coming home.
    let before = store.read()?;
    put(2)?;
    let stat = store.stat()?;
    assert!(stat.elsewhere.images > 50, "{:?}", stat.elsewhere);
    let mut found = 0;
    for no in 0..stat.file_bytes / stat.page_size as u64 {
        let page = inspect::page(&store, PageNo(no))?;
        let Some(image) = page.image else { continue };
        let image = inspect::page(&store, image)?;
        assert_eq!(image.image_of, Some(page.number));
        assert!(matches!(image.content, PageContent::Known { damage: None, .. }), "{image:?}");
        found += 1;
    }
    assert_eq!(found, stat.elsewhere.images);
    drop(before);
    Ok(())
}

/// Pages come home once the snapshot that reads their places is closed, and after an opening, without
/// another commit.
#[test]
fn pages_come_home_while_nobody_writes() -> Result<()> {
    let storage = Arc::new(MemoryStorage::new());
    let put = |store: &Store, byte: u8| {
        store.write(|tx| (0..2000).try_for_each(|n| tx.put(name(n), &[byte; 700]).map(drop)))
    };
    let wait = |store: &Store| -> Result<()> {
        let until = Instant::now() + Duration::from_secs(60);
        while store.stat()?.elsewhere.images > 0 {
            assert!(Instant::now() < until, "{:?}", store.stat()?.elsewhere);
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    };
    let store = options(true).create_on(storage.clone())?;
    put(&store, 1)?;
    let before = store.read()?;
    put(&store, 2)?;
    std::thread::sleep(Duration::from_millis(1500));
    assert!(store.stat()?.elsewhere.images > 50, "{:?}", store.stat()?.elsewhere);
    drop(before);
    wait(&store)?;
    drop(store);
    let store = options(false).open_on(storage.clone())?;
    let before = store.read()?;
    put(&store, 3)?;
    drop(before);
    store.close()?;
    let store = options(true).open_on(storage)?;
    assert!(store.stat()?.elsewhere.images > 50, "{:?}", store.stat()?.elsewhere);
    wait(&store)?;
    verify(&store)
}
