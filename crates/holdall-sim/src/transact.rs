//! One transaction, played to the store and to the model at once.
//!
//! Owns: the expected answer of every call inside a transaction, and the rule that no OID is
//! ever given out twice, be it by a transaction that was given up or lost (rule 12).

use crate::check::Bad;
use crate::model::{self, Object, State};
use crate::op::{EditKind, TxOp};
use crate::staged::{Staging, expected_size};
use holdall::{Attributes, Error, Oid, PutOptions, Target, WriteTx};
use std::collections::{BTreeMap, BTreeSet};

/// Objects grow little beyond this, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// What a transaction sees and has done so far.
pub(crate) struct Playing<'a> {
    pub(crate) state: &'a mut State,
    /// Every OID ever given out, and its collection.
    pub(crate) ever: &'a mut BTreeMap<Oid, u8>,
    pub(crate) uniques: &'a mut BTreeSet<u32>,
    pub(crate) staged: &'a mut Vec<Staging>,
    /// A call has failed that fails the transaction: it can only be given up.
    pub(crate) refused: bool,
}

pub(crate) fn wrong<T>(text: String) -> Result<T, Bad> {
    Err(Bad::Wrong(text))
}

/// Whether the error is an answer and not a failure.
fn is_answer(e: &Error) -> bool {
    matches!(e, Error::NotFound(_) | Error::Dangling(_) | Error::Exists(_))
}

/// Compares a call's result with what the model says: fine, or an answer that it cannot be.
fn expect(what: &TxOp, result: Result<(), Error>, fine: bool) -> Result<bool, Bad> {
    match result {
        Ok(()) if fine => Ok(true),
        Ok(()) => wrong(format!("{what:?} succeeded and should not have")),
        Err(e) if is_answer(&e) && !fine => Ok(false),
        Err(e) if is_answer(&e) => wrong(format!("{what:?} gave: {e}")),
        Err(e) => Err(e.into()),
    }
}

impl Playing<'_> {
    /// An object: even numbers choose among those alive, odd ones among all there ever were.
    fn pick(&self, pick: u16) -> Option<Oid> {
        let n = usize::from(pick / 2);
        let alive = self.state.objects.len();
        if pick.is_multiple_of(2) && alive > 0 {
            return self.state.objects.keys().nth(n % alive).copied();
        }
        self.ever.keys().nth(n % self.ever.len().max(1)).copied()
    }

    fn given_out(&mut self, oid: Oid, coll: u8) -> Result<(), Bad> {
        if self.ever.insert(oid, coll).is_some() || !self.uniques.insert(oid.unique) {
            return wrong(format!("{oid} was given out before"));
        }
        Ok(())
    }

    /// Notes an object that the store says it has put under `name`.
    pub(crate) fn put(&mut self, coll: u8, oid: Oid, object: Object) -> Result<(), Bad> {
        let collection = model::collection(coll);
        let old = object.name.as_ref().and_then(|n| self.state.lookup(&collection, n));
        match old {
            Some(old) if old != oid => return wrong(format!("replacing {old} made it {oid}")),
            Some(_) => {}
            None => self.given_out(oid, coll)?,
        }
        self.state.put(&collection, oid, object);
        Ok(())
    }

    /// Plays one call.
    pub(crate) fn apply(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        match *op {
            TxOp::Put { coll, name, size, seed, attributes } => {
                let (name, bytes) = (model::name(name), model::bytes(seed, size));
                let attributes = model::attributes(attributes);
                let mut tx = tx.collection(&model::collection(coll))?;
                let oid =
                    tx.put_with(&name, &bytes, &PutOptions::with_attributes(attributes.clone()))?;
                self.put(coll, oid, Object { name: Some(name), attributes, bytes })
            }
            TxOp::Stream { .. } => self.stream(tx, op),
            TxOp::Staged { .. } => self.take_staged(tx, op),
            TxOp::Many { .. } => self.many(tx, op),
            TxOp::Edit { .. } => self.edit(tx, op),
            TxOp::Copy { .. } => self.copy(tx, op),
            TxOp::CopyRange { .. } => self.copy_range(tx, op),
            TxOp::Create { coll, size, seed, near } => {
                let bytes = model::bytes(seed, size);
                let near = near.and_then(|p| self.pick(p & !1));
                let mut tx = tx.collection(&model::collection(coll))?;
                let oid = match near.filter(|n| self.state.objects.contains_key(n)) {
                    Some(near) => tx.create_with(
                        &bytes,
                        &PutOptions { near: Some(near), ..PutOptions::default() },
                    )?,
                    None => tx.create(&bytes)?,
                };
                self.put(coll, oid, Object { name: None, attributes: Attributes::new(), bytes })
            }
            TxOp::Get { coll, name } => {
                let (collection, name) = (model::collection(coll), model::name(name));
                let oid = self.state.lookup(&collection, &name);
                self.get(op, tx.collection(&collection)?.get(&name), oid)
            }
            TxOp::GetOid { pick } => {
                let Some(oid) = self.pick(pick) else { return Ok(()) };
                self.get(op, tx.get(oid), Some(oid))
            }
            _ => self.change(tx, op),
        }
    }

    fn change(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        match *op {
            TxOp::DeleteName { coll, name } => {
                let (collection, name) = (model::collection(coll), model::name(name));
                let oid = self.state.lookup(&collection, &name);
                let result = tx.collection(&collection)?.remove(&name);
                if let Ok(removed) = result
                    && removed != oid.is_some()
                {
                    return wrong(format!("{op:?} told {removed}"));
                }
                expect(op, result.map(drop), true)?;
                oid.into_iter().for_each(|oid| self.state.delete(oid));
            }
            TxOp::DeleteOid { pick } => {
                let Some(oid) = self.pick(pick) else { return Ok(()) };
                let result = tx.remove(oid);
                if matches!(result, Ok(false)) {
                    return wrong(format!("{op:?} took {oid} for a name that is missing"));
                }
                if expect(op, result.map(drop), self.state.objects.contains_key(&oid))? {
                    self.state.delete(oid);
                }
            }
            TxOp::SetAttributes { pick, attributes } => {
                let Some(oid) = self.pick(pick) else { return Ok(()) };
                let attributes = model::attributes(attributes);
                let result = tx.set_attributes(oid, &attributes);
                if expect(op, result, self.state.objects.contains_key(&oid))? {
                    self.state.change(oid, |o| o.attributes = attributes);
                }
            }
            TxOp::Rename { coll, from, to } => {
                let collection = model::collection(coll);
                let (from, to) = (model::name(from), model::name(to));
                let there = self.state.lookup(&collection, &from).is_some();
                let free = self.state.lookup(&collection, &to).is_none();
                let result = tx.collection(&collection)?.rename(&from, &to);
                if expect(op, result, there && (free || from == to))? && from != to {
                    self.state.rename(&collection, &from, &to);
                }
            }
            TxOp::DropCollection { coll } => {
                let collection = model::collection(coll);
                let there = self.state.names.contains_key(&collection);
                match tx.drop_collection(&collection) {
                    Err(Error::Invalid(_)) if coll == 0 => {}
                    Ok(dropped) if coll != 0 && dropped == there => {
                        self.state.names.remove(&collection);
                        self.state.objects.retain(|oid, _| self.ever.get(oid) != Some(&coll));
                    }
                    Ok(dropped) => return wrong(format!("{op:?} told {dropped}")),
                    Err(e) => return Err(e.into()),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn edit(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::Edit { pick, kind, at, len, size, seed } = *op else { return Ok(()) };
        let Some(oid) = self.pick(pick) else { return Ok(()) };
        let old = self.state.objects.get(&oid).map(|o| o.bytes.clone());
        let there = old.is_some();
        let old = old.unwrap_or_default();
        let size = if old.len() > MOST_BYTES { size % 1000 } else { size };
        let (new, end) = (model::bytes(seed, size), old.len());
        let place = (end as u64 * u64::from(at) / 32_768) as usize;
        let start = place.min(end);
        let stop = (start + len as usize).min(end);
        let mut bytes = old.to_vec();
        let result = match kind {
            EditKind::Splice => {
                bytes.splice(start..stop, new.iter().copied());
                tx.splice(oid, start as u64..stop as u64, &new)
            }
            EditKind::Append => {
                bytes.extend_from_slice(&new);
                tx.append(oid, &new)
            }
            EditKind::Truncate => {
                bytes.resize(place.min(2 * MOST_BYTES), 0);
                tx.set_len(oid, bytes.len() as u64)
            }
            EditKind::WriteAt => {
                let place = place.min(2 * MOST_BYTES);
                bytes.resize(end.max(place + new.len()), 0);
                bytes[place..place + new.len()].copy_from_slice(&new);
                tx.write_at(oid, place as u64, &new)
            }
            EditKind::Set => {
                bytes = new.to_vec();
                self.set_bytes(tx, oid, at, &new)
            }
        };
        let told = result.as_ref().ok().copied();
        if expect(op, result.map(|_| ()), there)? {
            if told != Some(bytes.len() as u64) {
                return wrong(format!("{op:?} told size {told:?}, not {}", bytes.len()));
            }
            self.state.change(oid, |o| o.bytes = bytes.into());
        }
        Ok(())
    }

    /// By name, if the object has one and `at` is odd. Returns the size, as edits do.
    fn set_bytes(&self, tx: &mut WriteTx, oid: Oid, at: u16, new: &[u8]) -> Result<u64, Error> {
        let name = self.state.objects.get(&oid).and_then(|o| o.name.as_deref());
        match name.filter(|_| !at.is_multiple_of(2)) {
            Some(name) => {
                let mut collections = self.state.names.iter();
                let own = collections.find(|(_, names)| names.get(name) == Some(&oid));
                let own = own.map_or("", |(collection, _)| collection);
                tx.collection(own)?.set_bytes(name, new)?;
            }
            None => tx.set_bytes(oid, new)?,
        }
        Ok(new.len() as u64)
    }

    fn copy(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::Copy { pick, coll, name } = *op else { return Ok(()) };
        let Some(from) = self.pick(pick) else { return Ok(()) };
        let object = self.state.objects.get(&from).map(|o| Object::clone(o));
        let name = name.map(model::name);
        let target = name.clone().map_or(Target::New, Target::Name);
        let result = tx.collection(&model::collection(coll))?.copy(from, target);
        let oid = result.as_ref().ok().copied();
        if expect(op, result.map(|_| ()), object.is_some())?
            && let Some((oid, object)) = oid.zip(object)
        {
            self.put(coll, oid, Object { name, ..object })?;
        }
        Ok(())
    }

    fn copy_range(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::CopyRange { from, at, end, into, to } = *op else { return Ok(()) };
        let (Some(source), Some(target)) = (self.pick(from), self.pick(into)) else {
            return Ok(());
        };
        let bytes = |oid| self.state.objects.get(&oid).map(|o| o.bytes.clone());
        let (old, new) = (bytes(source), bytes(target));
        let there = old.is_some() && new.is_some();
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let place = |len: usize, at: u16| (len as u64 * u64::from(at) / 32_768) as usize;
        let (a, b) = (place(old.len(), at).min(old.len()), place(old.len(), end).min(old.len()));
        let (start, stop) = (a.min(b), a.max(b));
        if new.len() + stop - start > 2 * MOST_BYTES {
            return Ok(());
        }
        let at = place(new.len(), to).min(new.len());
        let mut bytes = new.to_vec();
        bytes.splice(at..at, old[start..stop].iter().copied());
        let result = tx.copy_range(source, start as u64..stop as u64, target, at as u64);
        if expect(op, result.map(|_| ()), there)? {
            self.state.change(target, |o| o.bytes = bytes.into());
        }
        Ok(())
    }

    /// Compares what was read: `None` of a name that is missing, an error of an OID whose
    /// object is gone.
    pub(crate) fn get(
        &self,
        op: &TxOp,
        found: Result<Option<Vec<u8>>, Error>,
        oid: Option<Oid>,
    ) -> Result<(), Bad> {
        let wanted = oid.and_then(|oid| self.state.objects.get(&oid));
        let bytes = found.as_ref().ok().and_then(Option::as_ref).map(Vec::len);
        match (found, wanted) {
            (Ok(Some(found)), Some(wanted)) if *found == *wanted.bytes => Ok(()),
            (Ok(None), None) if oid.is_none() => Ok(()),
            (Err(e), None) if oid.is_some() && is_answer(&e) => Ok(()),
            (Err(e), _) if !is_answer(&e) => Err(e.into()),
            (Err(e), _) => wrong(format!("{op:?} in the transaction gave: {e}")),
            (Ok(_), _) => wrong(format!("{op:?} in the transaction read {bytes:?} wrong bytes")),
        }
    }

    fn stream(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::Stream { coll, name, size, seed, chunk, hint, finish } = *op else {
            return Ok(());
        };
        let (name, bytes) = (name.map(model::name), model::bytes(seed, size));
        let target = name.clone().map_or(Target::New, Target::Name);
        let options =
            PutOptions { expected_size: expected_size(hint, size), ..PutOptions::default() };
        let mut tx = tx.collection(&model::collection(coll))?;
        let mut writer = tx.writer(target, options)?;
        for part in bytes.chunks(chunk.max(1) as usize) {
            writer.push(part)?;
        }
        if !finish {
            return Ok(());
        }
        let oid = writer.finish()?;
        self.put(coll, oid, Object { name, attributes: Attributes::new(), bytes })
    }
}
