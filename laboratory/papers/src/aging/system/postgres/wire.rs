//! The part of `PostgreSQL`'s protocol (version 3.0) that the adapters need: one statement at a
//! time, with values and answers in binary, over a Unix socket.
//!
//! A client library would bring an asynchronous runtime for these few messages. Threads: none.

use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// The `int8` of an answer.
pub(super) fn int8(answer: &Option<Vec<u8>>) -> Result<i64> {
    let raw = answer.as_deref().context("the server gave no row")?;
    Ok(i64::from_be_bytes(raw.try_into().context("the server gave no int8")?))
}

/// A connection.
pub(super) struct Client {
    from: BufReader<UnixStream>,
    to: UnixStream,
    out: Vec<u8>,
}

impl Client {
    /// Connects to `socket`; no password is asked for there.
    pub(super) fn connect(socket: &Path, database: &str) -> Result<Self> {
        let to = UnixStream::connect(socket)?;
        let mut own = Self { from: BufReader::new(to.try_clone()?), to, out: Vec::new() };
        let mut hello = 196_608_u32.to_be_bytes().to_vec();
        for word in ["user", "postgres", "database", database, ""] {
            hello.extend_from_slice(word.as_bytes());
            hello.push(0);
        }
        own.to.write_all(&u32::try_from(hello.len() + 4)?.to_be_bytes())?;
        own.to.write_all(&hello)?;
        answer(&mut own.from)?;
        Ok(own)
    }

    /// Adds a message to what is sent next.
    fn message(&mut self, kind: u8, parts: &[&[u8]]) -> Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.out.push(kind);
        self.out.extend_from_slice(&u32::try_from(length + 4)?.to_be_bytes());
        for part in parts {
            self.out.extend_from_slice(part);
        }
        Ok(())
    }

    /// Runs one statement with values in binary, their types being what the server infers; the
    /// first value of its last row, where there is one.
    pub(super) fn run(&mut self, sql: &str, values: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        self.message(b'P', &[b"\0", sql.as_bytes(), b"\0\0\0"])?;
        let mut bound = u16::try_from(values.len())?.to_be_bytes().to_vec();
        for value in values {
            bound.extend_from_slice(&u32::try_from(value.len())?.to_be_bytes());
            bound.extend_from_slice(value);
        }
        // All values and all answers in binary.
        self.message(b'B', &[b"\0\0\0\x01\0\x01", &bound, b"\0\x01\0\x01"])?;
        self.message(b'E', &[b"\0\0\0\0\0"])?;
        self.message(b'S', &[])?;
        self.to.write_all(&self.out)?;
        self.out.clear();
        answer(&mut self.from).with_context(|| sql.split(' ').take(3).collect::<Vec<_>>().join(" "))
    }

    /// Says goodbye.
    pub(super) fn close(mut self) -> Result<()> {
        self.message(b'X', &[])?;
        Ok(self.to.write_all(&self.out)?)
    }
}

/// Reads up to the server's being ready. Memory grows with what was sent, not with the length
/// that a message claims.
fn answer(from: &mut impl Read) -> Result<Option<Vec<u8>>> {
    let (mut row, mut error) = (None, None::<String>);
    loop {
        let mut head = [0; 5];
        if let Err(closed) = from.read_exact(&mut head) {
            let why = error.unwrap_or_else(|| "it does not say why".to_owned());
            bail!("PostgreSQL closed the connection: {why} ({closed})");
        }
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let length = length.checked_sub(4).context("a message of the server is too short")?;
        let mut body = Vec::new();
        from.take(u64::from(length)).read_to_end(&mut body)?;
        ensure!(body.len() == length as usize, "a message of the server ends early");
        match head[0] {
            b'Z' => break,
            b'D' => row = first_value(body)?,
            b'E' => error = error.or_else(|| Some(message_of(&body))),
            b'R' if body != [0; 4] => bail!("the server asks for a password"),
            _ => {}
        }
    }
    match error {
        Some(error) => bail!("PostgreSQL: {error}"),
        None => Ok(row),
    }
}

/// The first value of a row; none for NULL.
fn first_value(mut body: Vec<u8>) -> Result<Option<Vec<u8>>> {
    let Some(length) = body.get(2..6) else { return Ok(None) };
    let length = i32::from_be_bytes([length[0], length[1], length[2], length[3]]);
    if length < 0 {
        return Ok(None);
    }
    let end = 6 + usize::try_from(length)?;
    ensure!(body.len() >= end, "a row of the server is too short");
    body.truncate(end);
    body.drain(..6);
    Ok(Some(body))
}

/// `code message` of an error's fields.
fn message_of(body: &[u8]) -> String {
    let fields = body.split(|b| *b == 0);
    let wanted = fields.filter(|f| matches!(f.first(), Some(b'C' | b'M')));
    wanted.map(|f| String::from_utf8_lossy(&f[1..]).into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[kind], &length[..], body].concat()
    }

    #[test]
    fn rows_and_errors_are_taken_apart() {
        let value = |body: &[u8]| first_value(body.to_vec());
        assert_eq!(value(&[0, 1, 0, 0, 0, 2, 7, 8]).unwrap(), Some(vec![7, 8]));
        assert_eq!(value(&[0, 1, 0xff, 0xff, 0xff, 0xff]).unwrap(), None);
        assert_eq!(value(&[0, 0]).unwrap(), None);
        assert!(value(&[0, 1, 0, 0, 0, 2, 7]).is_err());
        assert_eq!(message_of(b"SERROR\0C53100\0Mno room\0\0"), "53100 no room");
        assert_eq!(int8(&Some(vec![0, 0, 0, 0, 0, 0, 1, 2])).unwrap(), 258);
        assert!(int8(&None).is_err());
    }

    #[test]
    fn an_answer_is_its_last_row_or_its_first_error() {
        let row = |n: u8| message(b'D', &[0, 1, 0, 0, 0, 1, n]);
        let (failed, ready) = (message(b'E', b"C53100\0Mno room\0\0"), message(b'Z', b"I"));
        let whole = [row(1), row(2), ready.clone()].concat();
        assert_eq!(answer(&mut &whole[..]).unwrap(), Some(vec![2]));
        for cut in 0..whole.len() {
            assert!(answer(&mut &whole[..cut]).is_err());
        }
        let wrong = answer(&mut &[row(1), failed, ready].concat()[..]).unwrap_err();
        assert_eq!(wrong.to_string(), "PostgreSQL: 53100 no room");
        // A length that is a lie is not believed.
        assert!(answer(&mut &[b'D', 0xff, 0xff, 0xff, 0xff, 1][..]).is_err());
        assert!(answer(&mut &[b'D', 0, 0, 0, 3, 1][..]).is_err());
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_an_answer_or_an_error(
            parts in vec((any::<u8>(), vec(any::<u8>(), 0..40)), 0..6), tail in vec(any::<u8>(), 0..40),
        ) {
            let framed: Vec<u8> = parts.iter().flat_map(|(k, body)| message(*k, body)).collect();
            // That it ends without a panic is all that is asked.
            let _ = answer(&mut &[framed, tail].concat()[..]);
        }
    }
}
