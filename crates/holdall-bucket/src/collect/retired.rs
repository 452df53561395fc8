//! Retired blobs: those of a record that shares nothing are deleted as soon as they are old; of one
//! that shares, they are candidates only.

use super::cycle::Cycle;
use super::reach::{Absent, Place, Reached, live, reach};
use super::{Deleted, SWEPT, delete_blobs};
use crate::format::{BlobId, Named, Record, Retired};
use crate::mutation::{self, Mutation};
use crate::store::{Current, Inner, Target, Written, together};
use holdall::Result;
use std::collections::BTreeSet;

/// Tries to take entries out of a record that changes.
const OUTS: u32 = 8;

/// Entries of a record that are due, and the blobs that they stand for.
#[derive(Debug)]
pub(crate) struct Due {
    target: Target,
    /// The record that they were found in.
    current: Current,
    entries: Vec<(Retired, Reached)>,
    /// Blobs that the record's own tree names, or an entry of it that is not due: an edit may drop one
    /// part of a blob, and a later one the rest.
    own: Reached,
}

/// What is due of a record: entries older than the grace. No entry is younger than the record itself,
/// whatever the clock of who wrote it said.
pub(crate) async fn due(
    store: &Inner,
    cycle: &Cycle,
    target: &Target,
    current: &Current,
) -> Result<Option<Due>> {
    let (mut entries, mut young) = (Vec::new(), Vec::new());
    for entry in &current.record.retired {
        if cycle.is_old(store, entry.seconds.min(current.written.unwrap_or(u64::MAX))) {
            let reached = reach(store, &[entry.named], Absent::Skipped).await?;
            entries.push((*entry, reached));
        } else {
            young.push(entry.named);
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let mut own = match mutation::is(Mutation::B10Live) {
        true => Reached::new(),
        false => live(store, &current.record).await?,
    };
    own.extend(reach(store, &young, Absent::Skipped).await?);
    Ok(Some(Due { target: target.clone(), current: current.clone(), entries, own }))
}

impl Due {
    /// Whether it is of the record that has this key and this tag.
    pub(crate) fn is_of(&self, key: &str, current: &Current) -> bool {
        self.target.key == key && self.current.tag == current.tag
    }

    /// Whether it has an entry.
    pub(crate) fn has(&self, named: &Named) -> bool {
        self.entries.iter().any(|(entry, _)| entry.named == *named)
    }

    /// The blobs that may be deleted if nobody else names them.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = BlobId> + '_ {
        let all = self.entries.iter().flat_map(|(_, reached)| reached.keys().copied());
        all.filter(|id| !self.own.contains_key(id))
    }

    /// Deletes all that is due of a record that shares nothing: nobody else can name it.
    pub(crate) async fn delete(&self, store: &Inner) -> Result<Deleted> {
        let mut blobs = Reached::new();
        for (_, reached) in &self.entries {
            let free = reached.iter().filter(|(id, _)| !self.own.contains_key(id));
            free.for_each(|(_, place)| deepen(&mut blobs, place));
        }
        let deleted = delete_blobs(store, &blobs).await?;
        let out = self.entries.iter().map(|(entry, _)| entry.named).collect();
        self.take_out(store, &out, |id| blobs.contains_key(id)).await?;
        Ok(deleted)
    }

    /// Takes entries out of the record. If that changed since it was read, only those go of which all was
    /// deleted: a change may have dropped what it named then, and who cared for the rest may be itself.
    /// Where it changes all the time, a later cycle does it.
    async fn take_out(
        &self,
        store: &Inner,
        out: &BTreeSet<Named>,
        deleted: impl Fn(&BlobId) -> bool,
    ) -> Result<()> {
        let out = self.entries.iter().filter(|(entry, _)| out.contains(&entry.named));
        let mut out: Vec<&(Retired, Reached)> = out.collect();
        let mut current = self.current.clone();
        for _ in 0..OUTS {
            let mut record = Record::clone(&current.record);
            record.retired.retain(|entry| !out.iter().any(|(gone, _)| gone == entry));
            if record.retired.len() == current.record.retired.len() {
                return Ok(());
            }
            match store.write(&self.target, Some(&current), record, None).await? {
                Written::Lost(Some(now)) => current = now,
                Written::Done(_) | Written::Lost(None) => return Ok(()),
            }
            out.retain(|(_, reached)| reached.keys().all(&deleted));
        }
        Ok(())
    }
}

/// Adds a blob, as deep as it lies by any way.
fn deepen(blobs: &mut Reached, place: &Place) {
    let known = blobs.entry(place.blob.id).or_insert(*place);
    known.depth = known.depth.max(place.depth);
}

/// Which candidates must stay.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Those that a record names.
    pub(crate) named: BTreeSet<BlobId>,
    /// Those that an intent announces.
    pub(crate) announced: BTreeSet<BlobId>,
    /// Those that an entry of another record stands for which is not due: readers of that may need
    /// them.
    pub(crate) young: BTreeSet<BlobId>,
}

impl Kept {
    /// Whether nothing names a candidate.
    pub(crate) fn is_free(&self, id: &BlobId) -> bool {
        !self.named.contains(id) && !self.announced.contains(id) && !self.young.contains(id)
    }

    /// Whether a record that names a candidate, or retired it later, sees to it.
    fn is_cared_for(&self, id: &BlobId) -> bool {
        self.named.contains(id) || self.young.contains(id)
    }
}

/// Deletes what is due of records that share, all together: what leads from one record's entry to
/// blobs may be an entry of another.
pub(crate) async fn delete_shared(store: &Inner, dues: &[Due], kept: &Kept) -> Result<Deleted> {
    let mut outs = Vec::with_capacity(dues.len());
    // What leads from an entry that stays to other blobs.
    let mut leading = BTreeSet::new();
    for due in dues {
        let own = |id: &BlobId| due.own.contains_key(id);
        let settled = |id: &BlobId| kept.is_free(id) || own(id) || kept.is_cared_for(id);
        let (out, staying): (Vec<_>, Vec<_>) =
            due.entries.iter().partition(|(_, reached)| reached.keys().all(settled));
        let above = staying.iter().flat_map(|(_, reached)| reached.values());
        leading.extend(above.filter(|place| !place.leaf).map(|place| place.blob.id));
        outs.push(out.iter().map(|(entry, _)| entry.named).collect::<BTreeSet<Named>>());
    }
    let mut blobs = Reached::new();
    for due in dues {
        for place in due.entries.iter().flat_map(|(_, reached)| reached.values()) {
            let id = &place.blob.id;
            if kept.is_free(id) && !leading.contains(id) && !due.own.contains_key(id) {
                deepen(&mut blobs, place);
            }
        }
    }
    let deleted = delete_blobs(store, &blobs).await?;
    let gone = |id: &BlobId| blobs.contains_key(id);
    together(dues.iter().zip(&outs), SWEPT, |(due, out)| due.take_out(store, out, gone)).await?;
    Ok(deleted)
}
