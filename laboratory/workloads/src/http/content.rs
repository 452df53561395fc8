//! Bytes of objects, without a copy for each.
//!
//! Owns: [`Content`], a stretch of one pool of random bytes, and [`Upload`], which sends it.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Most bytes handed to a connection at a time.
const PIECE: usize = 256 << 10;

/// The bytes of an object: `len` of a pool from `from` on, which begins anew at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pool: Bytes,
    from: usize,
    len: u64,
}

impl Content {
    /// `len` bytes of `pool`, which is not empty unless `len` is 0, from `from` on.
    pub fn of(pool: &Bytes, from: u64, len: u64) -> Self {
        let from = from % (pool.len() as u64).max(1);
        Self { pool: pool.clone(), from: usize::try_from(from).unwrap_or(0), len }
    }

    /// All of `bytes`.
    pub fn all(bytes: Bytes) -> Self {
        let len = bytes.len() as u64;
        Self { pool: bytes, from: 0, len }
    }

    /// No bytes.
    pub fn none() -> Self {
        Self::all(Bytes::new())
    }

    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// At most `most` bytes from byte `at` on; none at the end.
    fn piece(&self, at: u64, most: usize) -> Bytes {
        let left = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        if left == 0 || self.pool.is_empty() {
            return Bytes::new();
        }
        let begin = (self.from as u64 + at) % self.pool.len() as u64;
        let begin = usize::try_from(begin).unwrap_or(0);
        let end = begin.saturating_add(left.min(most)).min(self.pool.len());
        self.pool.slice(begin..end)
    }

    /// Whether `bytes` are those from byte `at` on.
    pub fn has(&self, mut at: u64, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let piece = self.piece(at, bytes.len());
            let Some((head, rest)) = bytes.split_at_checked(piece.len()) else { return false };
            if piece.is_empty() || head != piece {
                return false;
            }
            at += piece.len() as u64;
            bytes = rest;
        }
        true
    }
}

/// A request's body.
#[derive(Debug)]
pub struct Upload {
    content: Content,
    at: u64,
}

impl From<Content> for Upload {
    fn from(content: Content) -> Self {
        Self { content, at: 0 }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.content.piece(self.at, PIECE);
        if piece.is_empty() {
            return Poll::Ready(None);
        }
        self.at += piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.at >= self.content.len
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.content.len - self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[test]
    fn a_pool_begins_anew_at_its_end() {
        let content = Content::of(&Bytes::from_static(b"abcde"), 8, 7);
        assert!(content.has(0, b"deabcde") && content.has(2, b"abc") && content.has(7, b""));
        assert!(!content.has(0, b"deabcdea"), "beyond the end");
        assert!(!content.has(1, b"de"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sent = runtime.block_on(Upload::from(content).collect()).unwrap().to_bytes();
        assert_eq!(&sent[..], b"deabcde");
        assert_eq!(Upload::from(Content::none()).size_hint().exact(), Some(0));
    }
}
