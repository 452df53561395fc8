//! Many objects in one call.
//!
//! Owns: [`ObjectsMut::create_many`], [`ObjectsMut::put_many`]. Objects are taken in groups, and of
//! a group those together that go to one heap page, one handle page and, if their names ascend,
//! behind the last name: what a single call looks up and keeps book of for one object is done once
//! for them. All others take the way of single calls. Either way the store ends up as single calls
//! would have made it, byte for byte (tests/put_many.rs).
//!
//! Invariant: no code of the caller's runs while a page is half changed.

use super::{Begun, ObjectsMut};
use crate::object::{Head, New};
use holdall_core::mutation::{self, Mutation};
use holdall_core::name::{check_name, show_name};
use holdall_core::{Error, NameValue, Oid, Result};
use std::borrow::Cow;

/// Most objects of a group.
const GROUP: usize = 64;
/// With this many bytes a group has no more objects: those of the caller's stay in memory so
/// long.
const GROUP_BYTES: usize = 256 << 10;

/// What a caller gives for an object.
trait Given {
    fn object(&self, time: u64) -> New<'_>;
}

struct Nameless<B>(B);

impl<B: AsRef<[u8]>> Given for Nameless<B> {
    fn object(&self, time: u64) -> New<'_> {
        New { name: None, time, bytes: self.0.as_ref() }
    }
}

impl<N: AsRef<[u8]>, B: AsRef<[u8]>> Given for (N, B) {
    fn object(&self, time: u64) -> New<'_> {
        New { name: Some(self.0.as_ref()), time, bytes: self.1.as_ref() }
    }
}

impl ObjectsMut {
    /// Creates objects without names, in the order given, and returns their OIDs in that order.
    /// As [`ObjectsMut::create`] for each, in about half of its processor time for small objects;
    /// memory for 64 of `objects` at a time and for the OIDs.
    ///
    /// ```
    /// # fn main() -> holdall::Result<()> {
    /// # let store = holdall::Store::in_memory()?;
    /// let oids = store.write(|tx| tx.create_many(["one", "two", "three"]))?;
    /// assert_eq!(store.read()?.get(oids[2])?, Some(b"three".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ObjectsMut::create`], with the object's place in the call if that is to blame. The
    /// transaction can then only be given up, and nothing of it is kept.
    pub fn create_many<B: AsRef<[u8]>>(
        &mut self,
        objects: impl IntoIterator<Item = B>,
    ) -> Result<Vec<Oid>> {
        self.add_all(objects.into_iter().map(Nameless))
    }

    /// Creates the objects of these names or replaces their bytes, in the order given, and
    /// returns their OIDs in that order. As [`ObjectsMut::put`] for each, a name given twice
    /// included; new names are fastest if they ascend and come after all others of the
    /// collection. Cost in memory: as [`ObjectsMut::create_many`].
    ///
    /// ```
    /// # fn main() -> holdall::Result<()> {
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", "first"), ("b", "second")]))?;
    /// assert_eq!(store.read()?.get("b")?, Some(b"second".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`ObjectsMut::put`], with the object's place in the call and its name if it is to
    /// blame. The transaction can then only be given up, and nothing of it is kept.
    pub fn put_many<N: AsRef<[u8]>, B: AsRef<[u8]>>(
        &mut self,
        objects: impl IntoIterator<Item = (N, B)>,
    ) -> Result<Vec<Oid>> {
        self.add_all(objects.into_iter())
    }

    fn add_all(&mut self, objects: impl Iterator<Item: Given>) -> Result<Vec<Oid>> {
        let mut oids = Vec::with_capacity(objects.size_hint().0.min(1 << 20));
        let (mut group, mut bytes) = (Vec::with_capacity(objects.size_hint().0.min(GROUP)), 0);
        for object in objects {
            bytes += object.object(0).bytes.len();
            group.push(object);
            if group.len() == GROUP || bytes >= GROUP_BYTES {
                self.add_group(&group, &mut oids)?;
                group.clear();
                bytes = 0;
            }
        }
        self.add_group(&group, &mut oids)?;
        Ok(oids)
    }

    fn add_group(&mut self, group: &[impl Given], oids: &mut Vec<Oid>) -> Result<()> {
        let objects: Vec<New<'_>> = group.iter().map(|given| given.object(self.time)).collect();
        let mut left = &objects[..];
        while let Some(first) = left.first() {
            let mut done = self.add_run(left, oids);
            if let Ok(0) = done {
                done = self.add_one(first).map(|oid| {
                    oids.push(oid);
                    1
                });
            }
            // What came before in this call cannot be taken back.
            let goes_on = mutation::is(Mutation::R09Refused);
            let done = if goes_on { done } else { self.fail_with(done) };
            let done = done.map_err(|e| blame(e, oids.len(), first))?;
            left = left.get(done..).unwrap_or_default();
        }
        Ok(())
    }

    /// Puts an object as the single call would.
    fn add_one(&mut self, new: &New<'_>) -> Result<Oid> {
        new.name.map_or(Ok(()), check_name)?;
        let name = new.name.map(Cow::Borrowed);
        let head = Head { name, time: self.time, ..Head::default() };
        self.put_whole(&head, new.bytes, None, None, None)
    }

    /// Creates the first of `objects`, and those behind it that go to the same pages; returns
    /// how many, none if the first is not small, may not be new or has no page at hand.
    fn add_run(&mut self, objects: &[New<'_>], oids: &mut Vec<Oid>) -> Result<usize> {
        let size = self.page_size();
        let small = objects.iter().take_while(|new| new.is_small(size)).count();
        let objects = &objects[..self.all_new(&objects[..small])];
        let Some(begun) = self.begun.as_deref_mut().filter(|_| !objects.is_empty()) else {
            return Ok(0);
        };
        // Changes of objects have it forgotten, since they may be of names too. This is not.
        let (mut tail, tail_of) = (std::mem::take(&mut begun.tail), begun.tail_of);
        let (inner, before) = (self.inner.clone(), oids.len());
        let done = self.with_objects(|o, c| {
            let places = o.create_run(objects, || inner.take_unique(), oids)?;
            let (done, made) = (places.len(), &objects[..places.len()]);
            // All of a run have names, or none has.
            let named = made.first().is_some_and(|new| new.name.is_some());
            if named {
                let values = oids[before..].iter().zip(places);
                let values = values.map(|(oid, at)| NameValue { oid: *oid, place: Some(at) });
                let values: Vec<_> = values.map(|value| value.encode()).collect();
                let cells = made.iter().zip(&values);
                let cells = cells.map(|(new, value)| (new.name.unwrap_or_default(), &value[..]));
                c.names.append(o.tx, c.number, cells, &mut tail)?;
            }
            let bytes: u64 = made.iter().map(|new| new.bytes.len() as u64).sum();
            c.add(done as u64, named);
            c.resize(0, bytes);
            Ok(done)
        })?;
        if let Some(begun) = self.begun.as_deref_mut() {
            (begun.tail, begun.tail_of) = (tail, tail_of);
        }
        if self.sums.is_some() {
            let made = oids[before..].iter().zip(objects);
            made.for_each(|(oid, new)| self.note_bytes(*oid, new.bytes));
        }
        Ok(done)
    }

    /// How many of `objects`, from the first on, are certainly new, in a collection that is
    /// there: those without a name, and those whose names come behind all others.
    fn all_new(&mut self, objects: &[New<'_>]) -> usize {
        let Some(Begun { tail, tail_of, .. }) = self.begun.as_deref() else { return 0 };
        // Small ones have few objects.
        let Some(number) = self.opened.get(self.current).filter(|c| !c.is_small()) else {
            return 0;
        };
        let number = number.number;
        match objects.first() {
            Some(New { name: None, .. }) => {
                objects.iter().take_while(|new| new.name.is_none()).count()
            }
            Some(_) if number == *tail_of => {
                tail.ascending(objects.iter().map_while(|new| new.name))
            }
            _ => 0,
        }
    }
}

/// Says which object of a call an error is about, if the error is about what was asked.
fn blame(e: Error, at: usize, new: &New<'_>) -> Error {
    let name = new.name.map(|name| format!(" ({})", show_name(name))).unwrap_or_default();
    let which = |text: String| format!("object {at} of the call{name}: {text}");
    match e {
        Error::Invalid(text) => Error::Invalid(which(text)),
        Error::TooLarge(text) => Error::TooLarge(which(text)),
        Error::Full(text) => Error::Full(which(text)),
        other => other,
    }
}
