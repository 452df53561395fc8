//! What `object_store`'s own tests do not ask.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::{StreamExt as _, TryStreamExt as _};
use holdall::Store;
use holdall_object_store::HoldallObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
#[expect(deprecated, reason = "its successor is an example to be copied")]
use parquet::arrow::async_reader::ParquetObjectReader;
use parquet::arrow::{AsyncArrowWriter, ParquetRecordBatchStreamBuilder, ProjectionMask};
use std::sync::Arc;

fn open(dir: &tempfile::TempDir) -> (Store, HoldallObjectStore) {
    let store = Store::open_or_create(dir.path().join("a.holdall")).unwrap();
    (store.clone(), HoldallObjectStore::new(store))
}

#[tokio::test]
async fn parquet_is_written_and_a_column_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, bucket) = open(&dir);
    let bucket: Arc<dyn ObjectStore> = Arc::new(bucket);
    let path = Path::from("tables/a.parquet");
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
    let names = (0..100_000).map(|i| format!("name {i}"));
    let names: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
    let writer = BufWriter::new(bucket.clone(), path.clone());
    let mut writer = AsyncArrowWriter::try_new(writer, batch.schema(), None).unwrap();
    writer.write(&batch).await.unwrap();
    writer.close().await.unwrap();

    #[expect(deprecated, reason = "as above")]
    let reader = ParquetObjectReader::new(bucket, path);
    let builder = ParquetRecordBatchStreamBuilder::new(reader).await.unwrap();
    let only = ProjectionMask::leaves(builder.parquet_schema(), [0]);
    let batches: Vec<RecordBatch> =
        builder.with_projection(only).build().unwrap().try_collect().await.unwrap();
    let ids = batches.iter().flat_map(|batch| {
        assert_eq!(batch.num_columns(), 1);
        batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
    });
    assert!(ids.eq(0..100_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn conditional_updates_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, bucket) = open(&dir);
    let path = Path::from("counter");
    bucket.put(&path, "0".into()).await.unwrap();
    let tasks = (0..8).map(|_| {
        let (bucket, path) = (bucket.clone(), path.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                loop {
                    let got = bucket.get(&path).await.unwrap();
                    let etag = got.meta.e_tag.clone();
                    let count: u64 = String::from_utf8(got.bytes().await.unwrap().to_vec())
                        .unwrap()
                        .parse()
                        .unwrap();
                    let known = object_store::UpdateVersion { e_tag: etag, version: None };
                    let next = PutPayload::from((count + 1).to_string());
                    match bucket.put_opts(&path, next, PutMode::Update(known).into()).await {
                        Ok(_) => break,
                        Err(object_store::Error::Precondition { .. }) => {}
                        Err(e) => panic!("{e}"),
                    }
                }
            }
        })
    });
    futures::future::join_all(tasks).await.into_iter().for_each(|task| task.unwrap());
    assert_eq!(bucket.get(&path).await.unwrap().bytes().await.unwrap(), "400");
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
