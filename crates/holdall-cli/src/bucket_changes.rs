//! What a command's change becomes in a bucket.
//!
//! Owns: [`apply`]. A change is of one object; several in one transaction are refused before anything
//! happens.

use std::io::Read;

use holdall::Error;
use holdall_bucket::Splice;
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::store::{ListNames, PutMode, PutOptions};
use holdall_control::{Change, Name, Object};

use crate::bucket;
use crate::done::{Done, Id};
use crate::failure::{Failure, Outcome};
use crate::files::{self, CopyError};
use crate::name;

/// Bytes that an edit may bring: they are held in memory.
const MOST: u64 = 1 << 30;
/// Tries of an edit whose place depends on the object's size.
const TRIES: usize = 16;

/// Makes a change, of which `data` gives the bytes.
pub fn apply(store: &BucketStore, change: Change, data: &mut dyn Read) -> Outcome<Done> {
    let edited = |size: u64| Ok(Done { id: None, size: Some(size) });
    match change {
        Change::Put { name, attributes, size: _ } => {
            let attributes = attributes.into_iter().map(|(key, value)| (key, value.0)).collect();
            put(store, text(&name)?, PutOptions { attributes, ..PutOptions::default() }, data)
        }
        Change::Remove(keys) => {
            let [object] = keys.keys.as_slice() else {
                let what = "several objects cannot be deleted as one change in a bucket";
                return Err(Failure::new(what, "nothing was deleted; name one at a time"));
            };
            let name = named(object)?;
            if !store.remove(name)? {
                return Err(bucket::missing(store, name));
            }
            Ok(Done { id: None, size: None })
        }
        Change::Rename { from, to } => {
            store.rename(text(&from)?, text(&to)?, PutMode::Create)?;
            Ok(Done { id: None, size: None })
        }
        Change::Copy { from, to } => {
            let version = store.copy(named(&from)?, text(&to)?, PutMode::Overwrite)?;
            Ok(Done { id: Some(Id::Version(version)), size: None })
        }
        Change::Splice { object, start, replaced, length } => {
            let name = named(&object)?;
            let mut bytes = Vec::new();
            if length > MOST {
                return Err(too_many(length));
            }
            data.take(length).read_to_end(&mut bytes).map_err(files::store_error)?;
            let splice = match start {
                None => Splice::Append(bytes.into()),
                Some(start) => Splice::Replace(start..start.saturating_add(replaced), bytes.into()),
            };
            edited(store.edit(name, vec![splice])?)
        }
        Change::DeleteRange { object, start, end } => {
            edited(delete_range(store, named(&object)?, start.unwrap_or(0), end)?)
        }
        Change::SetLen { object, length } => {
            edited(store.edit(named(&object)?, vec![Splice::SetLen(length)])?)
        }
    }
}

fn put(store: &BucketStore, name: &str, options: PutOptions, data: &mut dyn Read) -> Outcome<Done> {
    let mut writer = store.writer(name, options)?;
    let copied = files::copy(&mut &mut *data, &mut writer, u64::MAX, &mut |_| ());
    let size = copied.map_err(|e| match e {
        CopyError::Read(e) | CopyError::Write(e) => files::store_error(e),
    })?;
    Ok(Done { id: Some(Id::Version(writer.finish()?)), size: Some(size) })
}

/// A range without an end has that of the object, which may change meanwhile.
fn delete_range(store: &BucketStore, name: &str, start: u64, end: Option<u64>) -> Outcome<u64> {
    if let Some(end) = end {
        return Ok(store.delete_range(name, start..end)?);
    }
    let mut tries = 0;
    loop {
        let info = store.info(name)?.ok_or_else(|| bucket::missing(store, name))?;
        let cut = Splice::Replace(start..info.size, Vec::new().into());
        tries += 1;
        match store.edit_if(name, vec![cut], info.version) {
            Err(Error::Conflict { .. }) if tries < TRIES => {}
            edited => return Ok(edited.map(|_| start)?),
        }
    }
}

/// Removes the objects whose names begin with `prefix`, many at a time, and counts them.
pub fn remove_below(store: &BucketStore, prefix: &str) -> Outcome<usize> {
    let mut what = ListNames { prefix: prefix.into(), ..ListNames::default() };
    let mut deleted = 0;
    loop {
        let so_far = |e: Error| match deleted {
            0 => Failure::from(e),
            deleted => Failure::from(e).after(&format!("deleted {deleted} objects")),
        };
        let page = store.list(&what).map_err(so_far)?;
        deleted += store.remove_all(&page.names).map_err(so_far)?;
        what.after = page.next;
        if what.after.is_none() {
            return Ok(deleted);
        }
    }
}

fn text(name: &Name) -> Outcome<&str> {
    std::str::from_utf8(&name.0).map_err(|_| bucket::not_text(&name.0))
}

fn named(object: &Object) -> Outcome<&str> {
    match object {
        Object::Name(name) => text(name),
        Object::Oid(oid) => {
            let oid = name::escape(oid.as_bytes());
            Err(Failure::new(format!("{oid}: objects in a bucket have no OIDs"), "give a name"))
        }
    }
}

fn too_many(length: u64) -> Failure {
    let what = format!("an edit in a bucket brings at most {MOST} bytes, not {length}");
    Failure::new(what, "nothing was changed; bring them in several edits")
}
