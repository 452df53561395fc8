//! Frames: a letter for what follows, its length as four bytes, the lowest first, and as many bytes.
//!
//! Owns: [`Frames`], a connection that carries them. `m` is a message in JSON, `d` data.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read, Write};

/// Bytes of the longest data frame.
pub const MOST_DATA: usize = 1 << 20;
/// Bytes of the longest message to the process that writes.
pub const MOST_ASKED: usize = 1 << 20;
/// Bytes of the longest message from it: figures of a million collections.
pub const MOST_ANSWERED: usize = 1 << 30;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// JSON.
    Message(Vec<u8>),
    /// What the last message announced.
    Data(Vec<u8>),
}

/// A connection.
#[derive(Debug)]
pub struct Frames<S> {
    stream: BufReader<S>,
    most: usize,
}

impl<S: Read> Frames<S> {
    /// Over a stream whose other end sends messages of up to `most` bytes.
    pub fn new(stream: S, most: usize) -> Self {
        Self { stream: BufReader::new(stream), most }
    }

    /// The stream.
    pub fn stream(&self) -> &S {
        self.stream.get_ref()
    }

    /// The next frame; `None` at the end of the stream, between two.
    ///
    /// # Errors
    /// `InvalidData` for what is no frame; `UnexpectedEof` in the midst of one; those of the stream.
    pub fn read(&mut self) -> io::Result<Option<Frame>> {
        let mut letter = [0];
        if self.stream.read(&mut letter)? == 0 {
            return Ok(None);
        }
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        let (most, is_message) = match letter[0] {
            b'm' => (self.most, true),
            b'd' => (MOST_DATA, false),
            other => return Err(bad(format!("no frame begins with byte {other}"))),
        };
        if length > most {
            return Err(bad(format!("a frame of {length} bytes; at most {most} are taken")));
        }
        // Memory comes with the bytes: a length alone takes none.
        let mut bytes = Vec::new();
        self.stream.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(if is_message { Frame::Message(bytes) } else { Frame::Data(bytes) }))
    }

    /// The next message.
    ///
    /// # Errors
    /// As [`Frames::read`]; `InvalidData` for data, or a message that is not understood;
    /// `UnexpectedEof` at the end.
    pub fn message<M: DeserializeOwned>(&mut self) -> io::Result<M> {
        match self.read()? {
            Some(Frame::Message(bytes)) => parse(&bytes),
            Some(Frame::Data(_)) => Err(bad("data where a message is expected".into())),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<S: Write> Frames<S> {
    /// Sends a message.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn say(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.send(b'm', &serde_json::to_vec(message).map_err(io::Error::other)?)
    }

    /// Sends data, in as many frames as it takes.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return self.send(b'd', bytes);
        }
        bytes.chunks(MOST_DATA).try_for_each(|part| self.send(b'd', part))
    }

    fn send(&mut self, letter: u8, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(5 + bytes.len());
        frame.push(letter);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(bytes);
        self.stream.get_mut().write_all(&frame)
    }
}

/// A message in its bytes.
///
/// # Errors
/// `InvalidData`.
pub fn parse<M: DeserializeOwned>(bytes: &[u8]) -> io::Result<M> {
    serde_json::from_slice(bytes).map_err(|e| bad(format!("a message is not understood: {e}")))
}

/// What is no frame, or not the one expected.
pub fn bad(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn read(bytes: &[u8]) -> io::Result<Option<Frame>> {
        Frames::new(Cursor::new(bytes), 16).read()
    }

    #[test]
    fn frames_come_as_they_were_sent() {
        let mut sent = Frames::new(Cursor::new(Vec::new()), 16);
        sent.say(&"hello").unwrap();
        sent.data(&[7; MOST_DATA + 1]).unwrap();
        sent.data(&[]).unwrap();
        let bytes = sent.stream().get_ref().clone();
        let mut frames = Frames::new(Cursor::new(bytes), 16);
        assert_eq!(frames.message::<String>().unwrap(), "hello");
        for length in [MOST_DATA, 1, 0] {
            assert_eq!(frames.read().unwrap(), Some(Frame::Data(vec![7; length])));
        }
        assert_eq!(frames.read().unwrap(), None);
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        assert_eq!(read(b"x\0\0\0\0").unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(b"m\x11\0\0\0").unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(b"d\xff\xff\xff\xff").unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read(b"m\x02\0\0\0a").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(b"m\x02").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(read(b"").unwrap(), None);
    }
}
