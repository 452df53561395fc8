//! Edits of an object's bytes under a condition: what the verbs of the extension, and an append
//! by offset, come to.
//!
//! Owns: [`Edit`].

use crate::http::body::Chunks;
use crate::http::digest::{Announced, Digests};
use crate::objects::catalog::Bucket;
use crate::objects::condition::ETagCondition;
use crate::objects::meta::{describes_bytes, etag_of};
use crate::objects::{condition, side};
use crate::refusal::{Result, Why};
use bytes::Bytes;
use holdall::{Oid, PutOptions, Target, Version, WriteTx};
use std::ops::Range;

/// What must hold of the object beforehand.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// If-Match.
    pub matches: Option<ETagCondition>,
    /// If-None-Match.
    pub matches_not: Option<ETagCondition>,
    /// Its size.
    pub size: Option<u64>,
    /// Its version, if other conditions were held against that.
    pub version: Option<Version>,
}

/// An object to be edited.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Its bucket.
    pub bucket: Bucket,
    /// Its key.
    pub key: String,
    /// What must hold of it.
    pub condition: Condition,
    /// Whether it is made, empty, if it is missing.
    pub create: bool,
}

/// What an edit came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new ETag without quotes.
    pub etag: String,
    /// The new size in bytes.
    pub size: u64,
}

/// Bytes of another object, to be put together.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its bucket, of the same store.
    pub bucket: String,
    /// Its key.
    pub key: String,
    /// The bytes; all of them if it is not said.
    pub range: Option<Range<u64>>,
    /// The ETag it must have.
    pub etag: Option<String>,
}

impl Edit {
    /// Replaces the bytes `range` by `bytes`. Durable when it returns. Cost: one commit, whatever
    /// the object's size.
    ///
    /// # Errors
    /// NoObject, Unmet, Outside, those of the engine.
    pub fn splice(&self, range: Range<u64>, bytes: &Bytes) -> Result<Edited> {
        self.commit(|tx, oid| tx.splice(oid, range, bytes).map(drop))
    }

    /// As [`Edit::splice`], with bytes as they come. Nothing is locked until the last one is
    /// there: they are put as an object of their own, whose segments the edited one takes over.
    ///
    /// # Errors
    /// As [`Edit::splice`], and those of the body.
    pub fn splice_stream(
        &self,
        range: Range<u64>,
        chunks: &mut Chunks,
        len: Option<u64>,
        announced: &Announced,
    ) -> Result<Edited> {
        let mut digests = Digests::for_body(announced)?;
        self.bucket.served.write(|tx| {
            let mut collection = tx.collection(&self.bucket.name)?;
            let mut writer = collection.writer(Target::New, PutOptions::default())?;
            while let Some(bytes) = chunks.next()? {
                digests.update(&bytes);
                writer.push(&bytes)?;
            }
            check_len(len, writer.len())?;
            std::mem::take(&mut digests).finish(announced)?;
            self.bucket.check_writer(&mut writer)?;
            let len = writer.len();
            let staged = writer.finish()?;
            drop(collection);
            self.apply(tx, |tx, oid| {
                tx.copy_range(staged, 0..len, oid, range.end)?;
                tx.delete_range(oid, range.clone())?;
                tx.remove(staged).map(drop)
            })
        })
    }

    /// Makes the object the bytes of `sources`, one behind the other; they share their segments
    /// with it. Durable when it returns.
    ///
    /// # Errors
    /// As [`Edit::splice`].
    pub fn concat(&self, sources: &[Source]) -> Result<Edited> {
        self.commit(|tx, oid| {
            // Behind what is there, which goes last: it may be a source.
            let old = tx.metadata(oid)?.size;
            let mut end = old;
            for source in sources {
                let from = source.find(tx)?;
                let size = if from == oid { old } else { tx.metadata(from)?.size };
                let Range { start, end: last } = source.range.clone().unwrap_or(0..size);
                if start > last || last > size {
                    return Err(Why::Outside
                        .says(format!(
                            "bytes {start} to {last} do not lie inside the {size} of {}",
                            source.key
                        ))
                        .into());
                }
                end = tx.copy_range(from, start..last, oid, end)?;
            }
            tx.delete_range(oid, 0..old).map(drop)
        })
    }

    fn commit(
        &self,
        change: impl FnOnce(&mut WriteTx, Oid) -> holdall::Result<()>,
    ) -> Result<Edited> {
        self.bucket.served.write(|tx| self.apply(tx, change))
    }

    /// Changes the object, which must meet the condition, and notes the time.
    fn apply(
        &self,
        tx: &mut WriteTx,
        change: impl FnOnce(&mut WriteTx, Oid) -> holdall::Result<()>,
    ) -> holdall::Result<Edited> {
        let oid = self.find(tx)?;
        change(tx, oid)?;
        let mut meta = side::meta_in(tx, oid)?;
        // The engine keeps the time of this change.
        meta.modified = None;
        // Of objects put by an earlier server.
        meta.about.user.retain(|name, _| !describes_bytes(name));
        side::set_meta(tx, oid, &meta, self.bucket.served.attribute_bytes)?;
        let now = tx.metadata(oid)?;
        Ok(Edited { etag: etag_of(&now), size: now.size })
    }

    /// The object, which meets the condition.
    fn find(&self, tx: &mut WriteTx) -> holdall::Result<Oid> {
        let mut objects = self.bucket.objects(tx)?;
        let Some(oid) = objects.lookup(&self.key)? else {
            if self.create && self.condition.matches.is_none() {
                return objects.put(&self.key, &[]);
            }
            return Err(Why::NoObject.says(format!("there is no object {}", self.key)).into());
        };
        let found = objects.metadata(oid)?;
        let etag = etag_of(&found);
        let Condition { matches, matches_not, size, version } = &self.condition;
        let met = matches.as_ref().is_none_or(|wanted| condition::matches(wanted, &etag))
            && !matches_not.as_ref().is_some_and(|not| condition::matches_weakly(not, &etag))
            && version.is_none_or(|version| version == found.version);
        if !met {
            let text = Why::Unmet.says(format!("the object has the ETag {etag}"));
            return Err(text.into());
        }
        match size {
            Some(wanted) if *wanted != found.size => {
                let text = format!("the object has {} bytes; append there", found.size);
                Err(Why::Offset.says(text).into())
            }
            _ => Ok(oid),
        }
    }
}

/// Refuses a body of another length than was announced.
///
/// # Errors
/// [`Why::CutOff`].
pub fn check_len(announced: Option<u64>, got: u64) -> Result<()> {
    match announced {
        Some(len) if len != got => {
            Err(Why::CutOff.says(format!("{got} bytes came, {len} were announced")))
        }
        _ => Ok(()),
    }
}

impl Source {
    fn find(&self, tx: &mut WriteTx) -> holdall::Result<Oid> {
        let mut objects = tx.collection(&self.bucket)?;
        let missing = || Why::NoObject.says(format!("there is no object {}", self.key));
        let oid = objects.lookup(&self.key)?.ok_or_else(missing)?;
        let etag = etag_of(&objects.metadata(oid)?);
        if self.etag.as_ref().is_some_and(|wanted| *wanted != etag) {
            let text = Why::Unmet.says(format!("{} has the ETag {etag}", self.key));
            return Err(text.into());
        }
        Ok(oid)
    }
}

/// Copies the bytes of an object of another store. Blocks.
///
/// # Errors
/// Those of both stores.
pub fn copy_bytes(
    tx: &mut WriteTx,
    bucket: &Bucket,
    mut from: impl std::io::Read,
    size: u64,
    to: Target,
) -> holdall::Result<Oid> {
    let mut objects = tx.collection(&bucket.name)?;
    let options = PutOptions { expected_size: Some(size), ..PutOptions::default() };
    let mut writer = objects.writer(to, options)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = from.read(&mut buffer).map_err(|e| holdall::Error::Io {
            action: "read the object to be copied".into(),
            source: e,
        })?;
        if n == 0 {
            bucket.check_writer(&mut writer)?;
            return writer.finish();
        }
        writer.push(&buffer[..n])?;
    }
}
