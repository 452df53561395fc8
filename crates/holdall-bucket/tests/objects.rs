//! What programs do with objects in a bucket.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use holdall::Error;
use holdall_bucket::backend::Memory;
use holdall_bucket::format::Sizes;
use holdall_bucket::store::{ListNames, ObjectVersion, Options, PutMode, PutOptions};
use holdall_bucket::{BucketStore, CollectOptions, Splice};
use std::sync::Arc;
use std::time::Duration;

/// A store of small segments, records and nodes.
async fn store() -> BucketStore {
    store_of(3600).await
}

/// One with this grace in seconds.
async fn store_of(grace: u64) -> BucketStore {
    let sizes = Sizes { embedded: 1000, segment: 5000, slices: 16, fanout: 8, retired: 8, grace };
    Options::default().sizes(sizes).create(Arc::new(Memory::default())).await.unwrap()
}

#[tokio::test]
async fn a_put_is_certain_however_often_others_changed_the_name_since_it_was_seen() {
    let memory = Arc::new(Memory::default());
    let sizes = Sizes { embedded: 1000, segment: 5000, ..Sizes::default() };
    let mine = Options::default().sizes(sizes).create(memory.clone()).await.unwrap();
    let theirs = BucketStore::open_in(memory).await.unwrap();
    mine.put("a", "0").await.unwrap();
    let mut writer = mine.writer("b", PutOptions::default()).unwrap();
    writer.push(&bytes(7000)).await.unwrap();
    // More often than a record remembers.
    for n in 0..40 {
        theirs.put("a", n.to_string()).await.unwrap();
        theirs.put("b", n.to_string()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1100)).await;
    mine.put("a", "mine").await.unwrap();
    writer.finish().await.unwrap();
    assert_eq!(theirs.get("a").await.unwrap().unwrap(), "mine");
    assert_eq!(theirs.get("b").await.unwrap().unwrap(), bytes(7000));
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 31 % 251) as u8).collect()
}

#[tokio::test]
async fn objects_of_every_size_come_back_and_can_be_edited_anywhere() {
    let store = store().await;
    for len in [0, 1, 999, 1000, 1001, 5000, 5001, 80_000, 400_000] {
        let mut model = bytes(len);
        store.put("a", model.clone()).await.unwrap();
        assert_eq!(store.get("a").await.unwrap().unwrap(), model, "{len}");
        for turn in 0..40 {
            let at = turn * 7919 % (model.len() + 1);
            let end = (at + turn * 13).min(model.len());
            let new = bytes(turn * 91 % 1500);
            store.splice("a", at as u64..end as u64, new.clone()).await.unwrap();
            model.splice(at..end, new);
        }
        assert_eq!(store.get("a").await.unwrap().unwrap(), model, "{len}");
        let mut pieces = store.open("a").await.unwrap().unwrap().pieces(7..u64::MAX);
        let mut read = Vec::new();
        while let Some(piece) = pieces.next().await.unwrap() {
            read.extend(piece);
            assert_eq!(pieces.left(), (model.len() - 7.min(model.len()) - read.len()) as u64);
        }
        assert_eq!(read, model[7.min(model.len())..], "{len}");
        let part = store.get_range("a", 100..2000).await.unwrap().unwrap();
        assert_eq!(part, model[100.min(model.len())..2000.min(model.len())], "{len}");
        assert_eq!(store.info("a").await.unwrap().unwrap().size, model.len() as u64);
    }
    let found = store.verify(&mut |_| {}).await.unwrap();
    assert_eq!(found.problems, []);
}

#[tokio::test]
async fn several_edits_are_one_change_and_a_refused_one_changes_nothing() {
    let store = store().await;
    let before = store.put("a", "0123456789").await.unwrap();
    let edits = vec![
        Splice::Append("ab".into()),
        Splice::Replace(0..2, Bytes::new()),
        Splice::Zeros(1..1, 2),
        Splice::WriteAt(13, "z".into()),
        Splice::SetLen(15),
    ];
    let after = store.edit_if("a", edits, before).await.unwrap();
    let expected = b"2\0\x003456789ab\0z\0";
    assert_eq!(store.get("a").await.unwrap().unwrap(), &expected[..]);
    let late = store.edit_if("a", vec![Splice::SetLen(0)], before).await;
    assert!(matches!(late, Err(Error::Conflict { .. })));
    let out = store.edit("a", vec![Splice::SetLen(3), Splice::Replace(4..5, Bytes::new())]).await;
    assert!(matches!(out, Err(Error::Range { start: 4, end: 5, size: 3, .. })), "{out:?}");
    assert!(matches!(store.append("b", "x").await, Err(Error::NotFound(_))));
    assert_eq!(store.info("a").await.unwrap().unwrap().version, after);
    assert_eq!(after.to_string().parse::<ObjectVersion>().unwrap(), after);
}

#[tokio::test]
async fn conditions_attributes_and_streams() {
    let store = store().await;
    let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let attributes = [("kind".to_owned(), b"raw".to_vec()), ("#sum".to_owned(), vec![1])];
    let options = PutOptions { attributes: attributes.into(), ..create.clone() };
    let first = store.put_with("a", bytes(20_000), options).await.unwrap();
    let again = store.put_with("a", "x", create.clone()).await;
    assert!(matches!(again, Err(Error::Exists(_))));
    let again = store.put_with("a", bytes(20_000), create).await;
    assert!(matches!(again, Err(Error::Exists(_))));
    store.append("a", "x").await.unwrap();
    let info = store.info("a").await.unwrap().unwrap();
    // What says something of the bytes goes with a change of them.
    assert_eq!(info.attributes.keys().collect::<Vec<_>>(), ["kind"]);
    let update = PutOptions { mode: PutMode::Update(first), ..PutOptions::default() };
    assert!(matches!(store.put_with("a", "y", update).await, Err(Error::Conflict { .. })));
    let mut writer = store.writer("a", PutOptions::default()).unwrap();
    let model = bytes(123_456);
    for part in model.chunks(777) {
        writer.push(part).await.unwrap();
    }
    writer.finish().await.unwrap();
    assert_eq!(store.get("a").await.unwrap().unwrap(), model);
    drop(store.writer("b", PutOptions::default()).unwrap());
    assert!(store.get("b").await.unwrap().is_none(), "what is not finished is not there");
}

#[tokio::test]
async fn copies_share_and_differ_afterwards_and_nothing_is_left_behind() {
    let store = store_of(0).await;
    let model = bytes(100_000);
    store.put("a", model.clone()).await.unwrap();
    let one = store.stat(&mut |_| {}).await.unwrap();
    store.copy("a", "b").await.unwrap();
    store.concat(&["a", "b"], "c").await.unwrap();
    store.copy_range("a", 10..60_000, "a", 5).await.unwrap();
    let all = store.stat(&mut |_| {}).await.unwrap();
    assert!(all.blob_bytes < one.blob_bytes + 20_000, "{one:?} {all:?}");
    store.insert("b", 50, "between").await.unwrap();
    store.rename("b", "d/e").await.unwrap();
    let mut edited = model.clone();
    edited.splice(5..5, model[10..60_000].iter().copied());
    assert_eq!(store.get("a").await.unwrap().unwrap(), edited);
    let mut inserted = model.clone();
    inserted.splice(50..50, *b"between");
    assert_eq!(store.get("d/e").await.unwrap().unwrap(), inserted);
    assert_eq!(store.get("c").await.unwrap().unwrap(), [model.clone(), model].concat());
    assert!(store.get("b").await.unwrap().is_none());
    for name in ["a", "c", "d/e"] {
        assert!(store.remove(name).await.unwrap());
        assert!(!store.remove(name).await.unwrap());
    }
    for _ in 0..4 {
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        store.collect(CollectOptions::default(), &mut |_| {}).await.unwrap();
    }
    let left = store.stat(&mut |_| {}).await.unwrap();
    assert_eq!((left.objects, left.gone, left.blobs, left.intents), (0, 0, 0, 0), "{left:?}");
}

#[tokio::test]
async fn compacting_keeps_bytes_and_version() {
    let store = store_of(0).await;
    let mut model = bytes(200_000);
    store.put("a", model.clone()).await.unwrap();
    for at in (0..38).rev() {
        let range = at * 5000 + 100..at * 5000 + 4900;
        store.delete_range("a", range.start as u64..range.end as u64).await.unwrap();
        model.drain(range);
    }
    let before = store.info("a").await.unwrap().unwrap();
    let done = store.compact(&mut |_| {}).await.unwrap();
    assert!(done.rewritten == 1 && done.bytes >= 38 * 200, "{done:?}");
    assert_eq!(store.info("a").await.unwrap().unwrap(), before);
    assert_eq!(store.get("a").await.unwrap().unwrap(), model);
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    store.collect(CollectOptions::default(), &mut |_| {}).await.unwrap();
    let after = store.stat(&mut |_| {}).await.unwrap();
    assert!(after.blob_bytes < 2 * model.len() as u64, "{after:?}");
    assert_eq!(store.verify(&mut |_| {}).await.unwrap().problems, []);
    assert_eq!(store.compact(&mut |_| {}).await.unwrap().rewritten, 0, "there is nothing to do");
}

#[tokio::test]
async fn names_are_listed_by_prefix_folder_and_page() {
    let store = store().await;
    let names = ["a", "a/", "a//b", "a/b", ".", "..", "é!", "b/c/d", "b/c/e", "%41", "x y"];
    for name in names {
        store.put(name, name.to_owned()).await.unwrap();
    }
    store.put("gone", "x").await.unwrap();
    store.remove("gone").await.unwrap();
    let mut found = Vec::new();
    let mut what = ListNames { limit: Some(3), ..ListNames::default() };
    loop {
        let page = store.list(&what).await.unwrap();
        found.extend(page.names);
        what.after = page.next;
        if what.after.is_none() {
            break;
        }
    }
    found.sort();
    let mut expected = names.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(found, expected);
    for name in &expected {
        assert_eq!(store.get(name).await.unwrap().unwrap(), name.as_bytes());
    }
    let folders = ListNames { prefix: "b/".into(), folders: true, ..ListNames::default() };
    assert_eq!(store.list(&folders).await.unwrap().folders, ["b/c/"]);
    let folders = ListNames { prefix: String::new(), ..folders };
    let listed = store.list(&folders).await.unwrap();
    for name in (0..1100).map(|n| format!("ghost/{n:04}")) {
        store.put(&name, "").await.unwrap();
        store.remove(&name).await.unwrap();
    }
    assert_eq!(store.list(&folders).await.unwrap(), listed, "a folder without objects");
    let ghosts = ListNames { ghosts: true, ..folders.clone() };
    assert!(store.list(&ghosts).await.unwrap().folders.contains(&"ghost/".into()));
    // Behind a page of gone ones.
    store.put("ghost/2", "").await.unwrap();
    assert!(store.list(&folders).await.unwrap().folders.contains(&"ghost/".into()));
    store.remove("ghost/2").await.unwrap();
    let infos = store.infos(&["a".into(), "gone".into(), "x y".into()]).await.unwrap();
    assert_eq!(infos.iter().map(|info| info.size).collect::<Vec<_>>(), [1, 3]);
    store.collection("other").unwrap().put("z", "1").await.unwrap();
    assert_eq!(store.collections().await.unwrap(), ["default", "other"]);
    assert!(store.collection("").is_err() && store.put(&"n".repeat(901), "").await.is_err());
}
