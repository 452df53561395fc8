//! Objects with their bytes, in order and backwards, beside writers.

use holdall::{DEFAULT_COLLECTION, Items, Reader, Result, Store};

type Pair = (Vec<u8>, Vec<u8>);

/// Small and large, some empty, in sizes that fill a batch at odd places.
fn filled(count: usize) -> Result<(Store, Vec<Pair>)> {
    let store = Store::in_memory()?;
    let size = |i: usize| match i % 97 {
        0 => 0,
        1 => 300_000,
        2 if i.is_multiple_of(5) => 1_500_000,
        _ => i * 7 % 900,
    };
    let pair = |i| (format!("{i:05}").into_bytes(), vec![i as u8; size(i)]);
    let all: Vec<Pair> = (0..count).map(pair).collect();
    store.write(|tx| {
        tx.create(b"without a name")?;
        all.iter().try_for_each(|(name, bytes)| tx.put(name, bytes).map(drop))
    })?;
    Ok((store, all))
}

fn taken(items: impl Iterator<Item = Result<Pair>>) -> Result<Vec<Pair>> {
    items.collect()
}

#[test]
fn items_come_in_order_backwards_and_from_both_ends() {
    for count in [0, 1, 255, 256, 257, 1100] {
        let (store, all) = filled(count).unwrap();
        let reader = store.read().unwrap();
        assert!(taken(reader.items("")).unwrap() == all, "{count}");
        let mut back = taken(reader.items("").rev()).unwrap();
        back.reverse();
        assert!(back == all, "{count}");
        for turn in [2, 3, 300] {
            let mut items: Items = reader.items("");
            let (mut front, mut back) = (Vec::new(), Vec::new());
            for i in 0.. {
                let forward = i % turn != 0;
                let item = if forward { items.next() } else { items.next_back() };
                let Some(item) = item else { break };
                let side = if forward { &mut front } else { &mut back };
                side.push(item.unwrap());
            }
            front.extend(back.into_iter().rev());
            assert!(front == all, "{count}, {turn}");
        }
        assert_eq!(reader.values("").count(), count);
        let part = taken(reader.range("00100".."00300").items()).unwrap();
        assert!(part == all.get(100..count.clamp(100, 300)).unwrap_or_default(), "{count}");
    }
}

#[test]
fn counts_are_those_of_the_state() {
    let (store, all) = filled(300).unwrap();
    let bytes: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
    let before = store.read().unwrap();
    store.write(|tx| tx.put("a", b"12345")).unwrap();
    let empty = |tx: &mut holdall::WriteTx| {
        let mut empty = tx.collection("empty")?;
        empty.put("a", b"1")?;
        empty.remove("a")
    };
    store.write(empty).unwrap();
    let of = |reader: &Reader| (reader.len().unwrap(), reader.logical_bytes().unwrap());
    let old = (301, bytes as u64 + "without a name".len() as u64);
    assert_eq!(of(&before), old);
    assert_eq!(of(&store.read().unwrap()), (old.0 + 1, old.1 + 5));
    assert_eq!((store.len().unwrap(), store.is_empty().unwrap()), (old.0 + 1, false));
    let empty = store.read().unwrap().collection("empty").unwrap();
    assert!(empty.is_empty().unwrap() && empty.logical_bytes().unwrap() == 0);
    let again = before.collection(DEFAULT_COLLECTION).unwrap();
    assert_eq!(of(&again), old);
}

/// A loop may change what it goes through.
#[test]
fn a_walk_shows_one_state_beside_changes() {
    let store = Store::in_memory().unwrap();
    let name = |i: u32| format!("{i:06}");
    store.write(|tx| (0..3000).try_for_each(|i| tx.put(name(i), b"0").map(drop))).unwrap();
    let mut count = 0;
    for item in store.read().unwrap().items("") {
        let (found, bytes) = item.unwrap();
        assert_eq!((found.as_slice(), bytes.as_slice()), (name(count).as_bytes(), &b"0"[..]));
        store
            .write(|tx| {
                tx.set_durability(holdall::Durability::Deferred);
                tx.put(&found, b"1")?;
                tx.remove(name(2999 - count))?;
                tx.put(format!("new {count}"), b"2")
            })
            .unwrap();
        count += 1;
    }
    assert_eq!(count, 3000);
}
