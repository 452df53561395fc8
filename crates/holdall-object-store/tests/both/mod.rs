//! What both doors are asked: that of a store's file, and that of one in a bucket.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt as _;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
#[expect(deprecated, reason = "its successor is an example to be copied")]
use parquet::arrow::async_reader::ParquetObjectReader;
use parquet::arrow::{AsyncArrowWriter, ParquetRecordBatchStreamBuilder, ProjectionMask};
use std::sync::Arc;

pub async fn parquet_comes_back(bucket: Arc<dyn ObjectStore>) {
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

/// Tasks add to one counter; each update is of the version that was read.
pub async fn updates_lose_nothing(bucket: Arc<dyn ObjectStore>, tasks: usize, each: usize) {
    let path = Path::from("counter");
    bucket.put(&path, "0".into()).await.unwrap();
    let running = (0..tasks).map(|_| {
        let (bucket, path) = (bucket.clone(), path.clone());
        tokio::spawn(async move {
            for _ in 0..each {
                while !count(&*bucket, &path).await {}
            }
        })
    });
    futures::future::join_all(running).await.into_iter().for_each(|task| task.unwrap());
    let all = bucket.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(all, (tasks * each).to_string());
}

async fn count(bucket: &dyn ObjectStore, path: &Path) -> bool {
    let got = bucket.get(path).await.unwrap();
    let e_tag = got.meta.e_tag.clone();
    let text = String::from_utf8(got.bytes().await.unwrap().to_vec()).unwrap();
    let next = PutPayload::from((text.parse::<u64>().unwrap() + 1).to_string());
    let known = object_store::UpdateVersion { e_tag, version: None };
    match bucket.put_opts(path, next, PutMode::Update(known).into()).await {
        Ok(_) => true,
        Err(e) => {
            assert!(matches!(e, object_store::Error::Precondition { .. }), "{e}");
            false
        }
    }
}
