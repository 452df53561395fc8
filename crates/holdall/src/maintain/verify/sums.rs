//! Holding objects against the sums that [`Options::debug_sums`](crate::Options::debug_sums) keeps.
//!
//! Owns: no state; [`Compare`] is the walk's. It reports bytes that are not those of the object's
//! version, though every checksum is right, and of a version that is older than the newest one
//! noted.
//!
//! The second is reported only for versions of the store's present epoch, made by commits that the
//! snapshot sees: no crash has come since, so no commit among them may be gone.

use super::report::ProblemKind;
use super::walk_state::{Compare, Walk, damage};
use crate::engine::Inner;
use crate::object::{Body, Record};
use crate::segment_tree::TreeRead;
use crate::txn::Snapshot;
use holdall_core::checksum::{Sum, Summing};
use holdall_core::segment_tree::{self, Descriptor};
use holdall_core::version::Change;
use holdall_core::{Result, Version};

/// Bytes of an object read at once.
const BYTES_PER_READ: u64 = 1 << 20;

impl<'a> Compare<'a> {
    /// With the sums of the store, if it was opened with them.
    pub(super) fn new(inner: &'a Inner, snapshot: &Snapshot) -> Option<Self> {
        let sums = inner.sums.as_deref()?;
        Some(Self { sums, epoch: inner.epoch, seen: snapshot.lsn(), compared: 0 })
    }
}

impl Walk<'_> {
    /// Holds an object against its sum; `what` names it.
    ///
    /// # Errors
    /// Anything but damage, which the walk of the object reports.
    pub(super) fn compare(&mut self, record: &Record<'_>, what: &dyn Fn() -> String) -> Result<()> {
        let Some(Compare { sums, epoch, seen, .. }) = &self.sums else { return Ok(()) };
        let (oid, own) = (record.oid, record.change);
        let newest = sums.newest(oid, *epoch, *seen).filter(|newest| is_newer(*newest, own));
        let expected = sums.get(oid, own);
        let own = Version::new(oid, own);
        if let Some(newest) = newest {
            let newest = Version::new(oid, newest);
            let detail = format!("is of version {own}, but version {newest} was committed");
            self.found.add(ProblemKind::Object, what(), detail);
        }
        let Some(expected) = expected else { return Ok(()) };
        let found = match self.sum(record, expected.len) {
            Ok(found) => found,
            Err(e) => return damage(e).map(drop),
        };
        if let Some(sums) = &mut self.sums {
            sums.compared += 1;
        }
        let found = match found {
            VersionSum::Sum(found) if found == expected => return Ok(()),
            VersionSum::Sum(found) => found.to_string(),
            VersionSum::Size(size) => format!("{size} bytes"),
        };
        let detail = format!("version {own} has {found}, but {expected} were put");
        self.found.add(ProblemKind::Object, what(), detail);
        Ok(())
    }

    /// The sum of the object's bytes, which are not read unless there are `len` of them.
    fn sum(&mut self, record: &Record<'_>, len: u64) -> Result<VersionSum> {
        let d = match record.body {
            Body::Small(bytes) => return Ok(VersionSum::Sum(Sum::compute(bytes))),
            Body::Large(bytes) => Descriptor::decode(bytes)?,
        };
        if d.size() != len {
            return Ok(VersionSum::Size(d.size()));
        }
        let (mut at, mut summing) = (0, Summing::new());
        let mut buffer = vec![0; len.min(BYTES_PER_READ) as usize];
        while at < len {
            let piece = &mut buffer[..(len - at).min(BYTES_PER_READ) as usize];
            segment_tree::read_at(&TreeRead(self.pages), &d, at, piece)?;
            summing.update(piece);
            at += piece.len() as u64;
        }
        Ok(VersionSum::Sum(summing.sum()))
    }
}

/// What an object has.
enum VersionSum {
    Sum(Sum),
    /// Another number of bytes than it should.
    Size(u64),
}

/// Whether `change` came after `other`, of the same object.
fn is_newer(change: Change, other: Change) -> bool {
    (change.epoch, change.count) > (other.epoch, other.count)
}
