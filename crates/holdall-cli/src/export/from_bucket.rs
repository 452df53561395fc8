//! Exporting from a bucket: many objects are read together, then written one by one.
//!
//! Owns: [`run`]. A file that is there already with the size and time of its object is left alone, so
//! that an export that was killed goes on. All names below a directory follow each other in a bucket
//! too, though its order is another.

use std::fs;

use holdall_bucket::blocking::{BucketStore, Object};
use holdall_bucket::store::ListNames;

use super::{Exporter, Fill, Problem, path, whole};
use crate::failure::{Failure, NO_SPACE, Outcome};
use crate::files::{self, MTIME};
use crate::{bucket, sparse, stop, time};

/// Objects that are read together.
const TOGETHER: usize = 16;
/// Bytes of an object that is held in memory.
const SMALL: u64 = 8 << 20;

/// Exports what has names with the prefix.
pub fn run(export: &mut Exporter<'_>, store: &BucketStore, prefix: &[u8]) -> Outcome {
    let text = std::str::from_utf8(prefix).map_err(|_| bucket::not_text(prefix))?;
    let mut what = ListNames { prefix: text.into(), ..ListNames::default() };
    loop {
        let page = store.list(&what)?;
        for names in page.names.chunks(TOGETHER) {
            batch(export, store, names, prefix.len())?;
        }
        what.after = page.next;
        if what.after.is_none() {
            return Ok(());
        }
    }
}

/// Exports some objects, the names of which begin with `skip` bytes that are left out.
fn batch(export: &mut Exporter<'_>, store: &BucketStore, names: &[String], skip: usize) -> Outcome {
    let mut objects: Vec<Object> = store.open_all(names)?.into_iter().flatten().collect();
    let before = objects.len();
    objects.retain(|object| !is_there(export, object, skip));
    export.tally.same += (before - objects.len()) as u64;
    let small: Vec<Object> =
        objects.iter().filter(|object| object.size() <= SMALL).cloned().collect();
    // Damage is found anew below, and named with its object.
    let mut read = store.read_all(small).unwrap_or_default().into_iter();
    for object in &mut objects {
        stop::check()?;
        let info = object.info();
        let known = (object.size() <= SMALL).then(|| read.next()).flatten();
        let rest = info.name.as_bytes().get(skip..).unwrap_or_default();
        let exported = export.export(rest, &info.attributes, || fill(object, known));
        if export.is_over(info.name.as_bytes(), info.size, exported)? {
            export.meter.complain("the export ends here: free room and run it again");
            return Err(Failure::Reported(NO_SPACE));
        }
    }
    Ok(())
}

fn fill<'f>(
    object: &'f mut Object,
    known: Option<impl AsRef<[u8]> + 'f>,
) -> Result<Fill<'f>, Problem> {
    if let Some(bytes) = known {
        return Ok(whole(bytes));
    }
    let size = object.size();
    if size <= SMALL {
        return Ok(whole(object.read(0..size)?));
    }
    let pieces = object.pieces(0..size)?;
    Ok(Box::new(move |to, moved| sparse::write_pieces(pieces, to, moved)))
}

/// Whether the object's file is there: a regular one of its size and time.
fn is_there(export: &Exporter<'_>, object: &Object, skip: usize) -> bool {
    let info = object.info();
    let rest = info.name.as_bytes().get(skip..).unwrap_or_default();
    let Ok(below) = path::relative(rest) else { return false };
    let Ok(found) = fs::symlink_metadata(export.root.join(below)) else { return false };
    let stored = info.attributes.get(MTIME).and_then(|text| time::parse(text));
    found.is_file()
        && found.len() == info.size
        && stored.is_some()
        && files::mtime(&found) == stored
}
