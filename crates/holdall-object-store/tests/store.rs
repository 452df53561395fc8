//! What `object_store`'s own tests do not ask.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod both;

use futures::StreamExt as _;
use holdall::Store;
use holdall_object_store::HoldallObjectStore;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt as _};
use std::sync::Arc;

fn open(dir: &tempfile::TempDir) -> (Store, HoldallObjectStore) {
    let store = Store::open_or_create(dir.path().join("a.holdall")).unwrap();
    (store.clone(), HoldallObjectStore::new(store))
}

#[tokio::test]
async fn parquet_is_written_and_a_column_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, bucket) = open(&dir);
    both::parquet_comes_back(Arc::new(bucket)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditional_updates_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, bucket) = open(&dir);
    both::updates_lose_nothing(Arc::new(bucket), 8, 50).await;
}

#[tokio::test]
async fn a_version_that_was_asked_for_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, bucket) = open(&dir);
    let path = Path::from("a");
    bucket.put(&path, "x".into()).await.unwrap();
    let old = GetOptions { version: Some("1".into()), ..GetOptions::default() };
    let got = bucket.get_opts(&path, old).await;
    assert!(matches!(got, Err(object_store::Error::NotSupported { .. })), "{got:?}");
}

#[tokio::test]
async fn what_was_put_is_there_after_another_opening() {
    let dir = tempfile::tempdir().unwrap();
    let large: Vec<u8> = (0..5_000_000_u32).map(|i| (i % 251) as u8).collect();
    {
        let (store, bucket) = open(&dir);
        bucket.put(&Path::from("a/large"), large.clone().into()).await.unwrap();
        let mut upload = bucket.put_multipart(&Path::from("a/parts")).await.unwrap();
        let parts: Vec<_> = large.chunks(1_700_000).map(|part| part.to_vec().into()).collect();
        let sent = parts.into_iter().map(|part| upload.put_part(part)).collect::<Vec<_>>();
        futures::future::try_join_all(sent).await.unwrap();
        upload.complete().await.unwrap();
        let mut dropped = bucket.put_multipart(&Path::from("a/dropped")).await.unwrap();
        dropped.put_part(large.clone().into()).await.unwrap();
        drop((dropped, bucket));
        store.close().unwrap();
    }
    let (store, bucket) = open(&dir);
    for name in ["a/large", "a/parts"] {
        assert_eq!(bucket.get(&Path::from(name)).await.unwrap().bytes().await.unwrap(), large);
    }
    let listed: Vec<_> = bucket.list(None).map(|found| found.unwrap().location).collect().await;
    assert_eq!(listed, [Path::from("a/large"), Path::from("a/parts")]);
    let ranges = bucket.get_ranges(&Path::from("a/large"), &[3..5, 0..1]).await.unwrap();
    assert_eq!(ranges, [&large[3..5], &large[0..1]]);
    assert!(store.verify().unwrap().is_sound());
    let live = store.stat().unwrap().logical_bytes;
    assert!(live < 10_100_000, "an upload that was given up takes {live} bytes");
}

#[tokio::test]
async fn names_that_have_no_form_as_paths_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let (store, bucket) = open(&dir);
    let names: [&[u8]; 6] = [b"a", b"a//b", b"../x", b"dir/", b"\xff", b"dir/in"];
    store.write(|tx| names.iter().try_for_each(|name| tx.put(name, b"x").map(drop))).unwrap();
    let listed: Vec<_> = bucket.list(None).map(|found| found.unwrap().location).collect().await;
    assert_eq!(listed, [Path::from("a"), Path::from("dir/in")]);
    let top = bucket.list_with_delimiter(None).await.unwrap();
    assert_eq!((top.objects.len(), top.common_prefixes.len()), (1, 2));
}
