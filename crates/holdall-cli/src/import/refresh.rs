//! What objects say of directories, when a directory has another mode than it had.
//!
//! Owns: which objects get a new mode. Each object carries the modes of the directories
//! above it. An object whose file is gone, or is left out today, would keep an old mode, and an
//! export could not know which one counts. So all objects below a directory get its new mode.
//!
//! Invariant: the imported objects below a directory agree on its mode. It comes from the first of
//! them ([`is_stale`]), which is changed last: a refresh that was interrupted is begun again.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use holdall::{Attributes, Entry, Error, Reader};

use super::batch::Importer;
use super::walk::OTHERS;
use crate::dirs::{self, COMMON, DIRS, Dirs};
use crate::failure::Outcome;
use crate::files::MODE;
use crate::{below, files, open};

/// Objects changed in one transaction.
const OBJECTS_PER_TRANSACTION: usize = 2000;

/// Whether objects below the directory have another mode of it than `bits`. `dir` is the prefix of
/// their names. Cost: looking up one object, more only if others were not imported.
///
/// # Errors
/// Those of the store.
pub fn is_stale(reader: &Reader, dir: &[u8], bits: u32) -> Result<bool, Error> {
    for entry in reader.names(dir) {
        let Entry { name, oid } = entry?;
        let attributes = reader.metadata(oid)?.attributes;
        if attributes.contains_key(MODE) {
            let rest = name.get(dir.len()..).unwrap_or_default();
            return Ok(Dirs::from_attributes(&attributes).bits(slashes(rest)) != Some(bits));
        }
    }
    Ok(false)
}

/// Gives all imported objects below the directory `dir`, a prefix of names, the modes that the
/// directories above them have now. Cost: reading each object's attributes.
///
/// # Errors
/// Those of the store.
pub fn all_below(importer: &mut Importer<'_, '_>, dir: &[u8]) -> Outcome {
    let reader = match open::reader(importer.store, importer.collection) {
        Err(Error::NotFound(_)) => return Ok(()),
        other => other?,
    };
    let mut ways = Ways { root: importer.root.clone(), way: Vec::new() };
    let mut changed = Vec::new();
    for entry in reader.names(dir).rev() {
        let Entry { name, oid } = entry?;
        let stored = reader.metadata(oid)?.attributes;
        let rest = name.get(importer.prefix.len()..).unwrap_or_default();
        if let Some(all) = refreshed(importer, &stored, &ways.modes(rest)) {
            changed.push((name, all));
        }
        if changed.len() == OBJECTS_PER_TRANSACTION {
            store(importer, &mut changed)?;
        }
    }
    store(importer, &mut changed)
}

fn store(importer: &mut Importer<'_, '_>, changed: &mut Vec<(Vec<u8>, Attributes)>) -> Outcome {
    if changed.is_empty() {
        return Ok(());
    }
    let collection = importer.collection;
    importer.store.write(|tx| {
        let mut tx = open::target(tx, collection)?;
        changed.iter().try_for_each(|(name, all)| tx.set_attributes(name, all))
    })?;
    importer.tally.batches += 1;
    changed.clear();
    Ok(())
}

/// The object's attributes with the modes `now`, if they are others. Those that are not known now
/// stay as they are stored.
fn refreshed(
    importer: &Importer<'_, '_>,
    stored: &Attributes,
    now: &[Option<u32>],
) -> Option<Attributes> {
    if !stored.contains_key(MODE) {
        return None;
    }
    let mut modes = Dirs::from_attributes(stored).last(now.len());
    let before = modes.clone();
    for (mode, now) in modes.iter_mut().rev().zip(now.iter().rev()) {
        *mode = now.or(*mode);
    }
    if modes == before {
        return None;
    }
    let mut all = stored.clone();
    let is_common = modes.iter().all(|mode| *mode == Some(COMMON));
    if is_common && !importer.prefix.contains(&b'/') {
        all.remove(DIRS);
    } else {
        // As the walk has it, so that the two agree.
        let most = importer.store.attribute_bytes();
        all.insert(DIRS.into(), dirs::short(&modes, most.saturating_sub(OTHERS))?);
        dirs::fit(&mut all, most);
    }
    (all != *stored).then_some(all)
}

fn slashes(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'/').count()
}

/// The modes of directories, those on the way to the last file remembered.
struct Ways {
    root: Arc<OwnedFd>,
    /// From the root on: the path with a slash behind it, and the mode, if a directory is there.
    way: Vec<(Vec<u8>, Option<u32>)>,
}

impl Ways {
    /// The modes of the directories from the root down to that of the file `below` the root.
    fn modes(&mut self, below: &[u8]) -> Vec<Option<u32>> {
        let ends = below.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let paths = std::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        for (level, end) in paths.enumerate() {
            let path = below.get(..end).unwrap_or_default();
            if self.way.get(level).is_none_or(|(known, _)| known != path) {
                self.way.truncate(level);
                let place = files::os_string(path).unwrap_or_default();
                let bits = below::directory_bits(&self.root, place.as_ref());
                self.way.push((path.to_vec(), bits));
            }
        }
        self.way.truncate(slashes(below) + 1);
        self.way.iter().map(|(_, bits)| *bits).collect()
    }
}
