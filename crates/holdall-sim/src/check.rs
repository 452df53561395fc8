//! Reading a store out in full, for comparison with the model.
//!
//! Owns nothing. Every object is read through its OID and its name, and what the ways lead to
//! must agree.

use crate::model::{Object, State};
use holdall::{Entry, Error, Oid, Reader, Store, VerifyReport};
use std::collections::BTreeMap;

/// What a check found.
#[derive(Debug)]
pub(crate) enum Bad {
    /// The store gave an error.
    Engine(Error),
    /// The store gave an answer that cannot be.
    Wrong(String),
}

impl From<Error> for Bad {
    fn from(e: Error) -> Self {
        Self::Engine(e)
    }
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Engine(e) => write!(f, "{e}"),
            Self::Wrong(text) => f.write_str(text),
        }
    }
}

/// Everything a snapshot sees.
///
/// # Errors
/// Those of the store.
pub fn dump(reader: &Reader) -> Result<State, Error> {
    let mut state = State::default();
    for collection in reader.collections()? {
        let names = reader.collection(&collection)?.names("");
        let names = names.map(|entry| entry.map(|Entry { name, oid }| (name, oid)));
        let names = names.collect::<Result<BTreeMap<_, _>, _>>()?;
        state.names.insert(collection, names);
    }
    for oid in reader.oids() {
        let oid = oid?;
        let metadata = reader.metadata(oid)?;
        let bytes = reader.get(oid)?.ok_or(Error::Dangling(oid))?;
        state.versions.insert(oid, metadata.version.to_string());
        state.times.extend(metadata.modified.map(|time| (oid, time)));
        let (name, attributes) = (metadata.name, metadata.attributes);
        state.objects.insert(oid, Object { name, attributes, bytes: bytes.into() }.into());
    }
    Ok(state)
}

/// Reads a snapshot out in full and checks that names, OIDs and lookups agree.
pub(crate) fn read_out(reader: &Reader) -> Result<State, Bad> {
    let state = dump(reader)?;
    let mut named = 0;
    for (collection, names) in &state.names {
        let reader = reader.collection(collection)?;
        for (i, (name, oid)) in names.iter().enumerate() {
            named += 1;
            let object = state.objects.get(oid);
            if object.and_then(|o| o.name.as_ref()) != Some(name) {
                let text = format!("name {} leads to {oid}", String::from_utf8_lossy(name));
                return Err(Bad::Wrong(format!("{text}, which has another name or is not listed")));
            }
            if reader.lookup(name)? != Some(*oid) {
                return Err(Bad::Wrong(format!("a listed name is not found: {oid}")));
            }
            if i % 4 == 0 {
                let size = object.map_or(0, |o| o.bytes.len() as u64);
                let part = reader.get_range(name, size / 3..size / 2)?.unwrap_or_default();
                let wanted = object.map(|o| &o.bytes[size as usize / 3..size as usize / 2]);
                let mut again = vec![0; part.len()];
                let read = reader.read_at(name, size / 3, &mut again)?;
                if Some(part.as_slice()) != wanted || read != Some(part.len()) || again != part {
                    return Err(Bad::Wrong(format!("a part of {oid} is not that of the whole")));
                }
            }
        }
    }
    let with_names = state.objects.values().filter(|o| o.name.is_some()).count();
    if with_names != named {
        let text = format!("{with_names} objects have names, {named} names are listed");
        return Err(Bad::Wrong(text));
    }
    Ok(state)
}

/// Checks that OIDs of objects that are gone lead nowhere.
pub(crate) fn check_gone<'a>(
    reader: &Reader,
    state: &State,
    oids: impl Iterator<Item = &'a Oid>,
) -> Result<(), Bad> {
    for oid in oids.filter(|o| !state.objects.contains_key(*o)) {
        match reader.get(*oid) {
            Err(Error::Dangling(_) | Error::NotFound(_)) => {}
            Ok(bytes) => {
                let bytes = bytes.as_ref().map(Vec::len);
                let text = format!("{oid} was deleted but leads to {bytes:?} bytes");
                return Err(Bad::Wrong(text));
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Checks the store's figures and its own verification against the newest state.
pub(crate) fn check_figures(store: &Store, state: &State) -> Result<(), Bad> {
    let stat = store.stat()?;
    let bytes: u64 = state.objects.values().map(|o| o.bytes.len() as u64).sum();
    let found = (stat.objects, stat.logical_bytes);
    let wanted = (state.objects.len() as u64, bytes);
    if found != wanted {
        let text = format!("figures (objects, bytes) are {found:?}, should be {wanted:?}");
        return Err(Bad::Wrong(text));
    }
    Ok(())
}

/// Runs the store's own full check. Returns how many records are divided.
pub(crate) fn check_sound(store: &Store) -> Result<u64, Bad> {
    let report = store.verify()?;
    sound(&report).map(|()| report.divided)
}

/// Whether a check found nothing.
pub(crate) fn sound(report: &VerifyReport) -> Result<(), Bad> {
    if report.is_sound() {
        return Ok(());
    }
    let listed: Vec<String> = report.problems.iter().take(5).map(ToString::to_string).collect();
    Err(Bad::Wrong(format!("{} problems: {}", report.problems.len(), listed.join("; "))))
}
