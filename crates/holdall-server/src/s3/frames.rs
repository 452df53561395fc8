//! Bodies in the frames of `aws-chunked`: chunks with their lengths, a last one that is empty, and
//! trailers behind it.
//!
//! Owns: [`Framed`], which follows the frames of a body as it passes. `s3s` takes apart what is
//! signed chunk by chunk, and takes a body without its last chunk for whole: there `Framed` checks
//! only. What is not signed so it takes apart itself.

use crate::http::digest::Trailers;
use crate::refusal::{Refusal, Why};
use bytes::{Buf as _, Bytes};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use hyper::body::{Frame, SizeHint};
use s3s::{Body, StdError};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Most bytes of the line before a chunk.
const MOST_LINE: usize = 1024;
/// Most bytes of all trailers.
const MOST_TRAILERS: usize = 16 << 10;

/// Where in its frames a body is.
#[derive(Debug)]
enum State {
    /// In the line that says how long a chunk is.
    Line(Vec<u8>),
    /// In a chunk, of which this much is left.
    Data(u64),
    /// In the line's end behind a chunk, of which this much is left.
    End(u8),
    /// Behind the last chunk.
    Trailers(Vec<u8>),
}

/// Reads frames.
#[derive(Debug)]
struct Frames(State);

fn malformed(what: &str) -> Refusal {
    Why::Invalid.says(format!("the body is not in the frames of aws-chunked: {what}"))
}

/// The length that a chunk's line says, which may have extensions behind it.
fn length(line: &[u8]) -> Result<u64, Refusal> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    let sound = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let len = sound.then(|| u64::from_str_radix(text, 16).ok()).flatten();
    len.ok_or_else(|| malformed("a chunk's length is not a hexadecimal number"))
}

impl Frames {
    fn new() -> Self {
        Self(State::Line(Vec::new()))
    }

    /// The next bytes of data in `input`; `None` once it is used up.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, Refusal> {
        while !input.is_empty() {
            match &mut self.0 {
                State::Line(line) => {
                    let byte = input.get_u8();
                    if byte != b'\n' {
                        line.push(byte);
                        if line.len() > MOST_LINE {
                            return Err(malformed("a chunk's line is too long"));
                        }
                        continue;
                    }
                    let line = line.strip_suffix(b"\r");
                    let line = line.ok_or_else(|| malformed("a line has no carriage return"))?;
                    self.0 = match length(line)? {
                        0 => State::Trailers(Vec::new()),
                        len => State::Data(len),
                    };
                }
                State::Data(left) => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                    let data = input.split_to(here);
                    *left -= here as u64;
                    if *left == 0 {
                        self.0 = State::End(2);
                    }
                    return Ok(Some(data));
                }
                State::End(left) => {
                    let wanted = if *left == 2 { b'\r' } else { b'\n' };
                    if input.get_u8() != wanted {
                        return Err(malformed("a chunk is longer than its line says"));
                    }
                    *left -= 1;
                    if *left == 0 {
                        self.0 = State::Line(Vec::new());
                    }
                }
                State::Trailers(text) => {
                    if text.len() + input.len() > MOST_TRAILERS {
                        return Err(malformed("the trailers are too long"));
                    }
                    text.extend_from_slice(&input.split_to(input.len()));
                }
            }
        }
        Ok(None)
    }

    /// The trailers, once the body has ended.
    fn finish(&self) -> Result<HeaderMap, Refusal> {
        let State::Trailers(text) = &self.0 else {
            return Err(Why::CutOff.says("the body ended before its last chunk"));
        };
        let mut trailers = HeaderMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let parsed = line.iter().position(|byte| *byte == b':').and_then(|colon| {
                let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok()?;
                Some((name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?))
            });
            let (name, value) = parsed.ok_or_else(|| malformed("a trailer is not NAME:VALUE"))?;
            if trailers.insert(name, value).is_some() {
                return Err(malformed("a trailer is there twice"));
            }
        }
        Ok(trailers)
    }
}

/// A body whose frames are followed as it passes.
pub struct Framed {
    inner: Body,
    frames: Frames,
    trailers: Trailers,
    /// Whether only the data passes.
    opens: bool,
    /// Bytes that came and are not looked at yet.
    input: Bytes,
    ended: bool,
}

impl Framed {
    /// A body of which all passes, and that fails at its end if a chunk is missing there.
    pub fn checked(inner: Body, trailers: Trailers) -> Body {
        Body::http_body(Self::new(inner, trailers, false))
    }

    /// The data in a body's frames.
    pub fn opened(inner: Body, trailers: Trailers) -> Body {
        Body::http_body(Self::new(inner, trailers, true))
    }

    fn new(inner: Body, trailers: Trailers, opens: bool) -> Self {
        let (frames, input) = (Frames::new(), Bytes::new());
        Self { inner, frames, trailers, opens, input, ended: false }
    }

    /// Looks at bytes that came; returns those to hand on.
    fn take(&mut self, bytes: Bytes) -> Result<Option<Bytes>, Refusal> {
        if self.opens {
            self.input = bytes;
            return self.frames.next(&mut self.input);
        }
        let mut input = bytes.clone();
        while self.frames.next(&mut input)?.is_some() {}
        Ok(Some(bytes))
    }

    fn end(&mut self) -> Result<(), Refusal> {
        self.ended = true;
        *self.trailers.0.lock() = self.frames.finish()?;
        Ok(())
    }
}

impl hyper::body::Body for Framed {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = &mut *self;
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            let rest = std::mem::take(&mut this.input);
            let bytes = if rest.is_empty() {
                match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                    None => {
                        let ended = this.end().map_err(|e| Box::new(e) as StdError);
                        return Poll::Ready(ended.err().map(Err));
                    }
                    Some(Err(e)) => return Poll::Ready(Some(Err(e))),
                    // Trailers of HTTP itself carry nothing of S3's.
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                }
            } else {
                rest
            };
            match this.take(bytes) {
                Ok(None) => {}
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Err(e) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(Box::new(e))));
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.opens { SizeHint::default() } else { self.inner.size_hint() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of a body that comes in pieces of `piece` bytes, and its trailers.
    fn read(text: &[u8], piece: usize) -> Result<(Vec<u8>, HeaderMap), Refusal> {
        let (mut frames, mut data) = (Frames::new(), Vec::new());
        for piece in text.chunks(piece) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(bytes) = frames.next(&mut input)? {
                data.extend_from_slice(&bytes);
            }
        }
        Ok((data, frames.finish()?))
    }

    #[test]
    fn frames_are_read_in_pieces_of_any_length() {
        let text = b"5\r\nhello\r\nA;chunk-signature=00\r\n 123456789\r\n0\r\n\
                     x-amz-checksum-crc32:AAAA\r\nx-amz-trailer-signature: 1\n\r\n";
        for piece in 1..=text.len() {
            let (data, trailers) = read(text, piece).unwrap();
            assert_eq!(data, b"hello 123456789");
            assert_eq!(trailers["x-amz-checksum-crc32"], "AAAA");
            assert_eq!(trailers["x-amz-trailer-signature"], "1");
        }
        for end in ["0\r\n", "0\r\n\r\n", "0;chunk-signature=00\r\n\r\n"] {
            assert_eq!(read(end.as_bytes(), 9).unwrap(), (Vec::new(), HeaderMap::new()));
        }
    }

    #[test]
    fn frames_that_end_early_or_are_none_are_refused() {
        let whole = "5\r\nhello\r\n0\r\n";
        for len in 0..whole.len() {
            assert_eq!(read(&whole.as_bytes()[..len], 4).unwrap_err().why, Why::CutOff);
        }
        for bad in [
            "hello, this is data\r\n",
            "\r\n",
            "+5\r\nhello\r\n0\r\n",
            "5\nhello\r\n0\r\n",
            "4\r\nhello\r\n0\r\n",
            "6\r\nhello\r\n0\r\n",
            "11111111111111111\r\nx",
            "0\r\nno trailer\r\n",
            "0\r\na:1\r\na:2\r\n",
        ] {
            assert_eq!(read(bad.as_bytes(), 3).unwrap_err().why, Why::Invalid, "{bad}");
        }
        assert!(read(&[b'0'; 2000], 100).is_err());
        assert!(read(&[b"0\r\n".to_vec(), vec![b'a'; 20_000]].concat(), 100).is_err());
    }
}
