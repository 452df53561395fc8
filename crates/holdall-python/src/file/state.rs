//! An open file: its object, its position.
//!
//! Owns: [`State`], [`Body`].

use super::target::{DRAFT, Target};
use crate::errors::{Fail, Outcome};
use crate::handle::{Held, Keeps, process};
use crate::source::Transaction;
use crate::view_edit::{transact, write_to};
use holdall::{Durability, Error, Object, ObjectsMut, Oid, StagedObject};
use parking_lot::Mutex;
use std::sync::Arc;

/// The object behind a file.
pub enum Body {
    /// Read only: an object of a snapshot, opened in the process of that number.
    Object {
        object: Box<Object>,
        handle: Held,
        process: u64,
    },
    /// Changed in place; with a draft's target, and the draft's collection.
    Live {
        handle: Held,
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
        /// Where one goes that is written anew.
        target: Option<Box<Target>>,
    },
    /// The store was closed before the file; true if bytes written to it were lost.
    GivenUp(bool),
    Closed,
}

/// An open file.
pub struct State {
    /// Its object.
    pub body: Body,
    /// Where the next read or write begins.
    pub position: u64,
    /// Whether each write goes to the end.
    pub append: bool,
    /// Which process opened it.
    pub process: u64,
}

/// What calls of a closed file give.
pub const CLOSED: Fail = Fail::Closed("file");

impl State {
    fn check_process(&self) -> Outcome<()> {
        if self.process != process() && !matches!(self.body, Body::Object { .. }) {
            let text = "the file was opened for writing before a fork; only the process that \
                 opened it may use it";
            return Err(Fail::Forked(text));
        }
        Ok(())
    }

    /// The object's size in bytes.
    pub fn size(&mut self) -> Outcome<u64> {
        self.check_process()?;
        match &self.body {
            Body::Object { object, .. } => Ok(object.size()),
            Body::Live { handle, oid, .. } => {
                handle.with(|store| Ok(store.read_newest()?.metadata(*oid)?.size))
            }
            Body::Staged { staged, .. } => Ok(staged.as_ref().map_or(0, |staged| staged.len())),
            Body::Transaction { tx, oid, .. } => tx.with(|tx| Ok(tx.metadata(*oid)?.size)),
            Body::GivenUp(_) => Err(Fail::Closed("store")),
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

    /// Reads from the position on, which moves.
    pub fn read(&mut self, buf: &mut [u8]) -> Outcome<usize> {
        self.check_process()?;
        self.reopen()?;
        if matches!(self.body, Body::Staged { .. }) {
            self.draft()?;
        }
        let at = self.position;
        let n = match &self.body {
            Body::Object { object, .. } => object.read_at(at, buf)?,
            Body::Live { handle, oid, .. } => handle.with(|store| {
                let read = store.read_newest()?.read_at(*oid, at, buf);
                Ok(read.map(Option::unwrap_or_default)?)
            })?,
            Body::Transaction { tx, oid, .. } => tx.with(|tx| {
                let size = tx.metadata(*oid)?.size;
                let start = at.min(size);
                let end = start.saturating_add(buf.len() as u64).min(size);
                let bytes = tx.get_range(*oid, start..end)?.unwrap_or_default();
                buf[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            })?,
            Body::GivenUp(_) => return Err(Fail::Closed("store")),
            Body::Staged { .. } | Body::Closed => return Err(CLOSED),
        };
        self.position += n as u64;
        Ok(n)
    }

    /// Writes at the position, which moves.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.check_process()?;
        if bytes.is_empty() {
            // As of a file: nothing, wherever the position is.
            return Ok(());
        }
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
    pub fn edit<T>(
        &mut self,
        f: impl FnOnce(&mut ObjectsMut, Oid) -> holdall::Result<T>,
    ) -> Outcome<T> {
        self.check_process()?;
        if matches!(self.body, Body::Staged { .. }) {
            self.draft()?;
        }
        match &mut self.body {
            Body::Live { handle, oid, dirty, .. } => {
                let oid = *oid;
                let value = write_to(handle, None, Durability::Deferred, |tx| Ok(f(tx, oid)?))?;
                *dirty = true;
                Ok(value)
            }
            Body::Transaction { tx, oid, .. } => tx.with(|tx| Ok(f(tx, *oid)?)),
            Body::Object { .. } => Err(Error::ReadOnly.into()),
            Body::GivenUp(_) => Err(Fail::Closed("store")),
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
        let oid = transact(&target.handle, Durability::Deferred, |tx| {
            Ok(staged.finish(&mut *tx.collection(&collection)?)?)
        })?;
        let (handle, draft) = (target.handle.clone(), Some(Box::new((*target, collection))));
        self.body = Body::Live { handle, oid, dirty: true, draft };
        Ok(())
    }

    /// Makes what was written to an object in place durable.
    pub fn flush(&mut self) -> Outcome<()> {
        self.check_process()?;
        match &mut self.body {
            Body::Live { handle, dirty, draft: None, .. } if *dirty => {
                if handle.is_closed() {
                    // That has made all of it durable.
                    return Ok(());
                }
                handle.with(|store| Ok(store.flush()?))?;
                *dirty = false;
                Ok(())
            }
            Body::GivenUp(true) => Err(Fail::Closed("store")),
            Body::Closed => Err(CLOSED),
            _ => Ok(()),
        }
    }

    /// Closes the file; with `keep`, what was written anew becomes an object.
    pub fn close(&mut self, keep: bool, into: Option<&Transaction>) -> Outcome<()> {
        if self.process != process() {
            std::mem::forget(std::mem::replace(&mut self.body, Body::Closed));
            return Ok(());
        }
        if let Body::Live { draft: None, .. } = &self.body {
            let flushed = self.flush();
            self.body = Body::Closed;
            return flushed;
        }
        match std::mem::replace(&mut self.body, Body::Closed) {
            Body::Staged { staged: Some(staged), target: Some(target) } if keep => {
                target.put_into(into, |tx| Ok(staged.finish(tx).map(drop)?))
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
            Body::Transaction { tx, oid, target: Some(target) } => target.end_in(&tx, oid, keep),
            Body::GivenUp(true) if keep => Err(Fail::Closed("store")),
            _ => Ok(()),
        }
    }
}

impl Keeps for Mutex<State> {
    fn let_go(&self) {
        let mut state = self.lock();
        state.body = match std::mem::replace(&mut state.body, Body::Closed) {
            Body::Object { .. } => Body::GivenUp(false),
            Body::Staged { .. } => Body::GivenUp(true),
            other => other,
        };
    }
}
