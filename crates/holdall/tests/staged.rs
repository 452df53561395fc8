//! Objects whose bytes are staged before a transaction takes them, and transactions that go
//! from thread to thread.

use holdall::{Error, ListOptions, Listed, PutMode, PutOptions, Store};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn staged_objects_wait_beside_transactions_and_appear_together() -> Outcome {
    let store = Store::in_memory()?;
    let mut large = store.stage("large", PutOptions::default())?;
    let mut small = store.stage("small", PutOptions::default())?;
    for _ in 0..40 {
        large.push(&[7; 100_000])?;
        // Neither keeps a writer out, in this thread either.
        store.write(|tx| tx.put("other", b"x"))?;
        small.push(b"y")?;
    }
    assert_eq!((large.len(), small.len(), small.is_empty()), (4_000_000, 40, false));
    assert_eq!(store.read()?.lookup("large")?, None);
    store.write(|tx| large.finish(tx).and_then(|_| small.finish(tx)))?;
    assert_eq!(store.read()?.get("large")?, Some(vec![7; 4_000_000]));
    assert_eq!(store.read()?.get("small")?, Some(vec![b'y'; 40]));
    Ok(())
}

#[test]
fn what_is_staged_and_dropped_leaves_nothing() -> Outcome {
    let store = Store::in_memory()?;
    store.write(|tx| tx.put("a", b"x"))?;
    let before = store.stat()?.used_bytes;
    let mut staged = store.stage("b", PutOptions::default())?;
    staged.push(&[1; 3_000_000])?;
    drop(staged);
    store.checkpoint()?;
    assert_eq!(store.stat()?.used_bytes, before);
    assert!(store.verify()?.is_sound());
    Ok(())
}

#[test]
fn a_staged_object_keeps_to_its_mode_and_its_store() -> Outcome {
    let (store, other) = (Store::in_memory()?, Store::in_memory()?);
    let only_new = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let staged = store.stage("a", only_new.clone())?;
    store.write(|tx| tx.put("a", b"first"))?;
    let late = store.write(|tx| staged.finish(tx));
    assert!(matches!(late, Err(Error::Exists(_))), "{late:?}");
    let strange = other.write(|tx| store.stage("b", only_new)?.finish(tx));
    assert!(matches!(strange, Err(Error::Invalid(_))), "{strange:?}");
    assert!(matches!(store.stage("", PutOptions::default()), Err(Error::Invalid(_))));
    assert_eq!(store.read()?.get("a")?, Some(b"first".into()));
    Ok(())
}

#[test]
fn a_transaction_goes_on_in_another_thread() -> Outcome {
    let store = Store::in_memory()?;
    let mut tx = store.begin_write()?;
    tx.put("a", b"here")?;
    let there = store.clone();
    std::thread::spawn(move || -> holdall::Result<()> {
        tx.put("b", b"there")?;
        // It is this thread's now: another one would wait for ever.
        let second = there.write(|tx| tx.put("c", b""));
        assert!(matches!(second, Err(Error::Busy(_))), "{second:?}");
        tx.commit()
    })
    .join()
    .map_err(|_| "the thread panicked")??;
    // And no longer this one's.
    store.write(|tx| tx.put("d", b"again"))?;
    assert_eq!(store.read()?.names("").count(), 3);
    Ok(())
}

#[test]
fn a_transaction_lists_what_it_has_put() -> Outcome {
    let store = Store::in_memory()?;
    store.write(|tx| tx.put_many([("a/1", ""), ("b", "")]))?;
    store.write(|tx| {
        tx.put("a/2", b"")?;
        tx.remove("b")?;
        assert_eq!(tx.list(&ListOptions::default())?.entries.len(), 2);
        let top = ListOptions { delimiter: Some(b"/"), ..ListOptions::default() };
        assert_eq!(tx.list(&top)?.entries, [Listed::Prefix(b"a/".to_vec())]);
        let mut nowhere = tx.collection("none")?;
        assert!(nowhere.list(&ListOptions::default())?.entries.is_empty());
        Ok(())
    })?;
    Ok(())
}
