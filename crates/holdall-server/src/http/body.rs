//! Bodies: taking requests' in, giving objects out.
//!
//! Owns: [`collect`], [`pump`], [`Outgoing`]. The engine's calls block, so they run on threads
//! kept for that; between those and the network lie channels of few pieces, so that a slow side
//! slows the other and memory stays bounded.

use crate::http::slots::Slot;
use crate::refusal::{Refusal, Result, Why};
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use holdall::Object;
use parking_lot::Mutex;
use s3s::StdError;
use s3s::dto::StreamingBlob;
use s3s::stream::{ByteStream, RemainingLength};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Bodies up to this size are taken into memory whole.
pub const SMALL: u64 = 1 << 20;
/// Bytes of an object read at a time.
const PIECE: usize = 512 << 10;
/// Pieces of a body that wait between network and engine.
const WAITING: usize = 2;

/// Runs what may wait for a disk or a lock where waiting hurts nobody.
///
/// # Errors
/// Those of `work`; Internal if it panics.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    run(work).await
}

/// As [`blocking`], in a door's own errors.
///
/// # Errors
/// Those of `work`; [`Why::Internal`] if it panics.
pub async fn run<T: Send + 'static, E: From<Refusal> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    let ended = tokio::task::spawn_blocking(work).await;
    ended.unwrap_or_else(|e| Err(Refusal::internal(&e).into()))
}

/// The next piece of a body, which must come within `idle`.
async fn next(body: &mut StreamingBlob, idle: Duration) -> Result<Option<Bytes>> {
    match tokio::time::timeout(idle, body.next()).await {
        Err(_) => Err(Why::Late.says(format!("no byte of the body came for {idle:?}"))),
        Ok(None) => Ok(None),
        Ok(Some(Ok(bytes))) => Ok(Some(bytes)),
        Ok(Some(Err(e))) => Err(broken(e)),
    }
}

/// An error of a body: what `s3s` found wrong in it, or a connection that ended.
fn broken(e: StdError) -> Refusal {
    match e.downcast::<Refusal>() {
        Ok(told) => *told,
        Err(e) => {
            let text = e.to_string();
            // Their types are private to `s3s`; their texts are all that distinguishes them.
            if text.contains("ignature") {
                Why::BadSignature.says("the body is not signed as its request says")
            } else if text.contains("hecksum") || text.contains("Sha256") {
                let told = "the body is not what x-amz-content-sha256 says";
                Why::OtherSigned.says(told)
            } else {
                Why::CutOff.says(format!("the body cannot be used: {text}"))
            }
        }
    }
}

/// Takes a body of at most `most` bytes into memory.
///
/// # Errors
/// TooLong, Late, CutOff.
pub async fn collect(mut body: StreamingBlob, most: u64, idle: Duration) -> Result<Bytes> {
    let Some(first) = next(&mut body, idle).await? else { return Ok(Bytes::new()) };
    let Some(second) = next(&mut body, idle).await? else { return Ok(first) };
    let mut all = Vec::with_capacity(first.len() + second.len());
    all.extend_from_slice(&first);
    all.extend_from_slice(&second);
    loop {
        if all.len() as u64 > most {
            return Err(Why::TooLong.says(format!("the body has more than {most} bytes")));
        }
        match next(&mut body, idle).await? {
            Some(bytes) => all.extend_from_slice(&bytes),
            None => return Ok(all.into()),
        }
    }
}

/// A body as a thread of the engine sees it.
#[derive(Debug)]
pub struct Chunks(mpsc::Receiver<Result<Option<Bytes>>>);

impl Chunks {
    /// The next piece; `None` at the end. Blocks.
    ///
    /// # Errors
    /// What ended the body early.
    pub fn next(&mut self) -> Result<Option<Bytes>> {
        let gone = || Err(Why::CutOff.says("the connection ended before the body"));
        self.0.blocking_recv().unwrap_or_else(gone)
    }
}

/// Runs `work` on a thread of its own beside the body's arrival, in the room of `slot`.
///
/// # Errors
/// Those of `work`, to which errors of the body come; TooLong beyond `most` bytes.
pub async fn pump<T: Send + 'static>(
    mut body: StreamingBlob,
    slot: &Slot,
    (most, idle): (u64, Duration),
    work: impl FnOnce(Chunks) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (send, receive) = mpsc::channel(WAITING);
    let worker = tokio::task::spawn_blocking(move || work(Chunks(receive)));
    let mut taken = 0;
    loop {
        let mut piece = slot.wait(next(&mut body, idle)).await;
        if let Ok(Some(bytes)) = &piece {
            slot.came(bytes.len() as u64);
            taken += bytes.len() as u64;
            if taken > most {
                piece = Err(Why::TooLong.says(format!("the body has more than {most} bytes")));
            }
        }
        let last = !matches!(piece, Ok(Some(_)));
        // Gone if the work ended early: its result says why.
        if send.send(piece).await.is_err() || last {
            break;
        }
    }
    worker.await.unwrap_or_else(|e| Err(Refusal::internal(&e)))
}

/// Memory of pieces that were sent, for the next ones of the same answer: new memory would have to
/// be zeroed, and is in no cache of the processor.
#[derive(Debug, Default)]
struct Spare(Mutex<Vec<Vec<u8>>>);

/// A piece on its way out.
struct Piece {
    bytes: Vec<u8>,
    spare: Arc<Spare>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.spare.0.lock().push(std::mem::take(&mut self.bytes));
    }
}

/// Bytes of an object on their way out, one piece read ahead.
#[derive(Debug)]
pub struct Outgoing {
    object: Arc<Object>,
    spare: Arc<Spare>,
    /// First byte not asked for yet.
    at: u64,
    end: u64,
    /// Bytes not handed out yet.
    left: u64,
    reading: Option<JoinHandle<Result<Bytes>>>,
}

impl Outgoing {
    /// The bytes `at..end`, which exist.
    pub fn new(object: Object, at: u64, end: u64) -> Self {
        let (object, spare) = (Arc::new(object), Arc::default());
        let mut new = Self { object, spare, at, end, left: end - at, reading: None };
        new.read_on();
        new
    }

    fn read_on(&mut self) {
        let left = self.end - self.at;
        if left == 0 {
            return;
        }
        let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let (object, spare, at) = (self.object.clone(), self.spare.clone(), self.at);
        self.at += len as u64;
        self.reading = Some(tokio::task::spawn_blocking(move || {
            let bytes = spare.0.lock().pop().unwrap_or_default();
            let mut piece = Piece { bytes, spare };
            piece.bytes.resize(len, 0);
            object.read_at(at, &mut piece.bytes)?;
            Ok(Bytes::from_owner(piece))
        }));
    }
}

impl Stream for Outgoing {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        let Poll::Ready(ended) = Pin::new(reading).poll(cx) else { return Poll::Pending };
        self.reading = None;
        let piece = ended.unwrap_or_else(|e| Err(Refusal::internal(&e)));
        Poll::Ready(Some(match piece {
            Ok(bytes) => {
                self.left -= bytes.len() as u64;
                self.read_on();
                Ok(bytes)
            }
            Err(e) => Err(Box::new(e) as StdError),
        }))
    }
}

impl ByteStream for Outgoing {
    fn remaining_length(&self) -> RemainingLength {
        usize::try_from(self.left)
            .map_or_else(|_| RemainingLength::unknown(), RemainingLength::new_exact)
    }
}

/// A body whose bytes are all there.
#[derive(Debug)]
pub struct Whole(pub Option<Bytes>);

impl Stream for Whole {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

impl ByteStream for Whole {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.0.as_ref().map_or(0, Bytes::len))
    }
}
