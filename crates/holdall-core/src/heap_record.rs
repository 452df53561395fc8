//! A heap record: the object's OID, its collection if that is small, its name, its attributes, its last change and the time of it,
//! its bytes or its descriptor.
//!
//! Owns: the record's bytes (docs/format.md "Heap record"). Pure.

pub mod divided;

use crate::attributes::{self, Attributes, MAX_ATTRIBUTES};
use crate::bytes::{Reader, push_varint, u16_at, u32_at, varint_len};
use crate::segment_tree::Descriptor;
use crate::version::Change;
use crate::{Error, Oid, Result};
use std::borrow::Cow;

const SMALL: u8 = 1;
const LARGE: u8 = 2;
const KIND: u8 = 0x03;
/// The record is of a small collection, whose number it has.
const NUMBERED: u8 = 0x04;
const TIMED: u8 = 0x08;
const NAMED: u8 = 0x10;
const ATTRIBUTES: u8 = 0x20;
const CHANGED: u8 = 0x40;
const KNOWN: u8 = KIND | NUMBERED | TIMED | NAMED | ATTRIBUTES | CHANGED;
/// Bytes of OID (without the site) and kind.
const FIXED: usize = 11;

/// The body of a record.
#[derive(Debug, Clone)]
pub enum Body<'a> {
    /// All of the object's bytes.
    Small(&'a [u8]),
    /// Where the object's bytes are; still encoded.
    Large(&'a [u8]),
}

/// A record taken apart; slices point into it.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// The object.
    pub oid: Oid,
    /// The number of its collection if that is small; else 0, and its page says it.
    pub collection: u64,
    /// Its name, if it has one.
    pub name: Option<&'a [u8]>,
    attributes: &'a [u8],
    /// Its last change.
    pub change: Change,
    /// When that was, in milliseconds since 1970 UTC; 0 if it is not known.
    pub time: u64,
    /// Its bytes.
    pub body: Body<'a>,
}

impl<'a> Record<'a> {
    /// Takes a record apart. Constant cost.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unsupported`] for a kind of a newer build.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (oid, kind) = fixed(bytes)?;
        Self::parse_behind(oid, kind, &bytes[FIXED..])
    }

    /// What follows the fixed bytes.
    #[inline]
    fn parse_behind(oid: Oid, kind: u8, bytes: &'a [u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let bad = || Error::corrupt("heap record", "is cut short");
        let collection = match kind & NUMBERED {
            0 => 0,
            _ => r.varint().filter(|n| *n > 0).ok_or_else(bad)?,
        };
        let mut part = |flag: u8| -> Result<Option<&'a [u8]>> {
            if kind & flag == 0 {
                return Ok(None);
            }
            let len = r.varint().and_then(|n| usize::try_from(n).ok());
            len.and_then(|n| r.take(n)).map(Some).ok_or_else(bad)
        };
        let (name, attributes) = (part(NAMED)?, part(ATTRIBUTES)?.unwrap_or(&[]));
        let change = if kind & CHANGED == 0 { Some(Change::NONE) } else { Change::read(&mut r) };
        let change = change.ok_or_else(bad)?;
        let time = if kind & TIMED == 0 { 0 } else { r.varint().ok_or_else(bad)? };
        let body = match kind & KIND {
            SMALL => Body::Small(r.rest()),
            LARGE => Body::Large(r.rest()),
            divided::CONTINUATION => {
                return Err(Error::corrupt(oid.to_string(), "has a continuation for its record"));
            }
            other => {
                return Err(Error::Unsupported { detail: format!("{oid} is of kind {other}") });
            }
        };
        if kind & !KNOWN != 0 {
            return Err(Error::Unsupported { detail: format!("{oid} has flags {kind:#x}") });
        }
        Ok(Self { oid, collection, name, attributes, change, time, body })
    }

    /// The attributes.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn attributes(&self) -> Result<Attributes> {
        attributes::decode(self.attributes, &|| self.oid.to_string())
    }

    /// The attributes as stored, to be copied into a new record.
    pub fn raw_attributes(&self) -> &'a [u8] {
        self.attributes
    }

    /// The parts of the record but its body, to be kept in a new one.
    pub fn head(&self) -> Head<'static> {
        let (name, attributes) = (self.name.map(Cow::Borrowed), self.attributes.into());
        let (change, time, collection) = (self.change, self.time, self.collection);
        Head { collection, name, attributes, change, time }.into_owned()
    }

    /// As [`Record::head`], for a record of changed bytes: without the attributes that
    /// describe the old ones.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn head_of_new_bytes(&self) -> Result<Head<'static>> {
        let mut head = self.head();
        if !self.attributes.is_empty() {
            let mut attributes = self.attributes()?;
            attributes::drop_those_of_bytes(&mut attributes);
            head.attributes = attributes::join(&attributes).into();
        }
        Ok(head)
    }

    /// The object's size in bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn size(&self) -> Result<u64> {
        match self.body {
            Body::Small(bytes) => Ok(bytes.len() as u64),
            Body::Large(bytes) => Ok(Descriptor::decode(bytes)?.size()),
        }
    }
}

/// The OID that a record begins with, and the byte of its kind.
#[inline]
fn fixed(bytes: &[u8]) -> Result<(Oid, u8)> {
    let Some(b) = bytes.first_chunk::<FIXED>() else {
        return Err(Error::corrupt("heap record", "is cut short"));
    };
    let (page, slot, unique) = (u32_at(b, 0), u16_at(b, 4), u32_at(b, 6));
    Ok((Oid { site: 0, page, slot, unique }, b[FIXED - 1]))
}

/// The parts of a record but its body.
#[derive(Debug, Clone, Default)]
pub struct Head<'a> {
    /// The number of the collection if that is small, else 0.
    pub collection: u64,
    /// The name, if any.
    pub name: Option<Cow<'a, [u8]>>,
    /// The attributes, encoded.
    pub attributes: Cow<'a, [u8]>,
    /// The last change.
    pub change: Change,
    /// When that was, in milliseconds since 1970 UTC; 0 if it is not known.
    pub time: u64,
}

impl Head<'_> {
    /// The same, with bytes of its own.
    pub fn into_owned(self) -> Head<'static> {
        let name = self.name.map(|name| Cow::Owned(name.into_owned()));
        let attributes = Cow::Owned(self.attributes.into_owned());
        let (change, time, collection) = (self.change, self.time, self.collection);
        Head { collection, name, attributes, change, time }
    }

    /// The same, of an object of this collection: the number of a small one, else 0.
    pub fn of(&self, collection: u64) -> Head<'_> {
        Head { collection, ..self.changed(self.change, self.time) }
    }

    /// The same, of an object that was changed at this time.
    pub fn changed(&self, change: Change, time: u64) -> Head<'_> {
        let name = self.name.as_deref().map(Cow::Borrowed);
        let attributes = Cow::Borrowed(&*self.attributes);
        Head { collection: self.collection, name, attributes, change, time }
    }

    /// The same with the longest change and time: what the record may become later on.
    pub fn longest(&self) -> Head<'_> {
        self.changed(Change { epoch: u32::MAX, count: u64::MAX }, u64::MAX)
    }

    fn number_len(&self) -> usize {
        if self.collection == 0 { 0 } else { varint_len(self.collection) }
    }

    fn time_len(&self) -> usize {
        if self.time == 0 { 0 } else { varint_len(self.time) }
    }

    /// Bytes of a record with this head and a body of `body` bytes.
    pub fn record_len(&self, body: usize) -> usize {
        let part = |len: usize| varint_len(len as u64).saturating_add(len);
        let name = self.name.as_ref().map_or(0, |n| part(n.len()));
        let attributes = if self.attributes.is_empty() { 0 } else { part(self.attributes.len()) };
        let fixed = FIXED + self.number_len() + self.change.len() + self.time_len();
        (fixed + name + attributes).saturating_add(body)
    }

    /// Begins a record in `out`, whose bytes are given up.
    fn start(&self, mut out: Vec<u8>, oid: Oid, kind: u8, body: usize) -> Vec<u8> {
        out.clear();
        out.reserve(self.record_len(body));
        let numbered = if self.collection == 0 { 0 } else { NUMBERED };
        let named = if self.name.is_some() { NAMED } else { 0 };
        let attributes = if self.attributes.is_empty() { 0 } else { ATTRIBUTES };
        let changed = if self.change.is_none() { 0 } else { CHANGED };
        let timed = if self.time == 0 { 0 } else { TIMED };
        let mut fixed = [kind | numbered | named | attributes | changed | timed; FIXED];
        fixed[..FIXED - 1].copy_from_slice(&oid.to_bytes()[2..]);
        out.extend_from_slice(&fixed);
        if numbered != 0 {
            push_varint(&mut out, self.collection);
        }
        for part in self.name.iter().chain((attributes != 0).then_some(&self.attributes)) {
            push_varint(&mut out, part.len() as u64);
            out.extend_from_slice(part);
        }
        self.change.write(&mut out);
        if timed != 0 {
            push_varint(&mut out, self.time);
        }
        out
    }

    /// A record that holds the object's bytes.
    pub fn small(&self, oid: Oid, bytes: &[u8]) -> Vec<u8> {
        self.small_in(Vec::new(), oid, bytes)
    }

    /// As [`Head::small`], in memory at hand, whose bytes are given up.
    pub fn small_in(&self, memory: Vec<u8>, oid: Oid, bytes: &[u8]) -> Vec<u8> {
        let mut out = self.start(memory, oid, SMALL, bytes.len());
        out.extend_from_slice(bytes);
        out
    }

    /// A record that says where the object's bytes are.
    pub fn large(&self, oid: Oid, descriptor: &Descriptor) -> Vec<u8> {
        let mut out = self.start(Vec::new(), oid, LARGE, 64);
        descriptor.encode(&mut out);
        out
    }
}

/// Bytes of the record of a new small object without attributes, made at `time`, which is known.
pub fn small_len(name: Option<&[u8]>, time: u64, body: usize) -> usize {
    let part = |len: usize| varint_len(len as u64).saturating_add(len);
    let fixed = FIXED + varint_len(time);
    name.map_or(fixed, |name| part(name.len()).saturating_add(fixed)).saturating_add(body)
}

/// Writes `n` as a varint at the front of `out`; returns how many bytes it took.
fn put_varint(out: &mut [u8], mut n: u64) -> usize {
    let mut at = 0;
    while n >= 0x80 {
        out[at] = n as u8 | 0x80;
        (n, at) = (n >> 7, at + 1);
    }
    out[at] = n as u8;
    at + 1
}

/// Writes the record that [`Head::small`] would make of the same, without attributes, to `out`,
/// which has the length that [`small_len`] gives.
pub fn write_small(out: &mut [u8], oid: Oid, name: Option<&[u8]>, time: u64, bytes: &[u8]) {
    let (fixed, mut rest) = out.split_at_mut(FIXED);
    fixed[..FIXED - 1].copy_from_slice(&oid.to_bytes()[2..]);
    fixed[FIXED - 1] = SMALL | TIMED | if name.is_some() { NAMED } else { 0 };
    if let Some(name) = name {
        let at = put_varint(rest, name.len() as u64);
        let (head, body) = rest.split_at_mut(at + name.len());
        head[at..].copy_from_slice(name);
        rest = body;
    }
    let at = put_varint(rest, time);
    rest[at..].copy_from_slice(bytes);
}

/// Attributes as stored.
///
/// # Errors
/// [`Error::Invalid`] if they take more than [`most_attributes`] bytes.
pub fn encode_attributes(attributes: &Attributes, page_size: usize) -> Result<Vec<u8>> {
    attributes::encode(attributes, most_attributes(page_size))
}

/// Most bytes that attributes take, encoded, in a store of this page size: an eighth of it, or
/// [`MAX_ATTRIBUTES`].
pub fn most_attributes(page_size: usize) -> usize {
    MAX_ATTRIBUTES.min(page_size / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip(
            name in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)),
            attributes in proptest::collection::btree_map("[a-z]{1,5}",
                proptest::collection::vec(any::<u8>(), 0..20), 0..4),
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            change in (any::<u32>(), any::<u64>()),
            time in 1..u64::MAX,
            collection in any::<u64>(),
        ) {
            let oid = Oid { site: 0, page: 7, slot: 9, unique: 11 };
            let mut written = vec![0xaa; small_len(name.as_deref(), time, bytes.len())];
            write_small(&mut written, oid, name.as_deref(), time, &bytes);
            let plain = Head { name: name.clone().map(Cow::Owned), time, ..Head::default() };
            prop_assert_eq!(written, plain.small(oid, &bytes));
            let encoded = encode_attributes(&attributes, 4096).unwrap();
            let collection = if collection % 3 == 0 { 0 } else { collection };
            let head = Head { collection, name: name.clone().map(Cow::Owned), attributes: encoded.into(),
                change: Change { epoch: change.0, count: change.1 }, time: if time % 3 == 0 { 0 } else { time } };
            let record = head.small(oid, &bytes);
            prop_assert_eq!(record.len(), head.record_len(bytes.len()));
            let back = Record::parse(&record).unwrap();
            prop_assert_eq!(back.oid, oid);
            prop_assert_eq!(back.name, name.as_deref());
            prop_assert_eq!(back.collection, collection);
            prop_assert_eq!((back.change, back.time), (head.change, head.time));
            prop_assert_eq!(back.attributes().unwrap(), attributes);
            let Body::Small(b) = back.body else { panic!("small") };
            prop_assert_eq!(b, &bytes[..]);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(r) = Record::parse(&bytes) {
                let _ = (r.attributes(), r.size());
            }
        }
    }
}
