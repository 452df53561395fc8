//! What is left of a body when its request has failed.
//!
//! Owns: [`split`], [`Rest`]. A connection that is closed while its client still sends may lose
//! the answer on the way, so the rest is taken in first, up to a limit.

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use s3s::{Body, StdError};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Most bytes taken in after a failure.
const MOST: u64 = 16 << 20;

/// A body that leaves its rest behind.
struct Shared(Arc<Mutex<Incoming>>);

impl hyper::body::Body for Shared {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let mut body = self.0.lock();
        Pin::new(&mut *body).poll_frame(cx).map_err(|e| Box::new(e) as StdError)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}

/// The rest of a request's body.
pub struct Rest {
    body: Arc<Mutex<Incoming>>,
    waits: bool,
}

/// A client that waits for "100 Continue" sends nothing unless it is asked.
fn waits(headers: &HeaderMap) -> bool {
    headers.contains_key(header::EXPECT)
}

/// Takes a request apart into one to be answered and the rest of its body.
pub fn split(req: Request<Incoming>) -> (Request<Body>, Rest) {
    let (head, body) = req.into_parts();
    let waits = waits(&head.headers);
    if body.is_end_stream() {
        let body = Arc::new(Mutex::new(body));
        return (Request::from_parts(head, Body::empty()), Rest { body, waits });
    }
    let body = Arc::new(Mutex::new(body));
    let shared = Body::http_body(Shared(body.clone()));
    (Request::from_parts(head, shared), Rest { body, waits })
}

impl Rest {
    /// Takes the rest in while it comes, up to [`MOST`] bytes.
    pub async fn drain(self, idle: Duration) {
        let mut taken = 0;
        while !self.waits && taken < MOST {
            let next = std::future::poll_fn(|cx| Pin::new(&mut *self.body.lock()).poll_frame(cx));
            let Ok(Some(Ok(frame))) = tokio::time::timeout(idle, next).await else { return };
            taken += frame.data_ref().map_or(0, |bytes| bytes.len() as u64);
        }
    }
}
