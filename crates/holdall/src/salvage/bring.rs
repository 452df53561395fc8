//! Bringing objects into the new store.
//!
//! Owns: [`Bringer`]: the new store, the transaction under way, which slots are taken.

use super::body::{ReadBody, Reading};
use super::catalog::Catalog;
use super::handles::is_younger;
use super::pages::Pages;
use super::report::{DoubtfulObject, LostObject, SalvageReport};
use crate::engine::key::check_name;
use crate::heap::HeapFile;
use crate::object::{self, Body, Data, Head, Record, StoredHints};
use crate::store::Store;
use crate::write::{Brought, Durability, WriteTx};
use holdall_core::collection_entry::SMALL_OWNER;
use holdall_core::handle_page::Location;
use holdall_core::page::{self, PageKind};
use holdall_core::segment_tree::Descriptor;
use holdall_core::version::Change;
use holdall_core::{Lsn, Oid, PageRead, Result};
use std::collections::HashMap;

/// Objects, and bytes of them, of a transaction.
const MOST_OBJECTS: u64 = 500;
const MOST_BYTES: u64 = 16 << 20;

/// A record that may be an object's.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) oid: Oid,
    pub(super) loc: Location,
    pub(super) change: Change,
    /// Of its page.
    pub(super) lsn: Lsn,
    pub(super) why: Option<&'static str>,
}

impl Candidate {
    /// Whether this rather than `other`, a candidate for the same slot, is what the store had last.
    fn is_rather(&self, other: &Self) -> bool {
        let rank = |c: &Self| (c.change.epoch, c.change.count, c.lsn);
        is_younger(self.oid, other.oid) || self.oid == other.oid && rank(self) > rank(other)
    }
}

/// Brings objects into a new store.
pub(super) struct Bringer<'a, 'g> {
    pages: &'a Pages<'g>,
    catalog: &'a Catalog,
    store: &'a Store,
    tx: Option<WriteTx>,
    /// Objects and bytes of the transaction under way.
    gathered: (u64, u64),
    /// The slots of objects that were brought, or are lost.
    taken: HashMap<u32, Vec<u64>>,
    partial: bool,
    /// Handle pages that there can be.
    most_pages: u64,
    pub(super) report: SalvageReport,
}

impl<'a, 'g> Bringer<'a, 'g> {
    pub(super) fn new(
        (pages, catalog): (&'a Pages<'g>, &'a Catalog),
        store: &'a Store,
        partial: bool,
        most_pages: u64,
    ) -> Self {
        let (taken, report) = (HashMap::new(), SalvageReport::default());
        let (tx, gathered) = (None, (0, 0));
        Self { pages, catalog, store, tx, gathered, taken, partial, most_pages, report }
    }

    /// Makes the collections whose names are known, empty ones too.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn make_collections(&mut self) -> Result<()> {
        for (name, hints) in self.catalog.all() {
            let tx = self.transaction()?;
            // A name that no collection can have is read as damage of the catalog.
            let Ok(mut collection) = tx.collection(name) else { continue };
            collection.create_collection()?;
            if hints != StoredHints::default() {
                collection.keep_collection_hints(hints)?;
            }
            drop(collection);
            self.note(0)?;
        }
        Ok(())
    }

    /// Whether the slot of `oid` is settled.
    pub(super) fn is_taken(&self, oid: Oid) -> bool {
        let words = self.taken.get(&oid.page);
        let word = words.and_then(|words| words.get(usize::from(oid.slot / 64)));
        word.is_some_and(|word| word >> (oid.slot % 64) & 1 == 1)
    }

    fn take(&mut self, oid: Oid) {
        let words = self.taken.entry(oid.page).or_default();
        let at = usize::from(oid.slot / 64);
        if words.len() <= at {
            words.resize(at + 1, 0);
        }
        words[at] |= 1 << (oid.slot % 64);
    }

    /// Brings the best of the candidates for each slot that is not settled.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn bring_best(&mut self, candidates: Vec<Candidate>) -> Result<()> {
        let mut best: HashMap<(u32, u16), Candidate> = HashMap::new();
        for candidate in candidates.into_iter().filter(|c| !self.is_taken(c.oid)) {
            let slot = (candidate.oid.page, candidate.oid.slot);
            match best.get(&slot) {
                Some(known) if !candidate.is_rather(known) => {}
                _ => drop(best.insert(slot, candidate)),
            }
        }
        let mut best: Vec<Candidate> = best.into_values().collect();
        best.sort_by_key(|c| c.loc);
        best.into_iter().try_for_each(|c| self.bring(c.oid, c.loc, c.why))
    }

    /// Brings the object whose record lies at `loc`, or notes what is lost of it. `why`: what makes it
    /// doubtful. Cost: its record and its bytes.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn bring(&mut self, oid: Oid, loc: Location, why: Option<&str>) -> Result<()> {
        self.pages.take_doubt();
        let owner = self.pages.with_page(loc.page, PageKind::Heap, |bytes| Ok(page::owner(bytes)));
        let record = owner.and_then(|owner| Ok((owner, HeapFile::whole(self.pages, loc)?)));
        let (owner, bytes) = match record {
            Ok(record) => record,
            // Told with those whose records are lost.
            Err(_) => return Ok(()),
        };
        let Ok(record) = Record::parse(&bytes) else { return Ok(()) };
        let number = if owner == SMALL_OWNER { record.collection } else { owner };
        let Some(collection) = self.catalog.name(number) else {
            self.take(oid);
            return Ok(());
        };
        if u64::from(oid.page) >= self.most_pages || record.name.is_some_and(|n| check_name(n).is_err()) {
            return Ok(());
        }
        let (head, size) = (record.head(), record.size().ok());
        let read = self.data(oid, &head, &record.body, why.is_some())?;
        let doubt = self.pages.take_doubt();
        let why = why.or(doubt.then_some("a page of it was found elsewhere and may be older"));
        let (data, hints, body) = match read {
            Some(read) => read,
            None => return Ok(()),
        };
        self.take(oid);
        if !body.lost.is_empty() {
            let (name, ranges) = (record.name.map(<[u8]>::to_vec), body.lost);
            let collection = Some(collection.clone());
            let brought = self.partial;
            let lost = LostObject { collection, name, oid, size, ranges, why: body.why, brought };
            self.report.lost.push(lost);
            if !self.partial {
                return Ok(());
            }
        }
        let size = size.unwrap_or(0);
        let brought = Brought { oid, head, data, size, hints };
        self.install(collection, brought, why)
    }

    /// The object's bytes; None if its descriptor cannot be read.
    fn data<'b>(
        &self,
        oid: Oid,
        head: &Head<'_>,
        body: &Body<'b>,
        doubt: bool,
    ) -> Result<Option<(Data<'b>, Option<StoredHints>, ReadBody)>> {
        let descriptor = match body {
            Body::Small(bytes) => {
                return Ok(Some((Data::Small(bytes), None, ReadBody::default())));
            }
            Body::Large(descriptor) => *descriptor,
        };
        let Ok(d) = Descriptor::decode(descriptor) else { return Ok(None) };
        let hints = StoredHints::from_descriptor(&d);
        let (new, partial) = (&*self.store.inner, self.partial);
        let reading = Reading { pages: self.pages, new, partial, doubt };
        let most = object::max_tail(head, new.layout.page_size(), hints.flags, d.size());
        let mut body = reading.read(oid, &d, most)?;
        let parts = std::mem::take(&mut body.parts);
        Ok(Some((Data::Parts(parts), Some(hints), body)))
    }

    fn install(&mut self, collection: String, object: Brought<'_>, why: Option<&str>) -> Result<()> {
        let (oid, size) = (object.oid, object.size);
        let mut head = object.head.clone();
        let tx = self.transaction()?;
        let mut objects = tx.collection(&collection)?;
        let mut why = why.map(str::to_owned);
        if let Some(name) = &head.name
            && let Some(other) = objects.lookup(name)?
        {
            let name = crate::engine::key::show_name(name);
            why = Some(format!("{other} has its name, {name}: one of them was removed"));
            head.name = None;
        }
        let name = head.name.as_deref().map(<[u8]>::to_vec);
        objects.bring(Brought { head, ..object })?;
        drop(objects);
        self.report.objects += 1;
        self.report.bytes += size;
        if let Some(why) = why {
            self.report.doubtful.push(DoubtfulObject { collection, name, oid, why });
        }
        self.note(size)
    }

    fn transaction(&mut self) -> Result<&mut WriteTx> {
        let tx = match self.tx.take() {
            Some(tx) => tx,
            None => {
                let mut tx = self.store.begin_write()?;
                tx.set_durability(Durability::Deferred);
                tx
            }
        };
        Ok(self.tx.insert(tx))
    }

    /// Commits if enough has gathered with an object of `bytes` bytes.
    fn note(&mut self, bytes: u64) -> Result<()> {
        self.gathered = (self.gathered.0 + 1, self.gathered.1.saturating_add(bytes));
        if self.gathered.0 < MOST_OBJECTS && self.gathered.1 < MOST_BYTES {
            return Ok(());
        }
        self.commit()
    }

    /// Commits what has gathered.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.gathered = (0, 0);
        self.tx.take().map_or(Ok(()), WriteTx::commit)
    }
}
