//! Objects put in parts, as a stream.
//!
//! Owns: [`Upload`]. A task pushes parts into one writer in the order of their calls, whichever is
//! waited for first, and whether or not somebody waits: a future that is polled once and left would
//! otherwise keep the others waiting. A part is held until it was pushed, so what is in memory are the
//! parts that the caller has under way, and the writer's own blobs.

use super::failed;
use crate::attributes::to_stored;
use crate::error;
use crate::write::put_result;
use async_trait::async_trait;
use holdall_bucket::BucketStore;
use holdall_bucket::store::{PutOptions, Writer};
use object_store::path::Path;
use object_store::{
    MultipartUpload, PutMultipartOptions, PutPayload, PutResult, Result, UploadPart,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// What the task is to do, and where it answers.
enum Order {
    Push(PutPayload, oneshot::Sender<Result<()>>),
    Finish(oneshot::Sender<Result<PutResult>>),
}

/// An upload. One that is given up, or whose process ends, leaves blobs for a collector, no object.
#[derive(Debug)]
pub struct Upload {
    orders: mpsc::UnboundedSender<Order>,
    task: JoinHandle<()>,
    /// Parts asked for.
    count: usize,
    /// Parts whose callers know that they were pushed.
    come: Arc<AtomicUsize>,
}

impl Upload {
    /// Begins an upload. Tags are not kept.
    ///
    /// # Errors
    /// NotSupported for an attribute that has no place; a name or attributes that are too long; that
    /// it was called outside of a runtime of tokio.
    pub fn new(
        store: &BucketStore,
        location: &Path,
        options: &PutMultipartOptions,
    ) -> Result<Self> {
        let attributes = to_stored(&options.attributes)?;
        let options = PutOptions { attributes, ..PutOptions::default() };
        let writer = store.writer(location.as_ref(), options).map_err(failed(location.as_ref()))?;
        let runtime = Handle::try_current().map_err(|e| error::message(e.to_string()))?;
        let (orders, taken) = mpsc::unbounded_channel();
        let task = runtime.spawn(run(writer, location.clone(), taken));
        Ok(Self { orders, task, count: 0, come: Arc::default() })
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ended() -> object_store::Error {
    error::message("the upload has ended: it was completed or given up, or a part of it failed")
}

/// Carries orders out; after an error none of them.
async fn run(writer: Writer, location: Path, mut orders: mpsc::UnboundedReceiver<Order>) {
    let failed = failed(location.as_ref());
    let mut writer = Some(writer);
    // Nobody may be waiting for the answer any more.
    while let Some(order) = orders.recv().await {
        match order {
            Order::Push(part, answer) => {
                let pushed = match &mut writer {
                    None => Err(ended()),
                    Some(writer) => push(writer, &part).await.map_err(&failed),
                };
                if pushed.is_err() {
                    writer = None;
                }
                let _ = answer.send(pushed);
            }
            Order::Finish(answer) => {
                let finished = match writer.take() {
                    None => Err(ended()),
                    Some(writer) => writer.finish().await.map(put_result).map_err(&failed),
                };
                let _ = answer.send(finished);
            }
        }
    }
}

async fn push(writer: &mut Writer, part: &PutPayload) -> holdall::Result<()> {
    for chunk in part {
        writer.push(chunk).await?;
    }
    Ok(())
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.count += 1;
        let (answer, answered) = oneshot::channel();
        // If the task has ended, so has the channel of the answer.
        let _ = self.orders.send(Order::Push(data, answer));
        let come = self.come.clone();
        Box::pin(async move {
            answered.await.unwrap_or_else(|_| Err(ended()))?;
            come.fetch_add(1, Relaxed);
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let come = self.come.load(Relaxed);
        if come != self.count {
            let text = format!("{come} of {} parts have come", self.count);
            return Err(error::message(text));
        }
        let (answer, answered) = oneshot::channel();
        let _ = self.orders.send(Order::Finish(answer));
        answered.await.unwrap_or_else(|_| Err(ended()))
    }

    async fn abort(&mut self) -> Result<()> {
        self.task.abort();
        Ok(())
    }
}
