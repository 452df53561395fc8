//! Clients that hardly come on: for how long they are waited for.
//!
//! Owns: [`Pace`], [`Paced`]. Silence alone is no bound: a byte now and then would keep a request,
//! or an answer, alive for ever. What counts is how long a client was waited for since its last
//! [`PROGRESS`] bytes, in bodies of all doors as in answers that it reads.

use crate::http::slots::{Client, PROGRESS, Waiting};
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A wait for a client.
#[derive(Debug)]
struct Wait {
    since: Instant,
    alarm: Pin<Box<Sleep>>,
    _told: Waiting,
}

/// How long a client is waited for, in one direction.
#[derive(Debug)]
pub struct Pace {
    most: Duration,
    /// What is left of it until the next progress.
    left: Duration,
    /// Bytes since the last progress.
    bytes: u64,
    wait: Option<Wait>,
    client: Client,
}

impl Pace {
    /// Waits at most this long for each progress of a client.
    pub fn new(most: Duration, client: Client) -> Self {
        Self { most, left: most, bytes: 0, wait: None, client }
    }

    /// Notes that bytes passed.
    pub fn passed(&mut self, bytes: u64) {
        if let Some(wait) = self.wait.take() {
            self.left = self.left.saturating_sub(wait.since.elapsed());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= PROGRESS {
            (self.bytes, self.left) = (0, self.most);
        }
    }

    /// Notes that the client is waited for. Ready once that took too long.
    pub fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (left, client) = (self.left, &self.client);
        let wait = self.wait.get_or_insert_with(|| Wait {
            since: Instant::now(),
            alarm: Box::pin(sleep(left)),
            _told: client.wait(),
        });
        wait.alarm.as_mut().poll(cx)
    }

    /// For how long the client is waited for by now.
    pub fn waits(&self) -> Duration {
        self.wait.as_ref().map(|wait| wait.since.elapsed()).unwrap_or_default()
    }
}

/// A connection whose client must read on, and that reports the bytes that pass.
#[derive(Debug)]
pub struct Paced<S> {
    inner: S,
    client: Client,
    answers: Pace,
}

impl<S> Paced<S> {
    /// A connection that waits at most this long for its client to read [`PROGRESS`] bytes.
    pub fn new(inner: S, most: Duration, client: Client) -> Self {
        Self { inner, answers: Pace::new(most, client.clone()), client }
    }

    fn noted(&mut self, cx: &mut Context<'_>, written: Poll<Result<usize>>) -> Poll<Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => {
                self.answers.passed(*bytes as u64);
                self.client.came(*bytes as u64);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                ready!(self.answers.poll_late(cx));
                let text = "the client does not read its answer";
                return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, text)));
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        self.client.came((buffer.filled().len() - before) as u64);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.noted(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, pieces);
        self.noted(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::slots::Slots;
    use std::future::poll_fn;
    use tokio::time::timeout;

    const MOST: Duration = Duration::from_secs(60);

    async fn late(pace: &mut Pace, within: Duration) -> bool {
        timeout(within, poll_fn(|cx| pace.poll_late(cx))).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_no_progress() {
        let client = Slots::new(1).take().await.client();
        let mut pace = Pace::new(MOST, client.clone());
        for _ in 0..59 {
            assert!(!late(&mut pace, Duration::from_secs(1)).await);
            pace.passed(1);
        }
        assert!(late(&mut pace, Duration::from_secs(2)).await);
        pace.passed(PROGRESS);
        assert!(!late(&mut pace, MOST / 2).await);
    }
}
