//! Copies of objects and of parts of them, in a transaction.

use super::ObjectsMut;
use crate::engine::key::Key;
use crate::object::{Attributes, Data, Resized, Shares};
use crate::write::PutOptions;
use crate::write::writer::Target;
use holdall_core::{Oid, Result};
use std::ops::Range;

impl ObjectsMut {
    /// Copies an object, attributes and all, into `to`: a new object, or in place of the one
    /// that has the name. The two share their segments, and an edit of one never shows in
    /// the other; space is freed with the last reference. Returns the copy's OID.
    ///
    /// Cost: in proportion to the number of segments, not of bytes; small objects are copied.
    ///
    /// # Errors
    /// [`Error::NotFound`](holdall_core::Error::NotFound),
    /// [`Error::Dangling`](holdall_core::Error::Dangling),
    /// [`Error::TooLarge`](holdall_core::Error::TooLarge) for an object of that many segments
    /// that noting their references would change more pages than
    /// [`Tuning::dirty_pages`](crate::Tuning::dirty_pages).
    ///
    /// ```
    /// # use holdall::{Store, Target};
    /// # fn main() -> holdall::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("holdall-copy-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let store = Store::open_or_create(dir.join("s.holdall"))?;
    /// store.write(|tx| {
    ///     tx.put("draft", &[7; 1_000_000])?;
    ///     tx.copy("draft", "final")?;
    ///     tx.insert("final", 0, b"signed: ")
    /// })?;
    /// let reader = store.read()?;
    /// assert_eq!(reader.metadata("draft")?.size, 1_000_000);
    /// assert_eq!(reader.metadata("final")?.size, 1_000_008);
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy<'k>(&mut self, from: impl Into<Key<'k>>, to: impl Into<Target>) -> Result<Oid> {
        let to = to.into();
        let from = self.resolve(&from.into())?;
        let options =
            PutOptions { attributes: self.metadata(from)?.attributes, ..PutOptions::default() };
        let (size, sum) = (self.object_size(from)?, self.known_sum(from));
        let head = self.head_for(&to, &options.attributes)?;
        let shares = self.with_object(from, |objects, _| objects.share(from, 0..size))?;
        if shares.slices.is_empty() {
            let mut writer = self.writer(to, options)?;
            writer.push(&shares.head)?;
            writer.push(&shares.tail)?;
            let oid = writer.finish()?;
            self.note_sum(oid, sum);
            return Ok(oid);
        }
        let result = self.install(&head, Data::Shared(shares), size, None, None);
        let oid = self.fail_with(result)?;
        self.note_sum(oid, sum);
        Ok(oid)
    }

    /// Inserts the bytes `range` of object `from` into object `to` before byte `at`; the two
    /// may be one. Segments are shared as by [`ObjectsMut::copy`]; what is copied is less than T
    /// pages at either end. Returns the new size of `to`.
    ///
    /// # Errors
    /// As [`ObjectsMut::copy`]; [`Error::Range`](holdall_core::Error::Range) if the range or
    /// `at` is not inside its object.
    pub fn copy_range<'f, 't>(
        &mut self,
        from: impl Into<Key<'f>>,
        range: Range<u64>,
        to: impl Into<Key<'t>>,
        at: u64,
    ) -> Result<u64> {
        let (from, to) = (from.into(), to.into());
        let (source, target) = (self.resolve(&from)?, self.resolve(&to)?);
        let (size, into) = (self.object_size(source)?, self.object_size(target)?);
        // Before the transaction is touched: a bad range must not spoil it.
        crate::write::edit::check_range(&from, &range, size)?;
        crate::write::edit::check_range(&to, &(at..at), into)?;
        self.check_sum(source)?;
        self.check_sum(target)?;
        let shares = self.with_object(source, |objects, _| objects.share(source, range))?;
        self.put_shares(target, at, shares)
    }

    /// Makes `to` the objects `parts` one behind the other, without attributes; `to` may be
    /// one of them. Segments are shared as by [`ObjectsMut::copy`]. Returns its OID.
    ///
    /// # Errors
    /// As [`ObjectsMut::copy`].
    pub fn concat(&mut self, parts: &[Key<'_>], to: impl Into<Target>) -> Result<Oid> {
        let to = to.into();
        // Whatever may be wrong with the call is found before the transaction is touched.
        self.head_for(&to, &Attributes::new())?;
        let mut oids = Vec::with_capacity(parts.len());
        for part in parts {
            let oid = self.resolve(part)?;
            oids.push((oid, self.object_size(oid)?));
            self.check_sum(oid)?;
        }
        let result = self.join(&oids, to);
        self.fail_with(result)
    }

    fn join(&mut self, parts: &[(Oid, u64)], to: Target) -> Result<Oid> {
        // All references are taken before the target, which may be a part, is emptied.
        let mut all = Vec::with_capacity(parts.len());
        for (oid, size) in parts {
            all.push(self.with_object(*oid, |objects, _| objects.share(*oid, 0..*size))?);
        }
        let oid = self.writer(to, PutOptions::default())?.finish()?;
        let mut end = 0;
        for shares in all {
            end = self.put_shares(oid, end, shares)?;
        }
        Ok(oid)
    }

    fn put_shares(&mut self, oid: Oid, at: u64, shares: Shares) -> Result<u64> {
        let result = self.with_object(oid, |objects, c| {
            let Resized { before, after } = objects.splice_shares(oid, at, shares)?;
            c.resize(before, after);
            Ok(after)
        });
        let after = self.fail_with(result)?;
        self.note_sum(oid, None);
        Ok(after)
    }
}
