//! What objects are called by, and what calls say of names and OIDs that name none.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Key, Oid, Options, Store};
use holdall_io::MemoryStorage;
use std::borrow::Cow;
use std::sync::Arc;

fn store() -> Store {
    let options = Options::default().background(false);
    options.create_on(Arc::new(MemoryStorage::new())).unwrap()
}

/// One name for all of `put`, `lookup`, `get`, `append` and `remove`, each given the same type.
fn name_by<'k, N: AsRef<[u8]> + Into<Key<'k>> + Clone>(name: N) {
    let store = store();
    let oid = store.write(|tx| tx.put(name.clone(), b"bytes")).unwrap();
    store.write(|tx| tx.append(name.clone(), b" and more")).unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.lookup(name.clone()).unwrap(), Some(oid));
    assert_eq!(reader.get(name.clone()).unwrap().unwrap(), b"bytes and more");
    assert_eq!(reader.metadata(name.clone()).unwrap().name.unwrap(), b"12345678");
    assert!(store.write(|tx| tx.remove(name.clone())).unwrap());
    assert_eq!(store.read().unwrap().get(name).unwrap(), None);
}

#[test]
fn what_put_takes_as_a_name_every_call_takes() {
    name_by("12345678");
    name_by(&"12345678");
    name_by(String::from("12345678"));
    name_by(&String::from("12345678"));
    name_by(*b"12345678");
    name_by(b"12345678");
    name_by(&b"12345678"[..]);
    name_by(b"12345678".to_vec());
    name_by(&b"12345678".to_vec());
    name_by(Cow::Borrowed(&b"12345678"[..]));
    name_by(0x3132_3334_3536_3738_u64.to_be_bytes());
}

#[test]
fn a_key_is_used_again_by_reference() {
    let store = store();
    let oid = store.write(|tx| tx.put("a", b"bytes")).unwrap();
    let reader = store.read().unwrap();
    for key in [Key::from("a"), Key::from(*b"a"), Key::from(oid)] {
        assert_eq!(reader.get(&key).unwrap(), reader.get(key).unwrap());
    }
}

#[test]
fn removing_what_is_missing_is_no_error_and_the_transaction_goes_on() {
    let store = store();
    let gone = store.write(|tx| tx.put("gone", b"bytes")).unwrap();
    store
        .write(|tx| {
            tx.put("kept", b"first")?;
            assert!(!tx.remove("none")?);
            assert!(!tx.collection("new")?.remove("kept")?, "of another collection");
            assert!(tx.remove("gone")?);
            assert!(!tx.remove("gone")?);
            assert!(matches!(tx.remove(gone), Err(Error::Dangling(oid)) if oid == gone));
            tx.append("kept", b" and second")
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.get("kept").unwrap().unwrap(), b"first and second");
    assert_eq!(reader.get("gone").unwrap(), None);
    assert_eq!(reader.collections().unwrap(), ["default"], "looking for a name makes nothing");
    assert_eq!(store.stat().unwrap().objects, 1);
}

#[test]
fn a_missing_name_is_an_answer_of_reads_and_an_error_of_all_else() {
    let store = store();
    // Before there is a collection, and then.
    for _ in 0..2 {
        let reader = store.read().unwrap();
        let mut bytes = vec![1, 2, 3];
        assert_eq!(reader.get("none").unwrap(), None);
        assert_eq!(reader.get_range("none", 5..9).unwrap(), None);
        assert_eq!(reader.read_at("none", 5, &mut bytes).unwrap(), None);
        assert_eq!(store.read_at("none", 5, &mut bytes).unwrap(), None);
        assert!(!store.get_into("none", &mut bytes).unwrap() && bytes.is_empty());
        assert!(matches!(reader.open("none"), Err(Error::NotFound(_))));
        assert!(matches!(reader.metadata("none"), Err(Error::NotFound(_))));
        let all = |tx: &mut holdall::WriteTx| {
            assert_eq!(tx.get("none")?, None);
            assert_eq!(tx.get_range("none", 5..9)?, None);
            assert!(matches!(tx.open("none"), Err(Error::NotFound(_))));
            assert!(matches!(tx.set_len("none", 5), Err(Error::NotFound(_))));
            assert!(matches!(tx.delete_range("none", 0..0), Err(Error::NotFound(_))));
            tx.put("there", b"bytes")
        };
        store.write(all).unwrap();
    }
}

#[test]
fn an_oid_that_names_no_object_is_an_error_of_reads_too() {
    let store = store();
    let gone = store.write(|tx| tx.create(b"bytes")).unwrap();
    assert!(store.write(|tx| tx.remove(gone)).unwrap());
    let never = Oid { page: 700_000, ..gone };
    let reader = store.read().unwrap();
    let mut bytes = vec![0; 3];
    assert!(matches!(reader.get(gone), Err(Error::Dangling(_))));
    assert!(matches!(reader.get_range(gone, 0..1), Err(Error::Dangling(_))));
    assert!(matches!(reader.read_at(gone, 0, &mut bytes), Err(Error::Dangling(_))));
    assert!(matches!(store.get_into(gone, &mut bytes), Err(Error::Dangling(_))));
    assert!(matches!(reader.get(never), Err(Error::NotFound(_))));
    store
        .write(|tx| {
            assert!(matches!(tx.get(gone), Err(Error::Dangling(_))));
            assert!(matches!(tx.remove(never), Err(Error::NotFound(_))));
            tx.put("after", b"bytes")
        })
        .unwrap();
}
