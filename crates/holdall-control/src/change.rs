//! Changes of single objects, each one transaction: what the command does in its own process and a
//! writer for others.
//!
//! Owns: [`apply`].

use crate::message::{Change, Transaction};
use holdall::{
    Attributes, DEFAULT_COLLECTION, Error, Key, ObjectsMut, Oid, PutOptions, Result, Store, Target,
    WriteOptions,
};
use std::io::{ErrorKind, Read};

/// Objects up to this size are put from memory; longer ones are staged as they come.
const IN_MEMORY: u64 = 4 << 20;
/// Bytes read at a time.
const PIECE: usize = 256 << 10;

/// What came of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// OID of the object stored.
    pub oid: Option<Oid>,
    /// Size of the object afterwards.
    pub size: Option<u64>,
}

/// Makes a change durable, of which `data` gives the bytes. The transaction begins once all data is
/// there, but for a splice, which reads its data within it.
///
/// # Errors
/// Those of the change, after which nothing of it has happened; [`Error::NotFound`] for a collection
/// that is missing, but for a put, which makes it; [`Error::Io`] if `data` fails.
pub fn apply(
    store: &Store,
    waiting: &WriteOptions,
    Transaction { collection, change }: &Transaction,
    data: &mut dyn Read,
) -> Result<Written> {
    let collection = collection.as_deref().unwrap_or(DEFAULT_COLLECTION);
    if let Change::Put { name, attributes, size } = change {
        let attributes = attributes.iter().map(|(key, value)| (key.clone(), value.0.clone()));
        let put = Put { name: &name.0, attributes: attributes.collect(), size: *size };
        return put.apply(store, (waiting, collection), data);
    }
    // A collection that is not there must not come to be.
    drop(store.read()?.collection(collection)?);
    store.write_with(waiting, |tx| change_in(&mut *tx.collection(collection)?, change, data))
}

struct Put<'a> {
    name: &'a [u8],
    attributes: Attributes,
    size: Option<u64>,
}

impl Put<'_> {
    fn apply(
        self,
        store: &Store,
        (waiting, collection): (&WriteOptions, &str),
        data: &mut dyn Read,
    ) -> Result<Written> {
        let mut head = Vec::new();
        (&mut *data).take(IN_MEMORY).read_to_end(&mut head).map_err(unread)?;
        let mut size = head.len() as u64;
        let options = PutOptions::with_attributes(self.attributes);
        let oid = if size < IN_MEMORY {
            store.write_with(waiting, |tx| {
                tx.collection(collection)?.put_with(self.name, &head, &options)
            })?
        } else {
            let expected_size = self.size.filter(|all| *all >= size);
            let options = PutOptions { expected_size, ..options };
            let mut staged = store.stage(Target::Name(self.name.to_vec()), options)?;
            staged.push(&head)?;
            drop(head);
            let mut piece = vec![0; PIECE];
            loop {
                match data.read(&mut piece) {
                    Ok(0) => break,
                    Ok(n) => staged.push(&piece[..n])?,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(unread(e)),
                }
            }
            size = staged.len();
            store.write_with(waiting, |tx| staged.finish(&mut *tx.collection(collection)?))?
        };
        Ok(Written { oid: Some(oid), size: Some(size) })
    }
}

/// What its reader says of data stands for itself.
fn unread(e: std::io::Error) -> Error {
    match e.downcast::<Error>() {
        Ok(error) => error,
        Err(e) => Error::io("reading the data", e),
    }
}

/// All changes but a put.
fn change_in(tx: &mut ObjectsMut, change: &Change, data: &mut dyn Read) -> Result<Written> {
    let sized = |size| Written { size: Some(size), ..Written::default() };
    match change {
        // It has been applied.
        Change::Put { .. } => Ok(Written::default()),
        Change::Remove(keys) => {
            keys.keys.iter().try_for_each(|object| remove(tx, &object.key()?))?;
            Ok(Written::default())
        }
        Change::Rename { from, to } => {
            tx.rename(&from.0, &to.0)?;
            Ok(Written::default())
        }
        Change::Copy { from, to } => {
            let oid = tx.copy(from.key()?, Target::Name(to.0.clone()))?;
            Ok(Written { oid: Some(oid), ..Written::default() })
        }
        Change::Splice { object, start, replaced, length } => {
            let (key, size) = sized_key(tx, object)?;
            let start = start.unwrap_or(size);
            let range = start..start.saturating_add(*replaced);
            tx.splice_from(key, range, data, *length).map(sized)
        }
        Change::DeleteRange { object, start, end } => {
            let (key, size) = sized_key(tx, object)?;
            tx.delete_range(key, start.unwrap_or(0)..end.unwrap_or(size)).map(sized)
        }
        Change::SetLen { object, length } => {
            let (key, _) = sized_key(tx, object)?;
            tx.set_len(key, *length).map(sized)
        }
    }
}

/// An object that is there, and its size.
fn sized_key<'o>(
    tx: &mut ObjectsMut,
    object: &'o crate::message::Object,
) -> Result<(Key<'o>, u64)> {
    let key = object.key()?;
    let size = tx.metadata(&key)?.size;
    Ok((key, size))
}

fn remove(tx: &mut ObjectsMut, key: &Key<'_>) -> Result<()> {
    if tx.remove(key)? {
        return Ok(());
    }
    Err(match key {
        Key::Name(name) => Error::NotFound(format!("object {:?}", String::from_utf8_lossy(name))),
        Key::Oid(oid) => Error::Dangling(*oid),
    })
}
