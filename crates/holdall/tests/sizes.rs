//! The sum of a collection's sizes is counted exactly: what would not fit is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, ObjectsMut, Options, Result, Store, Target};
use holdall_io::MemoryStorage;
use std::sync::Arc;

/// A size of which four are one byte more than the count can hold.
const QUARTER: u64 = 1 << 62;

/// A call that makes the collection longer by at least a few bytes.
type Call = fn(&mut ObjectsMut) -> Result<()>;

/// Every call that adds bytes.
const CALLS: [(&str, Call); 15] = [
    ("put", |tx| tx.put("new", b"1234").map(drop)),
    ("put again", |tx| tx.put("small", b"12345678").map(drop)),
    ("put large", |tx| tx.put("new", &[1; 50_000]).map(drop)),
    ("create", |tx| tx.create(b"1234").map(drop)),
    ("set_bytes", |tx| tx.set_bytes("small", b"12345678")),
    ("append", |tx| tx.append("small", b"1234").map(drop)),
    ("insert", |tx| tx.insert("a", 7, b"1234").map(drop)),
    ("splice", |tx| tx.splice("a", 1..2, b"12345").map(drop)),
    ("truncate", |tx| tx.set_len("small", QUARTER).map(drop)),
    ("write_at", |tx| tx.write_at("small", QUARTER, b"1").map(drop)),
    ("copy", |tx| tx.copy("a", Target::New).map(drop)),
    ("copy_range", |tx| tx.copy_range("a", 0..9, "small", 0).map(drop)),
    ("concat", |tx| tx.concat(&["a".into(), "b".into()], Target::New).map(drop)),
    ("create_many and put_many", |tx| {
        tx.create_many(["12", "34", "56"].map(str::as_bytes)).map(drop)?;
        tx.put_many([("m", b"12"), ("n", b"34")]).map(drop)
    }),
    ("open", |tx| {
        let mut object = tx.open("small")?;
        object.set_position(QUARTER);
        object.push(b"1")?;
        object.finish().map(drop)
    }),
];

fn full() -> Store {
    let options = Options::default().background(false).page_size(4096);
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    store
        .write(|tx| {
            tx.put("small", b"1234")?;
            for name in ["a", "b", "c"] {
                tx.put(name, b"")?;
                tx.set_len(name, QUARTER)?;
            }
            tx.put("d", b"")?;
            tx.set_len("d", QUARTER - 4 - 3).map(drop)
        })
        .unwrap();
    store
}

#[test]
fn sizes_that_do_not_fit_the_count_are_refused_and_nothing_is_changed() {
    let store = full();
    let sum = 4 * (QUARTER - 1) + 1;
    let stat = || store.stat().unwrap().collections.remove(0);
    assert_eq!(stat().logical_bytes, sum);
    for (name, call) in CALLS {
        let refused = store.write(|tx| call(tx)).unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, Error::Invalid(_)), "{name}: {refused:?}");
        assert!(text.contains("collection \"default\"") && text.contains("at most"), "{text}");
        assert_eq!((stat().logical_bytes, stat().objects), (sum, 5), "{name}");
    }
    // Elsewhere there is room, and here for what does fit.
    for (name, call) in CALLS.iter().filter(|(name, _)| name.starts_with("create")) {
        store.write(|tx| tx.collection("other").and_then(|mut tx| call(&mut tx))).unwrap_or_else(
            |e| {
                unreachable!("{name}: {e}");
            },
        );
    }
    store.write(|tx| tx.append("small", b"56").map(drop)).unwrap();
    store.write(|tx| tx.remove("a")).unwrap();
    store.write(|tx| tx.copy("b", Target::New).map(drop)).unwrap();
    assert_eq!(stat().logical_bytes, sum + 2);
    assert_eq!(store.stat().unwrap().logical_bytes, u64::MAX, "of all collections, at most");
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
    store.close().unwrap();
}
