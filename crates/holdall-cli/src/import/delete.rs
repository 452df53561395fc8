//! `import --delete`: removes objects whose files are gone.
//!
//! Owns no state. The tree is walked once more, beside the names of the store, which come in the
//! same order. Memory: that of a walk, and one batch of names.

use holdall::{Entry, Error};

use super::batch::Importer;
use super::exclude::Excludes;
use super::walk::{Walk, What};
use crate::failure::Outcome;
use crate::name::escape;
use crate::open;

/// Names removed in one transaction.
const NAMES_PER_TRANSACTION: usize = 2000;

/// Removes the objects below `prefix` that `walk` does not meet. What `excludes` leaves out
/// stays. Ends at the first directory that cannot be read.
pub fn gone(
    importer: &mut Importer<'_, '_>,
    walk: Walk<'_>,
    excludes: &Excludes,
    prefix: &[u8],
) -> Outcome {
    let reader = match open::reader(importer.store, importer.collection) {
        Err(Error::NotFound(_)) => return Ok(()),
        other => other?,
    };
    let mut walk = walk.filter(|found| !matches!(found.what, What::Directory(_))).peekable();
    let mut gone = Vec::new();
    for item in reader.names(prefix) {
        let Entry { name, .. } = item?;
        while let Some(found) = walk.next_if(|found| found.name < name || is_unread(&found.what)) {
            if let What::Unread(why) = found.what {
                importer.failed(&found.name, &why);
                importer.meter.complain(STOPPED);
                // What was found to be gone before is left too.
                return Ok(());
            }
        }
        let is_there = walk.peek().is_some_and(|found| found.name == name);
        let below = name.get(prefix.len()..).unwrap_or_default();
        if !is_there && !excludes.cover(below) {
            gone.push(name);
        }
        if gone.len() == NAMES_PER_TRANSACTION {
            remove(importer, &mut gone)?;
        }
    }
    remove(importer, &mut gone)
}

/// The note if objects stay that may be gone from the directory.
pub const STOPPED: &str =
    "no more objects are deleted: a directory cannot be read, and its files may be there";

fn is_unread(what: &What) -> bool {
    matches!(what, What::Unread(_))
}

fn remove(importer: &mut Importer<'_, '_>, gone: &mut Vec<Vec<u8>>) -> Outcome {
    if gone.is_empty() {
        return Ok(());
    }
    let collection = importer.collection;
    importer.store.write(|tx| {
        let mut tx = open::target(tx, collection)?;
        gone.iter().try_for_each(|name| tx.remove(name).map(drop))
    })?;
    importer.tally.deleted += gone.len() as u64;
    for name in gone.drain(..) {
        if importer.verbose {
            importer.meter.complain(&format!("deleted: {}", escape(&name)));
        }
    }
    Ok(())
}
