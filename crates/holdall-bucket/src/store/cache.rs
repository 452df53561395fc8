//! Records, headers of records and nodes that are at hand.
//!
//! A record is asked for again unless its tag is the same; a node never changes. Each kind has two
//! generations: what is used moves to the younger, and the older is dropped whole when that is full.

use super::current::Current;
use crate::backend::Tag;
use crate::format::{BlobId, RecordHeader};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of each kind in a generation.
const MOST: usize = 16 << 20;
/// What an entry takes beside its bytes.
const OVERHEAD: usize = 256;

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, (V, usize)>,
    old: HashMap<K, (V, usize)>,
    bytes: usize,
}

impl<K: Hash + Eq + Clone, V: Clone> Generations<K, V> {
    fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0 }
    }

    fn get(&mut self, key: &K) -> Option<V> {
        if let Some((value, _)) = self.young.get(key) {
            return Some(value.clone());
        }
        let (value, bytes) = self.old.remove(key)?;
        self.put(key.clone(), value.clone(), bytes);
        Some(value)
    }

    fn put(&mut self, key: K, value: V, bytes: usize) {
        self.forget(&key);
        if self.bytes + bytes > MOST {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(key, (value, bytes));
    }

    fn forget(&mut self, key: &K) {
        if let Some((_, bytes)) = self.young.remove(key) {
            self.bytes -= bytes;
        }
        self.old.remove(key);
    }
}

/// Records and headers by key, and payloads of nodes.
#[derive(Debug)]
pub(crate) struct Cache {
    records: Mutex<Generations<String, Current>>,
    headers: Mutex<Generations<String, (Tag, RecordHeader)>>,
    nodes: Mutex<Generations<BlobId, Arc<Vec<u8>>>>,
}

impl Cache {
    pub(crate) fn new() -> Self {
        Self {
            records: Mutex::new(Generations::new()),
            headers: Mutex::new(Generations::new()),
            nodes: Mutex::new(Generations::new()),
        }
    }

    /// Takes over what another has.
    pub(crate) fn take(&self, other: &Self) {
        let known = |all: &Generations<String, Current>| {
            all.young.iter().map(|(key, (current, _))| (key.clone(), current.clone())).collect()
        };
        let records: Vec<(String, Current)> =
            known(&other.records.lock().unwrap_or_else(PoisonError::into_inner));
        records.iter().for_each(|(key, current)| self.keep(key, current));
    }

    pub(crate) fn record(&self, key: &str) -> Option<Current> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.get(&key.to_owned())
    }

    pub(crate) fn keep(&self, key: &str, current: &Current) {
        let bytes = current.record.embedded.len() + 48 * current.record.slices() + OVERHEAD;
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        records.put(key.to_owned(), current.clone(), bytes);
    }

    pub(crate) fn forget(&self, key: &str) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).forget(&key.to_owned());
    }

    /// The header of a record, and its tag: of the record, if that is at hand, or as it was read alone.
    pub(crate) fn header(&self, key: &str) -> Option<(Tag, RecordHeader)> {
        if let Some(known) = self.record(key) {
            return Some((known.tag, RecordHeader::from(&*known.record)));
        }
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.get(&key.to_owned())
    }

    /// Keeps a header that was read because the record at hand, if there is one, has another tag.
    pub(crate) fn keep_header(&self, key: &str, tag: Tag, header: &RecordHeader) {
        self.forget(key);
        let attributes = header.attributes.iter().map(|(key, value)| key.len() + value.len() + 64);
        let bytes = attributes.sum::<usize>() + header.name.len() + OVERHEAD;
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.put(key.to_owned(), (tag, header.clone()), bytes);
    }

    pub(crate) fn node(&self, id: BlobId) -> Option<Arc<Vec<u8>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(&id)
    }

    pub(crate) fn keep_node(&self, id: BlobId, payload: &Arc<Vec<u8>>) {
        let bytes = payload.len() + OVERHEAD;
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.put(id, payload.clone(), bytes);
    }
}
