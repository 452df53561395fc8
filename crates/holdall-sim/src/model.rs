//! The model: what a store should hold after each commit.
//!
//! Owns: [`State`], one per commit that a crash may lead back to; the mapping from a script's
//! numbers to names, collections, bytes and attributes.

use holdall::{Attributes, Oid};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: Option<Vec<u8>>,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
}

/// Everything a store holds.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Names by collection.
    pub names: BTreeMap<String, BTreeMap<Vec<u8>, Oid>>,
    /// Objects, unnamed ones too.
    pub objects: BTreeMap<Oid, Arc<Object>>,
    /// Versions as text, of a state that was read out of a store. Two states with the same
    /// objects are equal whatever their versions: a change may leave the bytes as they were.
    pub versions: BTreeMap<Oid, String>,
    /// When each object last changed, of a state that was read out of a store.
    pub times: BTreeMap<Oid, SystemTime>,
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.objects == other.objects
    }
}

impl Eq for State {}

/// The name of collection number `coll`.
pub(crate) fn collection(coll: u8) -> String {
    if coll == 0 { holdall::DEFAULT_COLLECTION.into() } else { format!("collection {coll}") }
}

/// Name number `n`: most are short, some as long as names may be.
pub(crate) fn name(n: u8) -> Vec<u8> {
    let mut name = format!("name {n:03}").into_bytes();
    match n {
        n if n % 13 == 5 => name.resize(1024, b'.'),
        n if n % 5 == 2 => name.resize(300, b'.'),
        _ => {}
    }
    name
}

/// What names of their own that calls for many objects use begin with; they come behind those
/// of [`name`].
const NUMBERED: &str = "object ";

/// The name with this number, which gives its order too.
pub(crate) fn numbered(n: u32) -> Vec<u8> {
    let mut name = format!("{NUMBERED}{n:09}").into_bytes();
    match n {
        n if n % 61 == 5 => name.resize(1024, b'.'),
        n if n % 29 == 7 => name.resize(300, b'.'),
        _ => {}
    }
    name
}

/// `size` bytes drawn from `seed`.
pub(crate) fn bytes(seed: u64, size: u32) -> Arc<[u8]> {
    let mut bytes = vec![0; size as usize];
    SmallRng::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.into()
}

/// Attributes number `n`: none for 0, then more and longer ones.
pub(crate) fn attributes(n: u8) -> Attributes {
    (0..n % 5).map(|i| (format!("key {i}"), vec![n; usize::from(n) * 3])).collect()
}

impl State {
    /// The object of this name.
    pub fn lookup(&self, collection: &str, name: &[u8]) -> Option<Oid> {
        self.names.get(collection)?.get(name).copied()
    }

    /// The number of the first [`numbered`] name behind all names of the collection.
    pub(crate) fn next_numbered(&self, collection: &str) -> u32 {
        let last = self.names.get(collection).and_then(|names| names.keys().next_back());
        let digits = last.and_then(|name| name.strip_prefix(NUMBERED.as_bytes()));
        let digits = digits.and_then(|d| std::str::from_utf8(d.get(..9)?).ok());
        digits.and_then(|d| d.parse::<u32>().ok()).map_or(0, |n| n + 1)
    }

    /// Enters an object; a name leads to it from now on.
    pub(crate) fn put(&mut self, collection: &str, oid: Oid, object: Object) {
        let names = self.names.entry(collection.into()).or_default();
        if let Some(name) = &object.name {
            names.insert(name.clone(), oid);
        }
        self.objects.insert(oid, Arc::new(object));
    }

    /// Removes an object and its name.
    pub(crate) fn delete(&mut self, oid: Oid) {
        self.objects.remove(&oid);
        for names in self.names.values_mut() {
            names.retain(|_, o| *o != oid);
        }
    }

    /// Gives an object another name.
    pub(crate) fn rename(&mut self, collection: &str, from: &[u8], to: &[u8]) {
        let Some(names) = self.names.get_mut(collection) else { return };
        let Some(oid) = names.remove(from) else { return };
        names.insert(to.to_vec(), oid);
        self.change(oid, |object| object.name = Some(to.to_vec()));
    }

    /// Changes an object.
    pub(crate) fn change(&mut self, oid: Oid, f: impl FnOnce(&mut Object)) {
        if let Some(object) = self.objects.get_mut(&oid) {
            f(Arc::make_mut(object));
        }
    }

    /// Says what differs between what was found (`self`) and what should be there.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        if self == wanted {
            return None;
        }
        let mut text = String::new();
        let say = |text: &mut String, line: String| {
            if text.len() < 600 {
                text.push_str(&line);
                text.push_str("; ");
            }
        };
        for (oid, object) in &wanted.objects {
            match self.objects.get(oid) {
                None => say(&mut text, format!("{} is missing", show(*oid, object))),
                Some(found) if found != object => {
                    let at = first_difference(&found.bytes, &object.bytes);
                    let (a, b) = (show(*oid, found), show(*oid, object));
                    say(&mut text, format!("{a} is not {b} (bytes differ at {at:?})"));
                }
                Some(_) => {}
            }
        }
        for (oid, object) in &self.objects {
            if !wanted.objects.contains_key(oid) {
                say(&mut text, format!("{} should not be there", show(*oid, object)));
            }
        }
        if text.is_empty() {
            let count = |s: &Self| -> Vec<(String, usize)> {
                s.names.iter().map(|(c, n)| (c.clone(), n.len())).collect()
            };
            text = format!("names differ: {:?}, should be {:?}", count(self), count(wanted));
        }
        Some(text)
    }
}

fn show(oid: Oid, object: &Object) -> String {
    let name =
        object.name.as_ref().map(|n| String::from_utf8_lossy(&n[..n.len().min(12)]).into_owned());
    format!(
        "{oid} {name:?} of {} bytes, {} attributes",
        object.bytes.len(),
        object.attributes.len()
    )
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    Some(a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len())))
}
