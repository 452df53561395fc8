//! A store in a bucket behind `object_store`: the functions that it exports for testing, and what they
//! do not ask. Left out are those of uploads by id, which are not offered, and `response_extensions`.
#![cfg(feature = "bucket")]
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod both;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use holdall::Result;
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::{Access, BucketStore, Splice};
use holdall_object_store::BucketObjectStore;
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode,
    PutPayload, RenameOptions, RenameTargetMode, integration,
};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

async fn open() -> BucketObjectStore {
    let store = BucketStore::create(Arc::new(Memory::default())).await.unwrap();
    BucketObjectStore::new(store.collection("tables").unwrap())
}

macro_rules! tests {
    ($($name:ident($store:ident) $call:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let $store = open().await;
            $call.await;
        })*
    };
}

tests! {
    put_get_delete_list(s) integration::put_get_delete_list(&s);
    put_get_attributes(s) integration::put_get_attributes(&s);
    get_opts(s) integration::get_opts(&s);
    put_opts(s) integration::put_opts(&s, true);
    stream_get(s) integration::stream_get(&s);
    list_uses_directories_correctly(s) integration::list_uses_directories_correctly(&s);
    list_with_delimiter(s) integration::list_with_delimiter(&s);
    list_paginated(s) integration::list_paginated(&s, &s);
    list_with_offset_exclusivity(s) integration::list_with_offset_exclusivity(&s);
    rename_and_copy(s) integration::rename_and_copy(&s);
    copy_if_not_exists(s) integration::copy_if_not_exists(&s);
    copy_rename_nonexistent_object(s) integration::copy_rename_nonexistent_object(&s);
    multipart_race_condition(s) integration::multipart_race_condition(&s, true);
    multipart_out_of_order(s) integration::multipart_out_of_order(&s);
    parquet(s) both::parquet_comes_back(Arc::new(s));
}

/// On the server that `HOLDALL_TEST_S3=s3://BUCKET/PREFIX` names, with the variables of aws-cli.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_used_in_the_same_way() {
    let Ok(place) = std::env::var("HOLDALL_TEST_S3") else { return };
    let place = format!("{place}/object-store-{}", std::process::id());
    let made = BucketStore::create_at(&place, &Access::default(), &mut |_| {}).await;
    let s = BucketObjectStore::new(made.unwrap().0);
    integration::put_get_delete_list(&s).await;
    integration::get_opts(&s).await;
    integration::put_opts(&s, true).await;
    integration::list_paginated(&s, &s).await;
    integration::list_with_delimiter(&s).await;
    integration::rename_and_copy(&s).await;
    integration::multipart_race_condition(&s, true).await;
    integration::multipart_out_of_order(&s).await;
    both::parquet_comes_back(Arc::new(s.clone())).await;
    both::updates_lose_nothing(Arc::new(s.clone()), 4, 5).await;
}

#[tokio::test]
async fn get_nonexistent_object() {
    let store = open().await;
    for path in [None, Some(Path::from("none"))] {
        let got = integration::get_nonexistent_object(&store, path).await;
        assert!(matches!(got, Err(Error::NotFound { .. })), "{got:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditional_updates_lose_nothing() {
    both::updates_lose_nothing(Arc::new(open().await), 4, 10).await;
}

#[tokio::test]
async fn thousands_of_names_are_listed_whole() {
    let store = open().await;
    let name = |n: usize| Path::from(format!("f{}/{n:05} ü%", n % 3));
    let puts = (0..2_500).map(|n| {
        let store = &store;
        async move { store.put(&name(n), n.to_string().into()).await.map(drop) }
    });
    futures::stream::iter(puts).buffer_unordered(64).try_collect::<()>().await.unwrap();
    let all: Vec<_> = store.list(None).try_collect().await.unwrap();
    let names: BTreeSet<Path> = all.iter().map(|found| found.location.clone()).collect();
    assert_eq!((all.len(), &names), (2_500, &(0..2_500).map(name).collect()));
    assert!(all.iter().all(|found| (1..5).contains(&found.size) && found.e_tag.is_some()));

    let folder = Path::from("f1");
    let behind: Vec<_> = store.list_with_offset(Some(&folder), &name(1_000)).collect().await;
    let expected: BTreeSet<Path> = (1_001..2_500).filter(|n| n % 3 == 1).map(name).collect();
    let behind: BTreeSet<Path> = behind.into_iter().map(|found| found.unwrap().location).collect();
    assert_eq!(behind, expected);

    let top = store.list_with_delimiter(None).await.unwrap();
    let folders = ["f0", "f1", "f2"].map(Path::from).to_vec();
    assert_eq!((top.objects.len(), top.common_prefixes), (0, folders));
    let inside = store.list_with_delimiter(Some(&folder)).await.unwrap();
    assert_eq!((inside.objects.len(), inside.common_prefixes.len()), (833, 0));

    let gone = store.delete_stream(store.list(Some(&folder)).map_ok(|m| m.location).boxed());
    assert_eq!(gone.try_collect::<Vec<_>>().await.unwrap().len(), 833);
    assert_eq!(store.list(None).collect::<Vec<_>>().await.len(), 1_667);
    let folders = ["f0", "f2"].map(Path::from).to_vec();
    assert_eq!(store.list_with_delimiter(None).await.unwrap().common_prefixes, folders);
}

#[tokio::test]
async fn large_objects_come_back_in_pieces_and_ranges() {
    let store = open().await;
    let path = Path::from("large");
    let bytes: Vec<u8> = (0..30_000_000_u32).map(|i| (i % 251) as u8).collect();
    let chunks: Vec<Bytes> = bytes.chunks(7_000_001).map(|c| c.to_vec().into()).collect();
    store.put(&path, chunks.into_iter().collect::<PutPayload>()).await.unwrap();
    store.store().insert("large", 10_000_000, "in the middle").await.unwrap();
    let mut now = bytes;
    now.splice(10_000_000..10_000_000, *b"in the middle");
    let got = store.get(&path).await.unwrap();
    assert_eq!((got.meta.size, got.range.clone()), (30_000_013, 0..30_000_013));
    let pieces: Vec<_> = got.into_stream().try_collect().await.unwrap();
    assert!(pieces.iter().all(|piece| piece.len() <= 8 << 20));
    assert_eq!(pieces.concat(), now);
    let ranges = [29_999_990..30_000_020, 3..9, 9_999_999..10_000_014, 5..7];
    let got = store.get_ranges(&path, &ranges).await.unwrap();
    let expected =
        ranges.map(|range| &now[range.start as usize..now.len().min(range.end as usize)]);
    assert_eq!(got, expected);
    let outside = std::slice::from_ref(&(30_000_013..30_000_014));
    assert!(store.get_ranges(&path, outside).await.is_err());
    let last = store.get_range(&path, 30_000_000..30_000_013).await.unwrap();
    assert_eq!(last, now[30_000_000..]);
}

#[tokio::test]
async fn a_part_that_nobody_waited_for_ends_an_upload() {
    let store = open().await;
    let path = Path::from("parts");
    let part = || PutPayload::from(vec![7; 9_000_000]);
    let mut upload = store.put_multipart(&path).await.unwrap();
    let first = upload.put_part(part());
    upload.put_part(part()).await.unwrap();
    assert!(upload.complete().await.unwrap_err().to_string().contains("1 of 2 parts"));
    // It was pushed before the second.
    first.await.unwrap();
    upload.complete().await.unwrap();
    assert_eq!(store.head(&path).await.unwrap().size, 18_000_000);
    assert!(upload.complete().await.is_err());

    let mut upload = store.put_multipart(&Path::from("none")).await.unwrap();
    upload.put_part(part()).await.unwrap();
    upload.abort().await.unwrap();
    assert!(upload.put_part(part()).await.is_err());
    assert!(upload.complete().await.is_err());
    let listed: Vec<_> =
        store.list(None).map_ok(|found| found.location).try_collect().await.unwrap();
    assert_eq!(listed, [path]);
}

#[tokio::test]
async fn a_part_that_is_polled_once_keeps_no_other_waiting() {
    let store = open().await;
    let mut upload = store.put_multipart(&Path::from("a")).await.unwrap();
    let parts: Vec<_> = (0..3).map(|n| upload.put_part(vec![n; 20_000_000].into())).collect();
    let [first, mut second, third] = <[_; 3]>::try_from(parts).ok().unwrap();
    assert!(futures::poll!(&mut second).is_pending());
    third.await.unwrap();
    first.await.unwrap();
    second.await.unwrap();
    upload.complete().await.unwrap();
    let bytes = store.get(&Path::from("a")).await.unwrap().bytes().await.unwrap();
    assert!(bytes.iter().enumerate().all(|(at, byte)| usize::from(*byte) == at / 20_000_000));
}

#[tokio::test]
async fn an_upload_that_stalls_is_given_up() {
    let store = BucketStore::create(Arc::new(Broken(Memory::default()))).await.unwrap();
    let store = BucketObjectStore::new(store);
    let mut upload = store.put_multipart(&Path::from("a")).await.unwrap();
    let part = upload.put_part(vec![7; 100_000_000].into());
    let waited = tokio::time::timeout(std::time::Duration::from_millis(50), part).await;
    assert!(waited.is_err(), "blobs stall");
    assert!(upload.complete().await.unwrap_err().to_string().contains("0 of 1 parts"));
    upload.abort().await.unwrap();
    let next = upload.put_part("x".into()).await.unwrap_err();
    assert!(next.to_string().contains("has ended"), "{next}");
    assert!(matches!(store.head(&Path::from("a")).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn what_is_not_understood_is_refused() {
    let store = open().await;
    let path = Path::from("a");
    store.put(&path, "x".into()).await.unwrap();
    let old = GetOptions { version: Some("1".into()), ..GetOptions::default() };
    assert!(matches!(store.get_opts(&path, old).await, Err(Error::NotSupported { .. })));
    let cold =
        object_store::Attributes::from_iter([(object_store::Attribute::StorageClass, "COLD")]);
    let put = store.put_opts(&path, "y".into(), cold.clone().into()).await;
    assert!(matches!(put, Err(Error::NotSupported { .. })));
    assert!(store.put_multipart_opts(&path, cold.into()).await.is_err());
    for e_tag in [None, Some("1")] {
        let known = object_store::UpdateVersion { e_tag: e_tag.map(str::to_owned), version: None };
        let put = store.put_opts(&path, "y".into(), PutMode::Update(known).into()).await;
        assert!(matches!(put, Err(Error::Precondition { .. })), "{put:?}");
    }
    assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), "x");
    let long = Path::from("n".repeat(1_000));
    assert!(matches!(store.put(&long, "x".into()).await, Err(Error::Generic { .. })));
}

#[tokio::test]
async fn targets_that_are_there_are_kept_if_that_is_asked() {
    let store = open().await;
    let [a, b, c] = ["a", "b", "c"].map(Path::from);
    store.put(&a, "a".into()).await.unwrap();
    store.put(&b, "b".into()).await.unwrap();
    let create = CopyOptions { mode: CopyMode::Create, ..CopyOptions::default() };
    let copied = store.copy_opts(&a, &b, create.clone()).await;
    assert!(matches!(copied, Err(Error::AlreadyExists { .. })), "{copied:?}");
    let create =
        RenameOptions { target_mode: RenameTargetMode::Create, ..RenameOptions::default() };
    let renamed = store.rename_opts(&a, &b, create.clone()).await;
    assert!(matches!(renamed, Err(Error::AlreadyExists { .. })), "{renamed:?}");
    store.rename_opts(&a, &c, create).await.unwrap();
    assert!(matches!(store.head(&a).await, Err(Error::NotFound { .. })));
    store.rename(&c, &b).await.unwrap();
    store.rename(&b, &b).await.unwrap();
    assert_eq!(store.get(&b).await.unwrap().bytes().await.unwrap(), "a");
    store.store().edit("b", vec![Splice::Append("!".into())]).await.unwrap();
    assert_eq!(store.get(&b).await.unwrap().bytes().await.unwrap(), "a!");
}

#[tokio::test]
async fn an_unknown_outcome_is_neither_success_nor_absence() {
    let store = BucketStore::create(Arc::new(Broken(Memory::default()))).await.unwrap();
    let store = BucketObjectStore::new(store);
    let (lost, there) = (Path::from("lost"), Path::from("there"));
    store.put(&there, "x".into()).await.unwrap();
    let unknown = |e: Error| match e {
        Error::Generic { source, .. } => assert!(
            matches!(source.downcast_ref(), Some(holdall::Error::OutcomeUnknown { .. })),
            "{source}"
        ),
        other => panic!("{other:?}"),
    };
    unknown(store.put(&lost, "x".into()).await.unwrap_err());
    let mut upload = store.put_multipart(&lost).await.unwrap();
    upload.put_part("x".into()).await.unwrap();
    unknown(upload.complete().await.unwrap_err());
    unknown(store.copy(&there, &lost).await.unwrap_err());
    unknown(store.rename(&there, &lost).await.unwrap_err());
    assert!(matches!(store.head(&lost).await, Err(Error::Generic { .. })));
}

/// A bucket in which no blob is ever written, nothing is known of the key of the object `lost`, and
/// that key cannot be read.
#[derive(Debug)]
struct Broken(Memory);

fn is_lost(key: &str) -> bool {
    key.ends_with("/lost!")
}

#[async_trait]
impl Backend for Broken {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        if is_lost(key) {
            return Err(holdall::Error::NotFound("the bucket: it was deleted".into()));
        }
        self.0.get(key, range, unless).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        if key.starts_with("b/") {
            std::future::pending::<()>().await;
        }
        self.0.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        match is_lost(key) {
            true => Ok(Put::Unknown("no answer".into())),
            false => self.0.put_if(key, expected, bytes).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.0.delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.0.delete_if(key, tag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.0.list(prefix, after, folders, limit).await
    }

    fn features(&self) -> Features {
        self.0.features()
    }
}
