//! Objects as files, without a buffer.
//!
//! Owns: [`RawFile`], below the package's classes for `io`. A file that
//!
//! - is read shows the object as it was when it was opened;
//! - is written anew is staged, holds no lock, and becomes an object when it is closed. Where
//!   its user seeks back, what was staged becomes a draft, an object in a collection of its
//!   own, which closing moves to its name;
//! - is edited changes the object in place. Each write is a commit, durable with the next
//!   flush. One of a transaction changes the object in it.

use crate::buffer::{Lent, LentMut};
use crate::errors::{Fail, Outcome, none_beyond_end};
use crate::handle::{Handle, process};
use crate::keys::ObjectId;
use crate::source::{Objects, Transaction};
use crate::view::View;
use crate::view_edit::write_to;
use holdall::{
    Attributes, Durability, Error, Key, Object, Oid, PutMode, PutOptions, StagedObject, Store,
    WriteTx,
};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::sync::Arc;

/// Begins the names of collections of drafts.
const DRAFT: &str = ".draft-";

/// Whether a collection is one of drafts.
pub fn is_draft(collection: &str) -> bool {
    collection.starts_with(DRAFT)
}

/// Drops drafts that a process left behind which was killed. Only of a store just opened for
/// writing: nobody has any then.
///
/// # Errors
/// Those of a commit.
pub fn drop_drafts(store: &Store) -> Outcome<()> {
    let left: Vec<_> = store.read()?.collections()?.into_iter().filter(|c| is_draft(c)).collect();
    for collection in left {
        store.write(|tx| tx.drop_collection(&collection))?;
    }
    Ok(())
}

/// Where an object goes when its file is closed.
struct Target {
    handle: Arc<Handle>,
    collection: Option<Arc<str>>,
    durability: Durability,
    name: Vec<u8>,
    attributes: Attributes,
    mode: PutMode,
}

enum Body {
    /// Read only: an object of a snapshot, opened in the process of that number.
    Object {
        object: Box<Object>,
        handle: Arc<Handle>,
        process: u64,
    },
    /// Changed in place; with a draft's target, and the draft's collection.
    Live {
        handle: Arc<Handle>,
        oid: Oid,
        dirty: bool,
        draft: Option<Box<(Target, String)>>,
    },
    /// Written from front to back.
    Staged {
        staged: Option<Box<StagedObject>>,
        target: Option<Box<Target>>,
    },
    /// Of a transaction.
    Transaction {
        tx: Arc<Transaction>,
        oid: Oid,
    },
    Closed,
}

struct State {
    body: Body,
    position: u64,
    append: bool,
    process: u64,
}

/// An object open as a file, without a buffer.
#[pyclass(frozen, module = "holdall._core")]
pub struct RawFile(Mutex<State>);

/// Finds the object of a key, or says that there is none.
fn find(tx: &mut WriteTx, key: &Key<'_>) -> Outcome<Oid> {
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

impl RawFile {
    /// Opens an object.
    ///
    /// # Errors
    /// NotFoundError, ExistsError, ReadOnlyError; those of reading.
    pub fn open(view: &View, key: &Key<'_>, mode: &str, attributes: Attributes) -> Outcome<Self> {
        let append = mode == "a";
        let (body, position) = match (&view.objects, mode) {
            (Objects::Transaction(tx), _) => {
                let oid = open_in_tx(view, tx, key, mode, attributes)?;
                (Body::Transaction { tx: tx.clone(), oid }, 0)
            }
            (Objects::Newest(handle, _), "r") => (object(view, handle, key)?, 0),
            (Objects::Snapshot(snapshot), "r") => (object(view, &snapshot.handle, key)?, 0),
            (Objects::Snapshot(_), _) => return Err(Error::ReadOnly.into()),
            (Objects::Newest(handle, durability), "w" | "x") => {
                (stage(view, (handle, *durability), key, mode, attributes)?, 0)
            }
            (Objects::Newest(handle, _), "r+" | "a") => {
                let oid = live(view, key, append, &attributes)?;
                (Body::Live { handle: handle.clone(), oid, dirty: false, draft: None }, 0)
            }
            _ => return Err(Error::Invalid(format!("mode {mode:?} is not known")).into()),
        };
        let mut state = State { body, position, append, process: process() };
        if append {
            state.position = state.size()?;
        }
        Ok(Self(Mutex::new(state)))
    }
}

fn object(view: &View, handle: &Arc<Handle>, key: &Key<'_>) -> Outcome<Body> {
    let absent = || Error::NotFound(format!("collection {:?}", view.collection));
    let reader = view.reader()?.ok_or_else(absent)?;
    let object = Box::new(reader.open(key)?);
    Ok(Body::Object { object, handle: handle.clone(), process: process() })
}

fn stage(
    view: &View,
    (handle, durability): (&Arc<Handle>, Durability),
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

/// Finds an object to be changed in place; one to append to is made where it is missing.
fn live(view: &View, key: &Key<'_>, make: bool, attributes: &Attributes) -> Outcome<Oid> {
    view.write_as(Durability::Deferred, |tx| match find(tx, key) {
        Err(Fail::Store(Error::NotFound(_))) if make => {
            let options = PutOptions::with_attributes(attributes.clone());
            Ok(tx.put_with(name_of(key)?, b"", &options)?)
        }
        found => found,
    })
}

fn open_in_tx(
    view: &View,
    tx: &Transaction,
    key: &Key<'_>,
    mode: &str,
    attributes: Attributes,
) -> Outcome<Oid> {
    View::in_tx(tx, view.collection.as_deref(), |tx| match mode {
        "r" | "r+" => find(tx, key),
        "a" if matches!(key, Key::Oid(_)) || tx.lookup(name_of(key)?)?.is_some() => find(tx, key),
        _ => {
            let mode = if mode == "x" { PutMode::Create } else { PutMode::Overwrite };
            let options = PutOptions { mode, attributes, ..PutOptions::default() };
            Ok(tx.put_with(name_of(key)?, b"", &options)?)
        }
    })
}

impl Target {
    /// Runs `f` in a transaction, in the collection that the object goes to.
    fn write<T>(
        &self,
        durability: Durability,
        f: impl FnOnce(&mut WriteTx) -> Outcome<T>,
    ) -> Outcome<T> {
        write_to(&self.handle, self.collection.as_deref(), durability, f)
    }
}

impl Target {
    /// As [`Target::write`], as durable as the file's user wants it; or in a transaction.
    fn write_into(
        &self,
        into: Option<&Transaction>,
        f: impl FnOnce(&mut WriteTx) -> Outcome<()>,
    ) -> Outcome<()> {
        match into {
            Some(tx) => View::in_tx(tx, self.collection.as_deref(), f),
            None => self.write(self.durability, f),
        }
    }

    /// Gives a draft its name.
    fn publish(&self, tx: &mut WriteTx, draft: Oid, collection: &str) -> Outcome<()> {
        tx.check_put(&self.name, self.mode)?;
        tx.copy(draft, &self.name)?;
        tx.set_attributes(&self.name, &self.attributes)?;
        Ok(tx.drop_collection(collection).map(drop)?)
    }

    fn drop_draft(&self, collection: &str) -> Outcome<()> {
        self.write(Durability::Deferred, |tx| Ok(tx.drop_collection(collection).map(drop)?))
    }
}

const CLOSED: Fail = Fail::Closed("file");

impl State {
    fn check_process(&self) -> Outcome<()> {
        if self.process != process() && !matches!(self.body, Body::Object { .. }) {
            let text = "the file was opened for writing before a fork; only the process that \
                 opened it may use it";
            return Err(Fail::Forked(text));
        }
        Ok(())
    }

    fn size(&mut self) -> Outcome<u64> {
        self.check_process()?;
        match &self.body {
            Body::Object { object, .. } => Ok(object.size()),
            Body::Live { handle, oid, .. } => {
                handle.with(|store| Ok(store.read_newest()?.metadata(*oid)?.size))
            }
            Body::Staged { staged, .. } => Ok(staged.as_ref().map_or(0, |staged| staged.len())),
            Body::Transaction { tx, oid } => tx.with(|tx| Ok(tx.metadata(*oid)?.size)),
            Body::Closed => Err(CLOSED),
        }
    }

    /// Opens what the parent had open again, in a child after a fork.
    fn reopen(&mut self) -> Outcome<()> {
        if let Body::Object { object, handle, process: opened } = &mut self.body
            && *opened != process()
        {
            let oid = object.oid();
            let again = handle.with(|store| Ok(store.read()?.open(oid)?))?;
            std::mem::forget(std::mem::replace(object, Box::new(again)));
            *opened = process();
        }
        Ok(())
    }

    fn read(&mut self, buf: &mut [u8]) -> Outcome<usize> {
        self.check_process()?;
        self.reopen()?;
        if matches!(self.body, Body::Staged { .. }) {
            self.draft()?;
        }
        let at = self.position;
        let n = match &self.body {
            Body::Object { object, .. } => none_beyond_end(object.read_at(at, buf))?,
            Body::Live { handle, oid, .. } => handle.with(|store| {
                let read = store.read_newest()?.read_at(*oid, at, buf);
                none_beyond_end(read.map(Option::unwrap_or_default))
            })?,
            Body::Transaction { tx, oid } => tx.with(|tx| {
                let size = tx.metadata(*oid)?.size;
                let start = at.min(size);
                let end = start.saturating_add(buf.len() as u64).min(size);
                let bytes = tx.get_range(*oid, start..end)?.unwrap_or_default();
                buf[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            })?,
            Body::Staged { .. } | Body::Closed => return Err(CLOSED),
        };
        self.position += n as u64;
        Ok(n)
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.check_process()?;
        if let Body::Staged { staged: Some(staged), .. } = &mut self.body {
            if self.position == staged.len() {
                staged.push(bytes)?;
                self.position += bytes.len() as u64;
                return Ok(());
            }
            self.draft()?;
        }
        let (at, append) = (self.position, self.append);
        let size =
            self.edit(
                |tx, oid| {
                    if append { tx.append(oid, bytes) } else { tx.write_at(oid, at, bytes) }
                },
            )?;
        self.position = if append { size } else { at + bytes.len() as u64 };
        Ok(())
    }

    /// Changes the object in place.
    fn edit<T>(&mut self, f: impl FnOnce(&mut WriteTx, Oid) -> holdall::Result<T>) -> Outcome<T> {
        self.check_process()?;
        if matches!(self.body, Body::Staged { .. }) {
            self.draft()?;
        }
        match &mut self.body {
            Body::Live { handle, oid, dirty, .. } => {
                let oid = *oid;
                let value = handle.with(|store| {
                    Ok(store.write(|tx| {
                        tx.set_durability(Durability::Deferred);
                        f(tx, oid)
                    })?)
                })?;
                *dirty = true;
                Ok(value)
            }
            Body::Transaction { tx, oid } => tx.with(|tx| Ok(f(tx, *oid)?)),
            Body::Object { .. } => Err(Error::ReadOnly.into()),
            Body::Staged { .. } | Body::Closed => Err(CLOSED),
        }
    }

    /// Makes what was staged an object, so that any place of it can be read and written.
    fn draft(&mut self) -> Outcome<()> {
        let Body::Staged { staged, target } = &mut self.body else { return Ok(()) };
        let (Some(staged), Some(target)) = (staged.take(), target.take()) else {
            return Err(CLOSED);
        };
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|e| Error::io("asking for random bytes", std::io::Error::other(e)))?;
        let collection = format!("{DRAFT}{:016x}", u64::from_ne_bytes(random));
        let oid = target.write(Durability::Deferred, |tx| {
            Ok(staged.finish(&mut *tx.collection(&collection)?)?)
        })?;
        let (handle, draft) = (target.handle.clone(), Some(Box::new((*target, collection))));
        self.body = Body::Live { handle, oid, dirty: true, draft };
        Ok(())
    }

    fn flush(&mut self) -> Outcome<()> {
        self.check_process()?;
        match &mut self.body {
            Body::Live { handle, dirty, draft: None, .. } if *dirty => {
                handle.with(|store| Ok(store.flush()?))?;
                *dirty = false;
                Ok(())
            }
            Body::Closed => Err(CLOSED),
            _ => Ok(()),
        }
    }

    fn close(&mut self, keep: bool, into: Option<&Transaction>) -> Outcome<()> {
        if self.process != process() {
            std::mem::forget(std::mem::replace(&mut self.body, Body::Closed));
            return Ok(());
        }
        if matches!(self.body, Body::Live { draft: None, .. }) {
            let flushed = self.flush();
            self.body = Body::Closed;
            return flushed;
        }
        match std::mem::replace(&mut self.body, Body::Closed) {
            Body::Staged { staged: Some(staged), target: Some(target) } if keep => {
                target.write_into(into, |tx| Ok(staged.finish(tx).map(drop)?))
            }
            Body::Live { oid, draft: Some(draft), .. } => {
                let (target, collection) = &*draft;
                if !keep {
                    return target.drop_draft(collection);
                }
                let published = target.write_into(into, |tx| target.publish(tx, oid, collection));
                if published.is_err() && into.is_none() {
                    // It could not get its name, and nobody can reach it any more.
                    let _ = target.drop_draft(collection);
                }
                published
            }
            _ => Ok(()),
        }
    }
}

impl RawFile {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut State) -> Outcome<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| match &mut *self.0.lock() {
            State { body: Body::Closed, .. } => Err(CLOSED),
            state => f(state),
        })?)
    }
}

#[pymethods]
impl RawFile {
    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut lent = LentMut::of(buffer)?;
        let buf = lent.bytes();
        self.with(py, |state| state.read(buf))
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::of(data)?;
        let bytes = lent.bytes();
        self.with(py, |state| state.write(bytes))?;
        Ok(bytes.len())
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        self.with(py, |state| {
            let from = match whence {
                0 => 0,
                1 => state.position,
                2 => state.size()?,
                _ => return Err(Error::Invalid(format!("whence {whence} is not 0, 1 or 2")).into()),
            };
            let before = || {
                Error::Invalid(format!(
                    "a seek to {offset} from {from} leads before the first byte"
                ))
            };
            state.position = from.checked_add_signed(offset).ok_or_else(before)?;
            Ok(state.position)
        })
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state| Ok(state.position))
    }

    /// The object's size in bytes.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, State::size)
    }

    fn truncate(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        self.with(py, |state| state.edit(|tx, oid| tx.set_len(oid, size)))
    }

    /// Inserts bytes at the position, which moves behind them.
    fn insert(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::of(data)?;
        let bytes = lent.bytes();
        self.with(py, |state| {
            let at = state.position;
            state.edit(|tx, oid| tx.insert(oid, at, bytes))?;
            state.position += bytes.len() as u64;
            Ok(())
        })?;
        Ok(bytes.len())
    }

    /// Cuts out as many bytes from the position on, fewer at the end; tells how many.
    fn delete(&self, py: Python<'_>, length: u64) -> PyResult<u64> {
        self.with(py, |state| {
            let at = state.position;
            let end = at.saturating_add(length).min(state.size()?);
            if end > at {
                state.edit(|tx, oid| tx.delete_range(oid, at..end))?;
            }
            Ok(end.saturating_sub(at))
        })
    }

    /// The object's id; None before a file that is written anew is closed.
    #[getter]
    fn oid(&self, py: Python<'_>) -> PyResult<Option<ObjectId>> {
        self.with(py, |state| match &state.body {
            Body::Object { object, .. } => Ok(Some(ObjectId(object.oid()))),
            Body::Live { oid, draft: None, .. } | Body::Transaction { oid, .. } => {
                Ok(Some(ObjectId(*oid)))
            }
            Body::Live { .. } | Body::Staged { .. } => Ok(None),
            Body::Closed => Err(CLOSED),
        })
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, State::flush)
    }

    /// Closes the file. What was written anew becomes an object, of a transaction where one is
    /// given, or with `keep` false nothing.
    #[pyo3(signature = (keep, transaction=None))]
    fn close(
        &self,
        py: Python<'_>,
        keep: bool,
        transaction: Option<&crate::source::Source>,
    ) -> PyResult<()> {
        let into = match transaction.map(|source| &source.0) {
            Some(Objects::Transaction(tx)) => Some(&**tx),
            _ => None,
        };
        Ok(py.detach(|| self.0.lock().close(keep, into))?)
    }
}
