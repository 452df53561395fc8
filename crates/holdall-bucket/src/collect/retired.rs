//! Retired blobs: those of a record that shares nothing are deleted as soon as they are old; of one
//! that shares, they are candidates only.

use super::cycle::Cycle;
use super::reach::{Absent, Reached, live, reach};
use super::{Collected, delete_blobs};
use crate::format::{BlobId, Named, Record, Retired};
use crate::store::{Current, Inner, Target, Written};
use holdall::Result;
use std::collections::BTreeSet;

/// Entries of a record that are due, and the blobs that they stand for.
#[derive(Debug)]
pub(crate) struct Due {
    target: Target,
    /// The record that they were found in.
    current: Current,
    entries: Vec<(Retired, Reached)>,
    /// Blobs that the record's own tree names.
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
    let mut entries = Vec::new();
    for entry in &current.record.retired {
        if cycle.is_old(store, entry.seconds.min(current.seconds)) {
            let reached = reach(store, &[entry.named], Absent::Skipped).await?;
            entries.push((*entry, reached));
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let own = live(store, &current.record).await?;
    Ok(Some(Due { target: target.clone(), current: current.clone(), entries, own }))
}

/// Which blobs.
type Which<'w> = &'w (dyn Fn(&BlobId) -> bool + Sync);

impl Due {
    /// The blobs that may be deleted if nobody else names them.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = BlobId> + '_ {
        let all = self.entries.iter().flat_map(|(_, reached)| reached.keys().copied());
        all.filter(|id| !self.own.contains_key(id))
    }

    /// Deletes the candidates that `kept` has not, and takes the entries out that stand for nothing
    /// any more: all that they stand for is deleted, named by the record, or in `others`' care.
    pub(crate) async fn delete(
        &self,
        store: &Inner,
        kept: Which<'_>,
        cared: Which<'_>,
        report: &mut Collected,
    ) -> Result<()> {
        let mut blobs = Reached::new();
        for (_, reached) in &self.entries {
            let free = reached.iter().filter(|(id, _)| !self.own.contains_key(id) && !kept(id));
            blobs.extend(free.map(|(id, blob)| (*id, *blob)));
        }
        delete_blobs(store, &blobs, report).await?;
        let over = |reached: &Reached| {
            reached.keys().all(|id| blobs.contains_key(id) || self.own.contains_key(id) || cared(id))
        };
        let out: BTreeSet<Named> =
            self.entries.iter().filter(|(_, r)| over(r)).map(|(entry, _)| entry.named).collect();
        self.take_out(store, &out).await
    }

    /// Takes entries out of the record, unless it changed since it was read: then a later cycle does.
    /// A change may have dropped what the record named when it was looked at.
    async fn take_out(&self, store: &Inner, out: &BTreeSet<Named>) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let mut record = Record::clone(&self.current.record);
        record.retired.retain(|entry| !out.contains(&entry.named));
        match store.write(&self.target, Some(&self.current), record, None).await? {
            Written::Done(_) | Written::Lost(_) => Ok(()),
        }
    }
}
