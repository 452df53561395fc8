//! Addresses of requests as they come over the wire. The parser of HTTP leaves a fragment out of an
//! address, so that `DELETE /a/#x` would delete `/a/`.
//!
//! Owns: [`Targets`], a connection of HTTP/1.1 on which a `#` of a request's line is made a
//! character that no address has: the parser then refuses the request. It follows where heads and
//! bodies end; what it cannot follow the parser refuses, too.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a line that are looked at: more than the headers that tell of bodies have.
const LONGEST: usize = 256;
/// What stands for a `#`.
const REFUSED: u8 = b'<';

/// Where the next byte belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// To a request's line, or to empty lines before it.
    Request,
    /// To a line of headers.
    Header,
    /// To a body: these bytes of it are left.
    Body(u64),
    /// To the line that gives a chunk's size.
    Size,
    /// To a chunk: these bytes of it are left.
    Chunk(u64),
    /// To the end of the line behind a chunk.
    Behind,
    /// To a line behind the last chunk.
    Trailer,
    /// To nothing that is known.
    Lost,
}

/// What has been read so far.
#[derive(Debug)]
struct Follower {
    at: At,
    /// The line so far, cut at [`LONGEST`].
    line: Vec<u8>,
    /// How the body comes that the head announces.
    length: u64,
    chunked: bool,
}

impl Follower {
    fn new() -> Self {
        Self { at: At::Request, line: Vec::new(), length: 0, chunked: false }
    }

    /// Follows bytes, and marks those that no address may have.
    fn follow(&mut self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.at {
                At::Lost => return,
                At::Body(left) | At::Chunk(left) => {
                    let len = usize::try_from(left).unwrap_or(rest.len()).min(rest.len());
                    let left = left - len as u64;
                    self.at = match self.at {
                        At::Body(_) if left == 0 => At::Request,
                        At::Body(_) => At::Body(left),
                        _ if left == 0 => At::Behind,
                        _ => At::Chunk(left),
                    };
                    rest = &mut rest[len..];
                }
                _ => {
                    self.byte(&mut rest[0]);
                    rest = &mut rest[1..];
                }
            }
        }
    }

    fn byte(&mut self, byte: &mut u8) {
        if *byte == b'\n' {
            let mut line = std::mem::take(&mut self.line);
            self.at = self.behind(line.strip_suffix(b"\r").unwrap_or(&line));
            line.clear();
            self.line = line;
            return;
        }
        if self.at == At::Request && *byte == b'#' && self.line.contains(&b' ') {
            *byte = REFUSED;
        }
        if self.line.len() < LONGEST {
            self.line.push(*byte);
        }
    }

    /// What follows a line.
    fn behind(&mut self, line: &[u8]) -> At {
        match (self.at, line.is_empty()) {
            (At::Request, true) | (At::Trailer, true) => At::Request,
            (At::Request, false) => {
                (self.length, self.chunked) = (0, false);
                At::Header
            }
            (At::Header, true) if self.chunked => At::Size,
            (At::Header, true) if self.length > 0 => At::Body(self.length),
            (At::Header, true) => At::Request,
            (At::Header, false) => self.header(line),
            (At::Size, _) => match size(line) {
                Some(0) => At::Trailer,
                Some(size) => At::Chunk(size),
                None => At::Lost,
            },
            (At::Trailer, false) => At::Trailer,
            _ => At::Size,
        }
    }

    fn header(&mut self, line: &[u8]) -> At {
        let text = String::from_utf8_lossy(line).to_ascii_lowercase();
        let Some((name, value)) = text.split_once(':') else { return At::Header };
        match (name, value.trim()) {
            ("content-length", value) => match value.parse() {
                Ok(length) => self.length = length,
                Err(_) => return At::Lost,
            },
            ("transfer-encoding", value) => self.chunked |= value.ends_with("chunked"),
            _ => {}
        }
        At::Header
    }
}

/// The size in the line before a chunk.
fn size(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    u64::from_str_radix(text.split(';').next()?.trim(), 16).ok()
}

/// A connection whose addresses hold no fragment.
#[derive(Debug)]
pub struct Targets<S> {
    inner: S,
    follower: Follower,
}

impl<S> Targets<S> {
    /// Watches a connection from its first byte on.
    pub fn new(inner: S) -> Self {
        Self { inner, follower: Follower::new() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Targets<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        self.follower.follow(&mut buf.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Targets<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parser sees of bytes that come in pieces of this length.
    fn seen(text: &str, piece: usize) -> String {
        let mut follower = Follower::new();
        let mut bytes = text.as_bytes().to_vec();
        bytes.chunks_mut(piece).for_each(|piece| follower.follow(piece));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_fragment_is_seen_in_lines_of_requests_and_nowhere_else() {
        let long = format!("x-long: {}#\r\n", "#".repeat(3 * LONGEST));
        let text = format!(
            "\r\nGET /a#b HTTP/1.1\r\nhost: h#\r\n{long}\r\n\
             PUT /a HTTP/1.1\r\nContent-Length: 19\r\n\r\nGET /a#b HTTP/1.1\r\n\
             PUT /#?# HTTP/1.1\nTransfer-Encoding: chunked\n\n\
             c;x=#\r\nGET /#b HTTP\r\n1\r\n#\r\n0\r\nt: #\r\n\r\n\
             M#VE /b# HTTP/1.1\r\ncontent-length: 0\r\n\r\nGET /#"
        );
        let expected = text
            .replacen("/a#b", "/a<b", 1)
            .replace("/#?#", "/<?<")
            .replace("/b# ", "/b< ")
            .replace("\r\n\r\nGET /#", "\r\n\r\nGET /<");
        for piece in [1, 2, 3, 7, 64, text.len()] {
            assert_eq!(seen(&text, piece), expected, "{piece}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_left_as_it_is() {
        for head in ["Content-Length: x", "Transfer-Encoding: chunked\r\n\r\nzz"] {
            let text = format!("PUT /a HTTP/1.1\r\n{head}\r\n\r\nGET /#a HTTP/1.1\r\n\r\n");
            assert_eq!(seen(&text, 5), text);
        }
    }
}
