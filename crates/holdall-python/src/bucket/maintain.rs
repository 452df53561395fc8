//! Looking after a store in a bucket. Reports leave as JSON with the fields of the command line's.

use super::Bucket;
use crate::errors::{Fail, Outcome};
use crate::maintain::Watcher;
use holdall::Result;
use holdall_bucket::{BucketProblem, BucketStore, CollectOptions};
use pyo3::prelude::*;
use serde_json::json;

impl Bucket {
    /// Waits for `work` and shows a Python function how far it is.
    fn watched<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl AsyncFnOnce(&BucketStore, &mut Watcher) -> Result<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| -> Outcome<T> {
            let mut watcher = Watcher::new(progress);
            let done = self.handle.wait(None, async |store| work(store, &mut watcher).await);
            // What the function raised ends the call only then: none of this can be half done.
            match done {
                Ok(done) => watcher.ended(done),
                Err(Fail::Store(e)) => watcher.ended(()).and(Err(e.into())),
                Err(other) => Err(other),
            }
        })?)
    }
}

#[pymethods]
impl Bucket {
    /// Deletes what nothing names any more; what was done as JSON.
    #[pyo3(name = "_gc")]
    fn gc(
        &self,
        py: Python<'_>,
        full: bool,
        alone: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        self.handle.check_writes()?;
        let options = CollectOptions { alone, full };
        let done = self.watched(py, progress, async |store, watcher| {
            let tell = &mut |so_far: &holdall_bucket::Collected| {
                watcher.tell(so_far.bytes, 0, false);
            };
            store.collect(options, tell).await
        })?;
        Ok(json!({
            "cycle": done.cycle, "records": done.records, "records_read": done.read,
            "intents": done.intents, "operations_closed": done.closed, "blobs_deleted": done.blobs,
            "bytes_deleted": done.bytes, "gone_records_deleted": done.gone,
            "overtaken": done.overtaken,
        })
        .to_string())
    }

    /// Reads everything; what is damaged as JSON.
    #[pyo3(name = "_verify")]
    fn verify(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let found = self.watched(py, progress, async |store, watcher| {
            let tell = &mut |so_far: &holdall_bucket::Verified| {
                watcher.tell(so_far.bytes, 0, false);
            };
            store.verify(tell).await
        })?;
        let problem = |problem: &BucketProblem| {
            let (collection, name) = problem.object.clone().unzip();
            json!({ "collection": collection, "name": name, "detail": problem.detail })
        };
        Ok(json!({
            "sound": found.problems.is_empty(), "objects": found.objects, "blobs": found.blobs,
            "bytes": found.bytes, "unnamed_blobs": found.unnamed,
            "unnamed_bytes": found.unnamed_bytes,
            "problems": found.problems.iter().map(problem).collect::<Vec<_>>(),
        })
        .to_string())
    }

    /// Writes again what is left of blobs of which little is named; what was done as JSON.
    #[pyo3(name = "_compact")]
    fn compact(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<String> {
        self.handle.check_writes()?;
        let done = self.watched(py, progress, async |store, watcher| {
            let tell = &mut |so_far: &holdall_bucket::Compacted| {
                watcher.tell(so_far.bytes, 0, false);
            };
            store.compact(tell).await
        })?;
        Ok(json!({
            "objects": done.objects, "rewritten": done.rewritten, "bytes": done.bytes,
            "shared": done.shared, "changed_meanwhile": done.changed,
        })
        .to_string())
    }

    /// What the store holds, as JSON.
    #[pyo3(name = "_stat")]
    fn stat(&self, py: Python<'_>) -> PyResult<String> {
        let (id, stat) = self.watched(py, None, async |store, _| {
            Ok((store.id().to_owned(), store.stat(&mut |_| ()).await?))
        })?;
        Ok(json!({
            "id": id, "collections": stat.collections, "objects": stat.objects,
            "shared": stat.shared, "gone": stat.gone, "retiring": stat.retiring,
            "record_bytes": stat.record_bytes, "blobs": stat.blobs,
            "blob_bytes": stat.blob_bytes, "intents": stat.intents,
        })
        .to_string())
    }
}
