//! Objects found or made when a file is opened.
//!
//! Owns: no state.

use super::state::Body;
use super::target::Target;
use crate::errors::{Fail, Outcome};
use crate::handle::{Held, process};
use crate::source::Transaction;
use crate::view::View;
use holdall::{Attributes, Durability, Error, Key, ObjectsMut, Oid, PutMode, PutOptions};
use std::sync::Arc;

/// Finds the object of a key, or says that there is none.
pub fn find(tx: &mut ObjectsMut, key: &Key<'_>) -> Outcome<Oid> {
    Ok(tx.metadata(key)?.oid)
}

fn name_of(key: &Key<'_>) -> Outcome<Vec<u8>> {
    match key {
        Key::Name(name) => Ok(name.to_vec()),
        Key::Oid(oid) => {
            let text = format!("{oid}: a file is made under a name, not under an id");
            Err(Error::Invalid(text).into())
        }
    }
}

/// Opens an object for reading.
pub fn object(view: &View, handle: &Held, key: &Key<'_>) -> Outcome<Body> {
    let absent = || {
        Error::NotFound(format!("collection {:?}", view.collection.as_deref().unwrap_or_default()))
    };
    let reader = view.reader()?.ok_or_else(absent)?;
    let object = Box::new(reader.open(key)?);
    Ok(Body::Object { object, handle: handle.clone(), process: process() })
}

/// Begins an object that closing puts under its name.
pub fn stage(
    view: &View,
    (handle, durability): (&Held, Durability),
    key: &Key<'_>,
    mode: &str,
    attributes: Attributes,
) -> Outcome<Body> {
    let name = name_of(key)?;
    let mode = if mode == "x" { PutMode::Create } else { PutMode::Overwrite };
    if mode == PutMode::Create
        && let Some(reader) = view.reader()?
        && reader.lookup(&name)?.is_some()
    {
        let text = format!("object {:?}", String::from_utf8_lossy(&name));
        return Err(Error::Exists(text).into());
    }
    let options = PutOptions { mode, attributes: attributes.clone(), ..PutOptions::default() };
    let staged = handle.with(|store| Ok(store.stage(&name, options)?))?;
    let (handle, collection) = (handle.clone(), view.collection.clone());
    let target = Target { handle, collection, durability, name, attributes, mode };
    Ok(Body::Staged { staged: Some(Box::new(staged)), target: Some(Box::new(target)) })
}

/// Finds an object to be changed in place; one to append to is made if it is missing.
pub fn live(view: &View, key: &Key<'_>, make: bool, attributes: &Attributes) -> Outcome<Oid> {
    view.write_as(Durability::Deferred, |tx| match find(tx, key) {
        Err(Fail::Store(Error::NotFound(_))) if make => {
            let options = PutOptions::with_attributes(attributes.clone());
            Ok(tx.put_with(name_of(key)?, b"", &options)?)
        }
        found => found,
    })
}

/// Finds an object of a transaction, or makes one. One that is written anew has no name until
/// its file is closed, so that what it replaces is there if the file is given up.
pub fn open_in_tx(
    view: &View,
    tx: &Arc<Transaction>,
    key: &Key<'_>,
    mode: &str,
    attributes: Attributes,
) -> Outcome<Body> {
    let mut target = None;
    let oid = View::in_tx(tx, view.collection.as_deref(), |inner| match mode {
        "r" | "r+" => find(inner, key),
        "a" => match find(inner, key) {
            Err(Fail::Store(Error::NotFound(_))) => {
                let options = PutOptions::with_attributes(attributes);
                Ok(inner.put_with(name_of(key)?, b"", &options)?)
            }
            found => found,
        },
        _ => {
            let name = name_of(key)?;
            let mode = if mode == "x" { PutMode::Create } else { PutMode::Overwrite };
            inner.check_put(&name, mode)?;
            let (handle, collection) = (tx.handle.clone(), view.collection.clone());
            let durability = Durability::Immediate;
            let draft = inner.create(b"")?;
            tx.add_draft(draft);
            target =
                Some(Box::new(Target { handle, collection, durability, name, attributes, mode }));
            Ok(draft)
        }
    })?;
    Ok(Body::Transaction { tx: tx.clone(), oid, target })
}
