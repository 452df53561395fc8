//! A backup as a stream of frames.
//!
//! Owns: [`Out`], which writes one, and [`In`], which reads one and holds all of it against its
//! checksums.

use super::pieces::{BackupPieces, Reached};
use super::state::Sink;
use holdall_core::backup_stream::{
    self as format, FRAME_BYTES, Frame, HEAD_BYTES, Head, MOST_BYTES,
};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, PageNo, Result};
use std::io::{self, Read};

/// A stream being written, behind its head.
pub(super) struct Out<'p> {
    to: &'p mut dyn BackupPieces,
    page_size: usize,
    pages: u64,
}

impl<'p> Out<'p> {
    /// One in which there are `pages` pages already.
    pub(super) fn new(to: &'p mut dyn BackupPieces, page_size: u32, pages: u64) -> Self {
        Self { to, page_size: page_size as usize, pages }
    }

    /// Writes the end.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn finish(self, sb: &Superblock) -> Result<()> {
        let slot = sb.encode();
        let sum = holdall_core::checksum::crc(&slot);
        self.to.write(&Frame::End { pages: self.pages, sum }.encode(), 0)?;
        self.to.write(&slot, 0)
    }
}

impl Sink for Out<'_> {
    fn put(&mut self, first: PageNo, bytes: &[u8]) -> Result<()> {
        let most = MOST_BYTES / self.page_size * self.page_size;
        let mut first = first.0;
        for part in bytes.chunks(most) {
            let count = (part.len() / self.page_size) as u64;
            let head = Frame::of_pages(PageNo(first), part, self.page_size).encode();
            self.to.write(&head, count)?;
            self.to.write(part, 0)?;
            self.pages += count;
            first += count;
        }
        Ok(())
    }

    fn reached(&mut self, place: Reached) -> Result<()> {
        self.to.reached(place)
    }
}

/// A stream being read.
pub(super) struct In<R> {
    from: R,
    pub(super) head: Head,
    /// What it is called in errors.
    name: String,
}

impl<R: Read> In<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none; [`Error::Corrupt`], [`Error::Unsupported`], [`Error::Io`].
    pub(super) fn new(mut from: R, name: &str) -> Result<Self> {
        let mut head = [0; HEAD_BYTES];
        read(&mut from, name, &mut head)?;
        let head = Head::decode(&head).map_err(|e| of(name, e))?;
        Ok(Self { from, head, name: name.to_owned() })
    }

    /// Gives all pages to `sink`, and returns the superblock at the end.
    ///
    /// # Errors
    /// [`Error::Corrupt`] also if it ends before its end, or goes on behind it; [`Error::Io`]; those
    /// of `sink`.
    pub(super) fn copy(mut self, sink: &mut dyn Sink) -> Result<Superblock> {
        let size = self.head.page_size as usize;
        let (mut body, mut pages) = (Vec::new(), 0);
        loop {
            let mut frame = [0; FRAME_BYTES];
            read(&mut self.from, &self.name, &mut frame)?;
            let frame = Frame::decode(&frame, size).map_err(|e| of(&self.name, e))?;
            body.resize(frame.body_bytes(size), 0);
            read(&mut self.from, &self.name, &mut body)?;
            frame.check(&body).map_err(|e| of(&self.name, e))?;
            match frame {
                Frame::Pages { first, count, .. } => {
                    sink.put(first, &body)?;
                    pages += u64::from(count);
                }
                Frame::End { pages: named, .. } if named != pages => {
                    let text = format!("has {pages} pages, its end names {named}");
                    return Err(Error::corrupt(&self.name, text));
                }
                Frame::End { .. } => break,
            }
        }
        if self.from.read(&mut [0]).map_err(|e| lost(&self.name, e))? > 0 {
            return Err(Error::corrupt(&self.name, "something follows its end"));
        }
        format::superblock(&self.head, &body).map_err(|e| of(&self.name, e))
    }
}

/// What is wrong with the stream of this name.
fn of(name: &str, e: Error) -> Error {
    match e {
        Error::Corrupt { place, detail } => Error::corrupt(format!("{name}: {place}"), detail),
        Error::Invalid(what) => Error::Invalid(format!("{name} is no backup: {what}")),
        other => other,
    }
}

/// What kept from reading; an error of the store that a reader wrapped stays what it is.
fn lost(name: &str, e: io::Error) -> Error {
    match e.downcast::<Error>() {
        Ok(own) => of(name, own),
        Err(e) => Error::io(format!("reading {name}"), e),
    }
}

fn read(from: &mut impl Read, name: &str, to: &mut [u8]) -> Result<()> {
    from.read_exact(to).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => Error::corrupt(name, "it ends too soon: it was cut short"),
        _ => lost(name, e),
    })
}
