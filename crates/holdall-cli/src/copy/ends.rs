//! The two ends of a copy: a store's file or a bucket, read and compared alike.
//!
//! Owns: [`End`], one collection of a store; [`Held`], an object there; [`Names`].

use std::time::SystemTime;
use std::vec;

use holdall::{Attributes, Error, ListOptions, Listed, Reader, Result};
use holdall_bucket::blocking::{self, BucketStore};
use holdall_bucket::store::ListNames;

use crate::files::CHUNK;

/// A collection, to be read.
pub enum End {
    /// One state of a store's file; `None` if the collection is not there.
    File(Option<Reader>),
    /// In a bucket.
    Bucket(BucketStore),
}

/// Names with a prefix, some at a time.
pub struct Names {
    prefix: Vec<u8>,
    page: vec::IntoIter<Vec<u8>>,
    after: Option<Vec<u8>>,
    is_last: bool,
}

/// An object, and what is known of it without reading its bytes.
pub struct Held {
    /// Bytes.
    pub size: u64,
    /// Its attributes.
    pub attributes: Attributes,
    /// When it changed last, by the clock of who did it.
    modified: Option<SystemTime>,
    bytes: Bytes,
}

enum Bytes {
    File(holdall::Object),
    Bucket(blocking::Object),
}

impl Names {
    /// All names with the prefix.
    pub fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.to_vec(), page: Vec::new().into_iter(), after: None, is_last: false }
    }

    /// The name that comes next. Cost: a request, or a step in the names, for each thousand.
    pub fn next(&mut self, end: &End) -> Result<Option<Vec<u8>>> {
        loop {
            if let Some(name) = self.page.next() {
                return Ok(Some(name));
            }
            if self.is_last {
                return Ok(None);
            }
            let (names, after) = end.names(&self.prefix, self.after.as_deref())?;
            (self.page, self.is_last, self.after) = (names.into_iter(), after.is_none(), after);
        }
    }
}

/// Names, and where to go on.
type Page = (Vec<Vec<u8>>, Option<Vec<u8>>);

fn text(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name).map_err(|_| Error::Invalid("names in a bucket are UTF-8".into()))
}

impl End {
    fn names(&self, prefix: &[u8], after: Option<&[u8]>) -> Result<Page> {
        match self {
            Self::File(None) => Ok((Vec::new(), None)),
            Self::File(Some(reader)) => {
                let what = ListOptions {
                    prefix,
                    start_after: after,
                    limit: 1000,
                    ..ListOptions::default()
                };
                let listing = reader.list(&what)?;
                let names = listing.entries.into_iter().filter_map(|listed| match listed {
                    Listed::Object(entry) => Some(entry.name),
                    Listed::Prefix(_) => None,
                });
                Ok((names.collect(), listing.next))
            }
            Self::Bucket(store) => {
                let after = after.map(text).transpose()?.map(str::to_owned);
                let what =
                    ListNames { prefix: text(prefix)?.into(), after, ..ListNames::default() };
                let page = store.list(&what)?;
                let names = page.names.into_iter().map(String::into_bytes).collect();
                Ok((names, page.next.map(String::into_bytes)))
            }
        }
    }

    /// The object of this name. In a bucket its record is read, with the bytes of a small one.
    pub fn find(&self, name: &[u8]) -> Result<Option<Held>> {
        match self {
            Self::File(None) => Ok(None),
            Self::File(Some(reader)) => {
                let Some(oid) = reader.lookup(name)? else { return Ok(None) };
                let data = reader.metadata(oid)?;
                Ok(Some(Held {
                    size: data.size,
                    attributes: data.attributes,
                    modified: data.modified,
                    bytes: Bytes::File(reader.open(oid)?),
                }))
            }
            Self::Bucket(store) => {
                let Some(object) = store.open(text(name)?)? else { return Ok(None) };
                let info = object.info();
                Ok(Some(Held {
                    size: info.size,
                    attributes: info.attributes,
                    modified: Some(info.modified),
                    bytes: Bytes::Bucket(object),
                }))
            }
        }
    }
}

impl Held {
    /// Whether it was copied already, as far as size, attributes and times tell: `copy` is of the same
    /// size and attributes, and no older.
    pub fn is_copied_by(&self, copy: &Self) -> bool {
        let no_older = self.modified.zip(copy.modified).is_some_and(|(own, copy)| own <= copy);
        self.is_like(copy) && no_older
    }

    fn is_like(&self, other: &Self) -> bool {
        self.size == other.size && self.attributes == other.attributes
    }

    /// Whether the other has the same bytes and attributes. Cost: reads both.
    pub fn equals(&mut self, other: &mut Self) -> Result<bool> {
        if !self.is_like(other) {
            return Ok(false);
        }
        let (mut at, mut same, mut found) = (0, true, Vec::new());
        self.each(&mut |piece| {
            found.resize(piece.len(), 0);
            let got = other.bytes.read_at(at, &mut found)?;
            same = same && got == piece.len() && found == piece;
            at += piece.len() as u64;
            Ok(same)
        })?;
        Ok(same)
    }

    /// Gives the bytes, some MiB at a time at most, until `take` returns `false`.
    pub fn each(&mut self, take: &mut dyn FnMut(&[u8]) -> Result<bool>) -> Result<()> {
        match &self.bytes {
            Bytes::Bucket(object) => {
                for piece in object.pieces(0..self.size)? {
                    if !take(&piece?)? {
                        break;
                    }
                }
            }
            Bytes::File(object) => {
                let (mut buffer, mut at) = (vec![0; CHUNK], 0);
                while at < self.size {
                    let got = object.read_at(at, &mut buffer)?;
                    if got == 0 || !take(buffer.get(..got).unwrap_or_default())? {
                        break;
                    }
                    at += got as u64;
                }
            }
        }
        Ok(())
    }

    /// All bytes.
    pub fn read(&mut self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.size).unwrap_or(usize::MAX)];
        let got = self.bytes.read_at(0, &mut bytes)?;
        bytes.truncate(got);
        Ok(bytes)
    }
}

impl Bytes {
    fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::File(object) => object.read_at(at, buffer),
            Self::Bucket(object) => object.read_at(at, buffer),
        }
    }
}
