//! Checksums of more new data than memory should hold: in scratch before a transaction takes the
//! data, in their info pages before it commits.

use holdall::{Error, Options, PutOptions, Result, Store};
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<String, Vec<u8>>;

/// A store whose transactions, and staged objects, keep 1,024 checksums: those of 4 MiB.
fn options() -> Options {
    Options::default()
        .page_size(4096)
        .background(false)
        .tuning(|t| t.checksum_bytes(4 << 10).log_bytes(1 << 20).dirty_pages(256))
}

fn bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

fn check(store: &Store, model: &Model) -> Result<()> {
    let reader = store.read()?;
    assert_eq!(reader.count_names()? as usize, model.len());
    for (name, bytes) in model {
        assert!(reader.get(name)?.as_ref() == Some(bytes), "{name}");
    }
    let report = store.verify()?;
    assert!(report.is_sound(), "{report:?}");
    Ok(())
}

/// Puts, replaces, edits and removes large objects in one transaction.
fn change(store: &Store, model: &mut Model, rng: &mut SmallRng) -> Result<()> {
    store.write(|tx| {
        for _ in 0..150 {
            let name = format!("{}", rng.random_range(0..40));
            match rng.random_range(0..4) {
                0 => assert_eq!(tx.remove(&name)?, model.remove(&name).is_some()),
                1 if model.contains_key(&name) => {
                    let object = model.entry(name.clone()).or_default();
                    let at = rng.random_range(0..object.len());
                    let new = bytes(rng, 5000);
                    tx.insert(&name, at as u64, &new)?;
                    object.splice(at..at, new);
                }
                _ => {
                    let len = rng.random_range(9000..200_000);
                    let new = bytes(rng, len);
                    tx.put(&name, &new)?;
                    model.insert(name.clone(), new);
                }
            }
            assert!(tx.get(&name)?.as_ref() == model.get(&name), "{name}");
        }
        Ok(())
    })
}

#[test]
fn a_transaction_enters_them_before_its_commit() -> Result<()> {
    let store = options().create_on(Arc::new(FaultyStorage::new(1)))?;
    let (mut rng, mut model) = (SmallRng::seed_from_u64(7), Model::new());
    for _ in 0..4 {
        let (was, before) = (model.clone(), store.read()?);
        change(&store, &mut model, &mut rng)?;
        check(&store, &model)?;
        for (name, bytes) in &was {
            assert!(before.get(name)?.as_ref() == Some(bytes), "{name} of the state before");
        }
    }
    store.write(|tx| model.keys().try_for_each(|name| tx.remove(name).map(drop)))?;
    check(&store, &Model::new())
}

#[test]
fn a_crash_in_it_leaves_all_or_nothing() -> Result<()> {
    let first = FaultyStorage::new(2);
    let (mut rng, mut before) = (SmallRng::seed_from_u64(8), Model::new());
    let store = options().create_on(Arc::new(first.fork()))?;
    drop(store);
    let storage = Arc::new(first);
    let store = options().create_on(storage.clone())?;
    change(&store, &mut before, &mut rng)?;
    store.close()?;
    let (after, changes) = {
        let storage = Arc::new(storage.fork());
        let store = options().open_on(storage.clone())?;
        let (mut after, begun) = (before.clone(), storage.changes());
        change(&store, &mut after, &mut rng.clone())?;
        (after, storage.changes() - begun)
    };
    let mut committed = 0;
    for part in 1..=24 {
        let storage = Arc::new(storage.fork());
        let plan = FaultPlan {
            crash_at_change: Some(changes * part / 24 + part % 3),
            ..FaultPlan::default()
        };
        storage.set_plan(plan);
        let store = options().open_on(storage.clone())?;
        let acknowledged = change(&store, &mut before.clone(), &mut rng.clone()).is_ok();
        let policy = if part % 2 == 0 { LossPolicy::LoseAll } else { LossPolicy::Random };
        let crashed = storage.crash(CrashKind::PowerCut(policy), part);
        let crashed = crashed.map_err(|e| Error::Other(e.into()))?;
        let store = options().open_on(Arc::new(crashed))?;
        let there = store.read()?.get("0")?.as_ref() == after.get("0");
        assert!(there || !acknowledged, "part {part}");
        committed += u32::from(there);
        check(&store, if there { &after } else { &before })?;
    }
    assert!(committed < 24, "no crash came early enough");
    Ok(())
}

#[test]
fn a_long_object_has_them_in_scratch() -> Result<()> {
    let store = options().create_on(Arc::new(FaultyStorage::new(3)))?;
    let (mut rng, mut model) = (SmallRng::seed_from_u64(9), Model::new());
    store.write(|tx| tx.put("a", b"x"))?;
    model.insert("a".into(), b"x".to_vec());
    let used = store.stat()?.used_bytes;
    for (n, given_up) in [true, false, true, false].into_iter().enumerate() {
        let mut staged = store.stage(format!("{n}"), PutOptions::default())?;
        let mut all = Vec::new();
        while all.len() < 21 << 20 {
            let len = rng.random_range(1..3 << 20);
            all.append(&mut bytes(&mut rng, len));
            staged.push(&all[all.len() - len..])?;
            // Beside it another uses the space.
            store.write(|tx| tx.put("other", &all[..len.min(50_000)]))?;
        }
        store.write(|tx| tx.remove("other"))?;
        if given_up {
            drop(staged);
        } else {
            store.write(|tx| staged.finish(tx))?;
            model.insert(format!("{n}"), all);
        }
        check(&store, &model)?;
    }
    store.write(|tx| Ok(tx.remove("1")? && tx.remove("3")?))?;
    model.retain(|name, _| name == "a");
    store.checkpoint()?;
    check(&store, &model)?;
    // Four stretches had segments: their info pages stay.
    let more = store.stat()?.used_bytes - used;
    assert!(more < 300 << 10, "{more} bytes more are in use than before");
    Ok(())
}

/// Each piece of the object would take a page of scratch.
#[test]
fn an_object_that_fits_has_room_beside_them() -> Result<()> {
    let options = options().tuning(|t| t.checksum_bytes(0)).max_bytes(4 << 20);
    let store = options.create_in_memory()?;
    let (mut rng, mut model) = (SmallRng::seed_from_u64(3), Model::new());
    let mut put = |name: String, pages: usize| -> Result<()> {
        let new = bytes(&mut rng, pages * 4096);
        store.write(|tx| tx.put(&name, &new).map(drop))?;
        model.insert(name, new);
        Ok(())
    };
    let fits =
        |pages: usize| -> Result<bool> { Ok(store.stat()?.fullness.fits(8, pages as u64 * 4096)) };
    let mut count = 0;
    while fits(4)? {
        put(format!("{count}"), 4)?;
        count += 1;
    }
    for name in (0..count).step_by(2) {
        store.write(|tx| tx.remove(format!("{name}")).map(drop))?;
    }
    let mut pages = 4;
    while fits(pages + 1)? {
        pages += 1;
    }
    put("large".into(), pages)?;
    model.retain(|name, _| !name.parse().is_ok_and(|n: usize| n.is_multiple_of(2)));
    assert!(pages > 400 && count > 150, "{pages} pages among {count} objects");
    check(&store, &model)
}
