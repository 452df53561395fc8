//! What is left of a body when its request has failed.
//!
//! Owns: [`split`], [`Rest`]. A connection that is closed while its client still sends may lose
//! the answer on the way, so what comes at once is taken in first. Each door's bodies pass here, so
//! that one whose client hardly comes on is given up, no matter who reads it.

use crate::http::pace::Pace;
use crate::refusal::{Result, Why};
use bytes::Bytes;
use http::{HeaderMap, Request, header};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use s3s::{Body, StdError};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Most bytes taken in after a failure.
const MOST: u64 = 16 << 20;
/// For how long they are, in all, and without a byte.
const LINGER: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_millis(500);

/// A body, and how it comes.
struct Coming {
    body: Incoming,
    pace: Pace,
}

type Polled = Poll<Option<Result<Frame<Bytes>, StdError>>>;

impl Coming {
    fn poll(&mut self, cx: &mut Context<'_>) -> Polled {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => {
                ready!(self.pace.poll_late(cx));
                let late = Why::Late.says("the body does not come on; send it again");
                Poll::Ready(Some(Err(Box::new(late))))
            }
            Poll::Ready(frame) => {
                let data = frame.as_ref().and_then(|f| f.as_ref().ok()?.data_ref());
                self.pace.passed(data.map_or(0, |bytes| bytes.len() as u64));
                Poll::Ready(frame.map(|f| f.map_err(|e| Box::new(e) as StdError)))
            }
        }
    }
}

/// A body that leaves its rest behind.
struct Shared(Arc<Mutex<Coming>>);

impl hyper::body::Body for Shared {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        self.0.lock().poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().body.size_hint()
    }
}

/// The rest of a request's body.
pub struct Rest {
    coming: Arc<Mutex<Coming>>,
    waits: bool,
}

/// A client that waits for "100 Continue" sends nothing unless it is asked.
fn waits(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

/// Takes a request apart into one to be answered and the rest of its body, which keeps a pace.
pub fn split(req: Request<Incoming>, pace: Pace) -> (Request<Body>, Rest) {
    let (head, body) = req.into_parts();
    let (waits, ended) = (waits(&head.headers), body.is_end_stream());
    let coming = Arc::new(Mutex::new(Coming { body, pace }));
    let shared = if ended { Body::empty() } else { Body::http_body(Shared(coming.clone())) };
    (Request::from_parts(head, shared), Rest { coming, waits })
}

impl Rest {
    /// Takes in what comes at once, up to [`MOST`] bytes: a client that is not even answered what
    /// it asked for is not waited for.
    pub async fn drain(self) {
        if self.waits || self.coming.lock().pace.waits() >= SILENCE {
            return;
        }
        let all = async {
            let mut taken = 0;
            while taken < MOST {
                let next = std::future::poll_fn(|cx| self.coming.lock().poll(cx));
                let next = tokio::time::timeout(SILENCE, next).await;
                let Ok(Some(Ok(frame))) = next else { return };
                taken += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
            }
        };
        // Behind that the connection is closed.
        let _ = tokio::time::timeout(LINGER, all).await;
    }
}
