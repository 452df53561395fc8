//! Bringing objects into the new store.
//!
//! Owns: [`Bringer`]: the new store, the transaction under way, which slots are taken.

use super::body::{ReadBody, Reading};
use super::catalog::Catalog;
use super::handles::is_younger;
use super::pages::Pages;
use super::report::{DoubtfulObject, LostObject, SalvageReport};
use crate::heap::HeapFile;
use crate::object::{self, Body, Data, Head, Record, StoredHints};
use crate::store::Store;
use crate::write::{Brought, Durability, WriteTx};
use holdall_core::collection_entry::SMALL_OWNER;
use holdall_core::handle_page::Location;
use holdall_core::name::{check_name, show_name};
use holdall_core::page::{self, PageKind};
use holdall_core::segment_tree::Descriptor;
use holdall_core::version::Change;
use holdall_core::{Lsn, Oid, PageNo, PageRead, Result};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

/// Objects, and bytes of them, of a transaction.
const MOST_OBJECTS: u64 = 500;
const MOST_BYTES: u64 = 16 << 20;

/// A record that may be an object's.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) oid: Oid,
    pub(super) loc: Location,
    /// Where the version of its page lies that has it, if not where pages are looked for.
    pub(super) version: Option<PageNo>,
    pub(super) change: Change,
    /// Of its page.
    pub(super) lsn: Lsn,
    /// No directory has that as free.
    pub(super) used: bool,
    pub(super) why: Option<&'static str>,
}

impl Candidate {
    /// The greatest of the candidates for a slot is what the store had last.
    fn compare(&self, other: &Self) -> Ordering {
        let rank = |c: &Self| (c.used, c.change.epoch, c.change.count, c.lsn);
        match (is_younger(self.oid, other.oid), self.oid == other.oid) {
            (_, true) => rank(self).cmp(&rank(other)),
            (true, _) => Ordering::Greater,
            (false, false) => Ordering::Less,
        }
    }
}

/// Which objects are still to be brought, and what makes them doubtful.
#[derive(Clone, Copy)]
pub(super) struct Only<'a> {
    pub(super) may: &'a dyn Fn(Oid) -> bool,
    pub(super) why: &'static str,
}

/// Where objects come from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, 'g> {
    pub(super) pages: &'a Pages<'g>,
    pub(super) catalog: &'a Catalog,
    /// Whether to go on.
    pub(super) check: &'a dyn Fn() -> Result<()>,
    /// None: all objects are brought, and what is lost is reported.
    pub(super) only: Option<Only<'a>>,
    /// Handle pages that there can be.
    pub(super) most_pages: u64,
}

/// Brings objects into a new store.
pub(super) struct Bringer<'a> {
    store: &'a Store,
    tx: Option<WriteTx>,
    /// Objects and bytes of the transaction under way.
    gathered: (u64, u64),
    /// The slots of objects that were brought, or are lost.
    taken: HashMap<u32, Vec<u64>>,
    partial: bool,
    pub(super) report: SalvageReport,
}

impl<'a> Bringer<'a> {
    pub(super) fn new(store: &'a Store, partial: bool) -> Self {
        let (taken, report) = (HashMap::new(), SalvageReport::default());
        Self { store, tx: None, gathered: (0, 0), taken, partial, report }
    }

    /// Objects that are known and were not brought.
    pub(super) fn not_brought(&self) -> HashSet<Oid> {
        let lost = self.report.lost.iter().filter(|lost| !lost.brought);
        lost.map(|lost| lost.oid).collect()
    }

    /// Objects that were not brought are no longer settled: an earlier state may have them.
    pub(super) fn unsettle_lost(&mut self) {
        self.not_brought().iter().for_each(|oid| self.untake(*oid));
    }

    /// Commits the last objects.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn finish(mut self) -> Result<SalvageReport> {
        self.commit()?;
        self.report.collections = self.store.read_newest()?.collections()?.len() as u64;
        Ok(self.report)
    }

    /// Makes the collections whose names are known, empty ones too.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn make_collections(&mut self, catalog: &Catalog) -> Result<()> {
        for (name, hints) in catalog.all() {
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

    fn untake(&mut self, oid: Oid) {
        let words = self.taken.get_mut(&oid.page);
        if let Some(word) = words.and_then(|words| words.get_mut(usize::from(oid.slot / 64))) {
            *word &= !(1 << (oid.slot % 64));
        }
    }

    /// Brings the best of the candidates for each slot that is not settled.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn bring_best(
        &mut self,
        from: Source<'_, '_>,
        candidates: Vec<Candidate>,
    ) -> Result<()> {
        let mut all: HashMap<(u32, u16), Vec<Candidate>> = HashMap::new();
        for candidate in candidates.into_iter().filter(|c| !self.is_taken(c.oid)) {
            all.entry((candidate.oid.page, candidate.oid.slot)).or_default().push(candidate);
        }
        let mut all: Vec<Vec<Candidate>> = all.into_values().collect();
        all.iter_mut().for_each(|slot| slot.sort_by(|a, b| b.compare(a)));
        all.sort_by_key(|slot| slot.first().map(|c| c.loc));
        all.into_iter().try_for_each(|slot| self.bring_one_of(from, slot))
    }

    /// Brings the first of the candidates for a slot that is whole.
    fn bring_one_of(&mut self, from: Source<'_, '_>, slot: Vec<Candidate>) -> Result<()> {
        let (before, mut first) = (self.report.lost.len(), None);
        for candidate in slot {
            let older =
                first.as_ref().map(|_| "what it was last is damaged: this is a version before");
            from.pages.pin(candidate.version.map(|place| (candidate.loc.page, place)));
            let brought = self.bring(from, (candidate.oid, candidate.loc), older.or(candidate.why));
            from.pages.pin(None);
            brought?;
            if !self.is_taken(candidate.oid) {
                continue;
            }
            match self.report.lost.len() > before {
                true if !self.partial => first = first.or(self.report.lost.pop()),
                _ => return Ok(()),
            }
            self.untake(candidate.oid);
        }
        if let Some(lost) = first {
            self.take(lost.oid);
            self.report.lost.push(lost);
        }
        Ok(())
    }

    /// Brings the object whose record lies at `loc`, or notes what is lost of it. `why`: what makes it
    /// doubtful. Cost: its record and its bytes.
    ///
    /// # Errors
    /// Those of the new store.
    pub(super) fn bring(
        &mut self,
        from: Source<'_, '_>,
        (oid, loc): (Oid, Location),
        why: Option<&'static str>,
    ) -> Result<()> {
        let why = match from.only {
            Some(only) if self.is_taken(oid) || !(only.may)(oid) => return Ok(()),
            Some(only) => Some(only.why),
            None => why,
        };
        let pages = from.pages;
        pages.take_doubt();
        let owner = pages.with_page(loc.page, PageKind::Heap, |bytes| Ok(page::owner(bytes)));
        let record = owner.and_then(|owner| Ok((owner, HeapFile::whole(pages, loc)?)));
        // What cannot be read is reported with those whose records are lost.
        let Ok((owner, bytes)) = record else { return Ok(()) };
        let Ok(record) = Record::parse(&bytes) else { return Ok(()) };
        let named_wrong = record.name.is_some_and(|name| check_name(name).is_err());
        if u64::from(oid.page) >= from.most_pages || named_wrong {
            return Ok(());
        }
        let number = if owner == SMALL_OWNER { record.collection } else { owner };
        let Some(collection) = from.catalog.name(number) else {
            self.take(oid);
            return Ok(());
        };
        let (head, size) = (record.head(), record.size().ok());
        let read = self.data(from, oid, &head, &record.body, why.is_some())?;
        let Some((data, hints, body)) = read else { return Ok(()) };
        let doubt = pages.take_doubt();
        let why = why.or(doubt.then_some("a page of it may be of an earlier state"));
        if !body.lost.is_empty() {
            if from.only.is_some() {
                return Ok(());
            }
            let (name, ranges, why) = (record.name.map(<[u8]>::to_vec), body.lost, body.why);
            let (collection, brought) = (Some(collection.clone()), self.partial);
            let lost = LostObject { collection, name, oid, size, ranges, why, brought };
            self.report.lost.push(lost);
        }
        self.take(oid);
        let last = self.report.lost.last();
        if from.only.is_none() && last.is_some_and(|lost| lost.oid == oid && !lost.brought) {
            return Ok(());
        }
        let brought = Brought { oid, head, data, size: size.unwrap_or(0), hints };
        self.install(collection, brought, why)?;
        if from.only.is_some() {
            self.report.lost.retain(|lost| lost.oid != oid);
        }
        Ok(())
    }

    /// The object's bytes; None if its descriptor cannot be read.
    fn data<'b>(
        &self,
        from: Source<'_, '_>,
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
        let Source { pages, check, .. } = from;
        let reading = Reading { pages, new, check, partial, doubt };
        let most = object::max_tail(head, new.layout.page_size(), hints.flags, d.size());
        let mut body = reading.read(oid, &d, most)?;
        let parts = std::mem::take(&mut body.parts);
        Ok(Some((Data::Parts(parts), Some(hints), body)))
    }

    fn install(
        &mut self,
        collection: String,
        object: Brought<'_>,
        why: Option<&str>,
    ) -> Result<()> {
        let (oid, size) = (object.oid, object.size);
        let mut head = object.head.clone();
        let tx = self.transaction()?;
        let mut objects = tx.collection(&collection)?;
        let mut why = why.map(str::to_owned);
        if let Some(name) = &head.name
            && let Some(other) = objects.lookup(name)?
        {
            let name = show_name(name);
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
