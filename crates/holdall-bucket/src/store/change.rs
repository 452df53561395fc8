//! Changing an object: read, edit, write on condition, again if somebody was first.
//!
//! Owns: [`Edit`], what one change does; the loop around it; what a change drops.

use super::current::{Current, Target};
use super::inner::{Inner, TRIES};
use super::missing::is_missing;
use super::operation::Operation;
use super::together::together;
use super::version::ObjectVersion;
use super::write::Written;
use crate::format::{Named, Part, Record, Retired, alias_of, encode_list, keys};
use crate::mutation::{self, Mutation};
use async_trait::async_trait;
use holdall::{Error, Result};
use holdall_core::segment_tree::Top;
use std::collections::BTreeSet;

/// Entries of a list of retired blobs.
const LISTED: usize = 16 * 1024;
/// Blobs that an edit deletes beside its own work.
const OWN_TURN: usize = 16;

/// What a change does to an object.
#[async_trait]
pub(crate) trait Edit: Send {
    /// The record to put in place of `base`; `None` if nothing is to be changed. It is asked again
    /// with another base if somebody was first.
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<Record>>;
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The object's version since; what it was if nothing was to be changed, `None` if there is none.
    pub(crate) version: Option<ObjectVersion>,
    /// Its size since.
    pub(crate) size: u64,
    /// Whether anything was to be changed.
    pub(crate) changed: bool,
}

impl Inner {
    /// Changes an object.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others were first each time; [`Error::OutcomeUnknown`]; those of the
    /// edit and the backend, after which nothing is changed.
    pub(crate) async fn change(
        &self,
        target: &Target,
        operation: &mut Operation,
        mut base: Option<Current>,
        edit: &mut dyn Edit,
    ) -> Result<Changed> {
        for attempt in 0..TRIES {
            operation.base_was_read();
            let applied = match edit.apply(self, operation, base.as_ref()).await {
                // Its nodes are gone, since the record was replaced: unless it is the same still.
                Err(e) if is_missing(&e) => {
                    let now = self.read(target).await?;
                    if now.as_ref().map(|now| &now.tag) == base.as_ref().map(|base| &base.tag) {
                        return Err(e);
                    }
                    base = now;
                    continue;
                }
                applied => applied?,
            };
            let Some(record) = applied else {
                operation.give_up(self).await;
                let record = base.as_ref().and_then(Current::object);
                let version = record.map(|record| ObjectVersion::of(record));
                let size = record.map_or(0, |record| record.tree.size);
                return Ok(Changed { version, size, changed: false });
            };
            // A record with blobs takes a record's place, never that of nothing: else a late write
            // could name blobs that were collected while nothing was there.
            let absent = base.is_none() && !mutation::is(Mutation::B04Absent);
            if absent && (record.names_blobs() || operation.is_announced()) {
                base = self.placeholder(target).await?;
                continue;
            }
            let record = self.prepare(target, operation, base.as_ref(), record).await?;
            operation.check_open(self, target).await?;
            let version = ObjectVersion::made(record.incarnation, record.change, operation.id);
            let size = record.tree.size;
            match self.write(target, base.as_ref(), record, Some(operation.id)).await? {
                Written::Done(_) => {
                    operation.end(self).await;
                    return Ok(Changed { version: Some(version), size, changed: true });
                }
                Written::Lost(current) => base = current,
            }
            self.pause(attempt).await?;
        }
        let detail = format!("others were first {TRIES} times; put several edits into one change");
        Err(Error::Conflict { object: target.shown(), detail })
    }

    /// A record that says that there is no object, if nothing is there: what a later write replaces.
    pub(crate) async fn placeholder(&self, target: &Target) -> Result<Option<Current>> {
        let record = Record {
            gone: true,
            incarnation: self.draw()?,
            collection: target.collection.clone(),
            name: target.name.clone(),
            ..Record::default()
        };
        match self.write(target, None, record, None).await? {
            Written::Done(current) => Ok(Some(current)),
            Written::Lost(current) => Ok(current),
        }
    }

    /// Puts in order what `record` retires: deletes some of what is old, lists the rest in a blob if
    /// there is too much.
    pub(crate) async fn prepare(
        &self,
        target: &Target,
        operation: &mut Operation,
        base: Option<&Current>,
        mut record: Record,
    ) -> Result<Record> {
        operation.begin_attempt();
        let seconds = self.retired_at(base);
        let unused = operation.unused.iter().filter(|_| !mutation::is(Mutation::B07Unused));
        for blob in unused.copied() {
            record.retired.push(Retired { named: Named { blob, part: Part::Segment }, seconds });
        }
        // Whatever took long before, the grace begins now.
        let old = base.map_or(&[][..], |base| &base.record.retired);
        let new = record.retired.iter_mut().filter(|entry| !old.contains(entry));
        new.for_each(|entry| entry.seconds = seconds);
        if let Some(base) = base {
            self.delete_own(base, &mut record).await?;
        }
        // Of what was retired twice the later time counts.
        record.retired.sort_by_key(|entry| (entry.named, std::cmp::Reverse(entry.seconds)));
        record.retired.dedup_by_key(|entry| entry.named);
        self.list_younger(target, operation, &mut record).await?;
        Ok(record)
    }

    /// Moves the younger half of what `record` retires to a list while there is too much, which is as old
    /// as the youngest in it. The older half keeps its age: else nothing of an object that is changed
    /// again and again would ever be old enough to be deleted.
    async fn list_younger(
        &self,
        target: &Target,
        operation: &mut Operation,
        record: &mut Record,
    ) -> Result<()> {
        while record.retired.len() > self.sizes().retired {
            record.retired.sort_by_key(|entry| (entry.seconds, entry.named));
            let young = record.retired.split_off(self.sizes().retired / 2);
            for some in young.chunks(LISTED) {
                let payload = encode_list(some)?;
                let blob = operation.write_list(self, target, &payload).await?;
                let seconds = some.iter().map(|entry| entry.seconds).max().unwrap_or_default();
                record.retired.push(Retired { named: Named { blob, part: Part::List }, seconds });
            }
        }
        Ok(())
    }

    /// The time that retired blobs get: not before the base was written by the server's clock, so that
    /// a slow clock shortens no reader's grace by more than the base's age.
    pub(crate) fn retired_at(&self, base: Option<&Current>) -> u64 {
        self.environment.now().as_secs().max(base.and_then(|base| base.written).unwrap_or(0))
    }

    /// Deletes some blobs that were retired longer ago than the grace, if no other object names them
    /// and the record lists all that its own names.
    async fn delete_own(&self, base: &Current, record: &mut Record) -> Result<()> {
        let old = &base.record;
        if (old.shared || record.shared) && !mutation::is(Mutation::B10Shared) {
            return Ok(());
        }
        let (Some(before), Some(after)) = (named_inline(old), named_inline(record)) else {
            return Ok(());
        };
        // What a tree or a list stands for is not at hand, and may be younger.
        let alone = |entry: &Retired| matches!(entry.named.part, Part::Segment | Part::Node);
        if !record.retired.iter().all(alone) {
            return Ok(());
        }
        let now = self.environment.now().as_secs();
        let due: Vec<Named> = old
            .retired
            .iter()
            .filter(|entry| entry.seconds.saturating_add(self.sizes().grace) <= now)
            .map(|entry| entry.named)
            .take(OWN_TURN)
            .collect();
        let free =
            |named: &&Named| !before.contains(&named.blob.id) && !after.contains(&named.blob.id);
        let free: Vec<String> =
            due.iter().filter(free).map(|named| keys::blob(named.blob.id)).collect();
        let deleted =
            together(free, OWN_TURN, |key| async move { self.backend.delete(&key).await });
        deleted.await?;
        let due: BTreeSet<_> = due.iter().map(|named| named.blob.id).collect();
        record.retired.retain(|entry| {
            let again = old.retired.contains(entry);
            !(again && due.contains(&entry.named.blob.id))
        });
        Ok(())
    }
}

/// The blobs that a record's tree names, if the record lists them itself.
pub(crate) fn named_inline(record: &Record) -> Option<BTreeSet<crate::format::BlobId>> {
    let Top::Inline(slices) = &record.tree.top else { return None };
    let blob = |reference| record.blobs.get(alias_of(reference)).map(|blob| blob.id);
    Some(slices.iter().filter(|s| s.is_run()).filter_map(|s| blob(s.reference)).collect())
}

/// All that a record's tree names, as few entries as tell it: each segment, or the whole tree.
pub(crate) fn all_named(record: &Record) -> Vec<Named> {
    match &record.tree.top {
        Top::Inline(slices) => {
            let mut seen = BTreeSet::new();
            let blobs = slices.iter().filter(|s| s.is_run());
            let blobs = blobs.filter_map(|s| record.blobs.get(alias_of(s.reference)));
            blobs
                .filter(|blob| seen.insert(blob.id))
                .map(|blob| Named { blob, part: Part::Segment })
                .collect()
        }
        Top::Root { node, height } => {
            let blob = record.blobs.get(node.0);
            blob.map(|blob| Named { blob, part: Part::Tree(*height) }).into_iter().collect()
        }
    }
}

/// The record that follows `base` with no bytes, all it named retired. The caller fills it.
///
/// # Errors
/// [`Error::Io`] if the system draws no random bytes.
pub(crate) fn successor(
    store: &Inner,
    target: &Target,
    operation: &Operation,
    base: Option<&Current>,
) -> Result<Record> {
    let now = store.nanos();
    let mut record = Record {
        collection: target.collection.clone(),
        name: target.name.clone(),
        created: now,
        modified: now,
        ..Record::default()
    };
    match base {
        None => record.incarnation = store.draw()?,
        Some(base) => {
            let old = &base.record;
            record.incarnation = old.incarnation;
            record.change = old.change;
            record.recent.clone_from(&old.recent);
            record.shared = old.shared && (old.names_blobs() || !old.retired.is_empty());
            record.retired.clone_from(&old.retired);
            let seconds = store.retired_at(Some(base));
            let dropped = all_named(old).into_iter();
            let dropped = dropped.filter(|_| !mutation::is(Mutation::B07Retired));
            let named = dropped.map(|named| Retired { named, seconds });
            record.retired.extend(named);
            if !old.gone {
                record.created = old.created;
            }
        }
    }
    record.changed_by(operation.id);
    Ok(record)
}
