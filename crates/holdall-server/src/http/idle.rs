//! Which connections are in use, so that idle ones can be closed.
//!
//! Owns: [`Busy`]. A connection is in use from a request's head to the last byte of its answer.

use crate::http::slots::Client;
use bytes::Bytes;
use http::Response;
use hyper::body::{Frame, SizeHint};
use s3s::{Body, StdError};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;

/// Requests of a connection that are under way. Clones share them.
#[derive(Debug, Clone)]
pub struct Busy(Arc<watch::Sender<usize>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct One(Busy);

impl Busy {
    /// None yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// One more.
    pub fn begin(&self) -> One {
        self.0.send_modify(|count| *count += 1);
        One(self.clone())
    }

    /// Ends once there was none for a while, or once others need the connection's room more than a
    /// client that hardly comes on.
    pub async fn quiet(&self, time: Duration, client: &Client) {
        tokio::select! {
            () = self.none_for(time, client) => {}
            () = client.given_up() => {}
        }
    }

    async fn none_for(&self, time: Duration, client: &Client) {
        let mut seen = self.0.subscribe();
        loop {
            // The sender lives as long as this.
            let _ = seen.wait_for(|count| *count == 0).await;
            let _waiting = client.wait();
            if tokio::time::timeout(time, seen.changed()).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// A body that keeps its connection in use.
struct Kept {
    inner: Body,
    _one: One,
}

impl hyper::body::Body for Kept {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Keeps a connection in use until the answer was read.
pub fn keep(response: Response<Body>, one: One) -> Response<Body> {
    response.map(|inner| Body::http_body_unsync(Kept { inner, _one: one }))
}
