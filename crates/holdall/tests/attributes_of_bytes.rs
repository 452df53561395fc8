//! Attributes that describe an object's bytes go when those change, others stay.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Attributes, PutOptions, Result, Store, WriteTx};

fn attributes() -> Attributes {
    let pair = |key: &str| (key.to_owned(), b"value".to_vec());
    ["#digest", "#size", "name#", "type"].map(pair).into()
}

/// The keys left after a change of the object `a` of `size` bytes.
fn left(size: usize, change: impl FnOnce(&mut WriteTx) -> Result<()>) -> Vec<String> {
    let store = Store::in_memory().unwrap();
    let options = PutOptions::with_attributes(attributes());
    store.write(|tx| tx.put_with("a", &vec![7; size], &options)).unwrap();
    store.write(|tx| tx.put("b", b"other")).unwrap();
    store.write(change).unwrap();
    store.read().unwrap().metadata("a").unwrap().attributes.into_keys().collect()
}

#[test]
fn every_change_of_the_bytes_drops_them() {
    let kept = ["name#", "type"];
    for size in [10, 5_000, 300_000] {
        let drop = |result: Result<u64>| result.map(drop);
        assert_eq!(left(size, |tx| drop(tx.insert("a", 5, b"x"))), kept);
        assert_eq!(left(size, |tx| drop(tx.replace("a", 5, b"x"))), kept);
        assert_eq!(left(size, |tx| drop(tx.write_at("a", 9, b"xx"))), kept);
        assert_eq!(left(size, |tx| drop(tx.append("a", b"x"))), kept);
        assert_eq!(left(size, |tx| drop(tx.set_len("a", 3))), kept);
        assert_eq!(left(size, |tx| drop(tx.delete_range("a", 0..2))), kept);
        assert_eq!(left(size, |tx| drop(tx.copy_range("b", 0..3, "a", 1))), kept);
        assert_eq!(left(size, |tx| tx.set_bytes("a", b"new")), kept);
        let by_file = |tx: &mut WriteTx| {
            let mut file = tx.open("a")?;
            file.write_at(0, b"x")?;
            file.finish().map(|_| ())
        };
        assert_eq!(left(size, by_file), kept);
    }
}

#[test]
fn what_leaves_the_bytes_alone_keeps_them() {
    let all: Vec<String> = attributes().into_keys().collect();
    for size in [10, 300_000] {
        assert_eq!(left(size, |tx| tx.rename("b", "c")), all);
        let away_and_back = |tx: &mut WriteTx| {
            tx.rename("a", "z")?;
            tx.rename("z", "a")
        };
        assert_eq!(left(size, away_and_back), all);
        assert_eq!(left(size, |tx| tx.copy("a", "b").map(drop)), all);
        let copied_back = |tx: &mut WriteTx| {
            tx.copy("a", "c")?;
            tx.remove("a")?;
            tx.copy("c", "a").map(drop)
        };
        assert_eq!(left(size, copied_back), all);
    }
}
