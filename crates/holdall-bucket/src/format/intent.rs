//! Intents: that an operation may make a record name blobs.

use super::header::{CRC_AT, is_whole, push_bytes, sum_of, take_text};
use super::part::{Named, Table, take_id};
use super::{Id, damaged, or_short};
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_core::bytes::{Reader, push_varint, put_u32};

/// Most bytes of an intent.
pub(crate) const MAX_INTENT: u64 = 1 << 20;

const MAGIC: [u8; 4] = *b"HInt";
const FORMAT: u8 = 1;

/// How far an intent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum IntentState {
    /// Its operation may succeed.
    Open = 1,
    /// A collector decided that it is too old: its operation must not begin to name anything.
    Condemned = 2,
    /// Whether its operation succeeded is decided.
    Resolved = 3,
}

/// What an intent announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum IntentKind {
    /// Blobs of its own operation.
    Write = 1,
    /// That a record will name blobs of another.
    Share = 2,
    /// That a reader reads blobs until a time.
    Hold = 3,
}

/// An intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// Drawn for each write of it.
    pub nonce: Id,
    /// How far it has come.
    pub state: IntentState,
    /// What it announces.
    pub kind: IntentKind,
    /// The collection of the record that will name the blobs.
    pub collection: String,
    /// Its name.
    pub name: String,
    /// The blobs that are shared.
    pub shared: Vec<Named>,
    /// The cycle that resolved it.
    pub cycle: u64,
    /// When a hold ends, in seconds since 1970 UTC.
    pub ends: u64,
}

impl Intent {
    /// The stored form.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it names too many blobs.
    pub fn encode(&self) -> Result<Bytes> {
        let mut out = Vec::new();
        out.extend(MAGIC);
        out.extend([FORMAT, self.state as u8, self.kind as u8, 0]);
        out.extend([0; 4]);
        out.extend(self.nonce.0);
        push_bytes(&mut out, self.collection.as_bytes());
        push_bytes(&mut out, self.name.as_bytes());
        push_varint(&mut out, self.cycle);
        push_varint(&mut out, self.ends);
        let (mut table, mut body) = (Table::default(), Vec::new());
        push_varint(&mut body, self.shared.len() as u64);
        self.shared.iter().for_each(|named| named.write(&mut table, &mut body));
        table.write(&mut out);
        out.extend(body);
        if out.len() as u64 > MAX_INTENT {
            let text = format!("an intent that names {} blobs", self.shared.len());
            return Err(Error::TooLarge(text));
        }
        let sum = sum_of(&out);
        put_u32(&mut out, CRC_AT, sum);
        Ok(out.into())
    }

    /// Reads an intent; `place` names its key in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything that cannot be; [`Error::Unsupported`] for a newer format.
    pub fn decode(stored: &[u8], place: &str) -> Result<Self> {
        if stored.len() < CRC_AT + 4 || stored[..4] != MAGIC || stored.len() as u64 > MAX_INTENT {
            return Err(damaged(place, "no intent"));
        }
        if !is_whole(stored) {
            return Err(damaged(place, "its checksum is wrong"));
        }
        let unknown = || {
            let detail =
                format!("{place} is an intent of format {}, {:?}", stored[4], &stored[5..8]);
            Error::Unsupported { detail }
        };
        let state = match stored[5] {
            1 => IntentState::Open,
            2 => IntentState::Condemned,
            3 => IntentState::Resolved,
            _ => return Err(unknown()),
        };
        let kind = match stored[6] {
            1 => IntentKind::Write,
            2 => IntentKind::Share,
            3 => IntentKind::Hold,
            _ => return Err(unknown()),
        };
        if stored[4] != FORMAT || stored[7] != 0 {
            return Err(unknown());
        }
        let mut r = Reader::new(&stored[CRC_AT + 4..]);
        let nonce = take_id(&mut r, place)?;
        let (collection, name) = (take_text(&mut r, place)?, take_text(&mut r, place)?);
        let (cycle, ends) = (or_short(r.varint(), place)?, or_short(r.varint(), place)?);
        let table = Table::read(&mut r, usize::MAX, place)?;
        let shared = Named::read_all(&mut r, &table, place)?;
        if !r.rest().is_empty() {
            return Err(damaged(place, "bytes are left over"));
        }
        Ok(Self { nonce, state, kind, collection, name, shared, cycle, ends })
    }
}
