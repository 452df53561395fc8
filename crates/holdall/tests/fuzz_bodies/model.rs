//! Operations on a store against a map in memory, under options that the input chooses.

use super::Input;
use holdall::{Error, Options, Store};
use holdall_io::MemoryStorage;
use std::collections::BTreeMap;
use std::sync::Arc;

type Model = BTreeMap<(u8, Vec<u8>), Vec<u8>>;

const COLLECTIONS: [&str; 3] = ["default", "a", "b"];

/// Runs operations; every answer must be the model's, and the store sound in the end.
pub fn model(data: &[u8]) {
    let mut input = Input(data);
    let page_size = [4096, 8192, 16384][usize::from(input.u8() % 3)];
    let options = Options::default()
        .background(false)
        .page_size(page_size)
        .tuning(|t| t.space_pages(64 + u32::from(input.u8())))
        .cache_bytes(page_size << (input.u8() % 8))
        .tuning(|t| {
            t.dirty_pages(64 + usize::from(input.u8()))
                .log_bytes(1 << (16 + input.u8() % 6))
                .log_data_bytes(usize::from(input.u16()) * 4)
        });
    let mut storage = Arc::new(MemoryStorage::new());
    let mut store = options.create_on(storage.clone()).unwrap();
    let mut model = Model::new();
    for step in 0..100 {
        if input.is_empty() {
            break;
        }
        match input.u8() % 16 {
            0 => store.checkpoint().unwrap(),
            1 => {
                store.close().unwrap();
                store = options.open_on(storage.clone()).unwrap();
            }
            2 => {
                // As a kill leaves it.
                storage = Arc::new(storage.fork());
                store = options.open_on(storage.clone()).unwrap();
            }
            3 => check(&store, &model, &mut input),
            _ => transaction(&store, &mut model, &mut input, step),
        }
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
    assert_eq!(report.objects as usize, model.len());
    let reader = store.read().unwrap();
    for (i, collection) in COLLECTIONS.iter().enumerate() {
        let expected = model.iter().filter(|((c, _), _)| usize::from(*c) == i);
        let Ok(reader) = reader.collection(collection) else {
            assert_eq!(expected.count(), 0);
            continue;
        };
        let names: Vec<_> = reader.names("").map(|n| n.unwrap().name).collect();
        assert_eq!(names, expected.map(|((_, n), _)| n.clone()).collect::<Vec<_>>());
    }
    for ((c, name), bytes) in &model {
        let reader = reader.collection(COLLECTIONS[usize::from(*c)]).unwrap();
        assert!(reader.get(name).unwrap().unwrap() == *bytes);
    }
}

/// A transaction of a few operations, which may be given up.
fn transaction(store: &Store, model: &mut Model, input: &mut Input<'_>, step: u32) {
    let mut next = model.clone();
    let result = store.write(|tx| {
        for _ in 0..1 + input.u8() % 4 {
            let c = input.u8() % 3;
            let mut tx = tx.collection(COLLECTIONS[usize::from(c)])?;
            let name = vec![b'n'; usize::from(input.u8() % 12) * usize::from(input.u8() % 40)];
            let key = (c, name.clone());
            match input.u8() % 6 {
                0..3 => {
                    let shift = input.u8() % 12;
                    let len = usize::from(input.u8()) << shift;
                    let bytes: Vec<u8> = (0..len).map(|i| (i as u32 * 7 + step) as u8).collect();
                    tx.put(&name, &bytes)?;
                    next.insert(key, bytes);
                }
                3 => assert_eq!(tx.remove(&name)?, next.remove(&key).is_some()),
                4 if next.contains_key(&key) => {
                    let to = vec![b'm'; usize::from(input.u8() % 20)];
                    match tx.rename(&name, &to) {
                        Ok(()) => {
                            let bytes = next.remove(&key).unwrap_or_default();
                            assert!(next.insert((c, to), bytes).is_none());
                        }
                        Err(Error::Exists(_)) => assert!(next.contains_key(&(c, to))),
                        Err(e) => return Err(e),
                    }
                }
                _ => {
                    let got = tx.lookup(&name)?.is_some();
                    assert_eq!(got, next.contains_key(&key));
                }
            }
        }
        if input.u8().is_multiple_of(8) { Err(Error::Invalid("given up".into())) } else { Ok(()) }
    });
    match result {
        Ok(()) => *model = next,
        // What a failed call left cannot be committed; the rest was given up.
        Err(Error::Invalid(_) | Error::NotFound(_) | Error::Exists(_) | Error::TooLarge(_)) => {}
        Err(e) => panic!("{e:?}"),
    }
}

fn check(store: &Store, model: &Model, input: &mut Input<'_>) {
    let Some(((c, name), bytes)) = model.iter().nth(usize::from(input.u8()) % model.len().max(1))
    else {
        return;
    };
    let reader = store.read().unwrap().collection(COLLECTIONS[usize::from(*c)]).unwrap();
    let from = usize::from(input.u16()) % (bytes.len() + 1);
    let to = from + usize::from(input.u16()) % (bytes.len() - from + 1);
    let got = reader.get_range(name, from as u64..to as u64).unwrap();
    assert!(got.as_deref() == Some(&bytes[from..to]));
}
