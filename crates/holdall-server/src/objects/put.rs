//! Objects put, or edited, by a body that comes in.
//!
//! Owns: [`Objects`], which all doors share; [`Goal`], [`Incoming`].

use crate::config::Limits;
use crate::http::body::{self, Chunks, SMALL};
use crate::http::digest::{Announced, Digested, Digests, Sums};
use crate::http::slots::Slots;
use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::edit::{Edit, Edited, check_len};
use crate::objects::meta::{Meta, OfBytes};
use crate::objects::side;
use crate::refusal::{Result, Why};
use holdall::{Oid, PutMode, PutOptions, Target, WriteTx};
use s3s::dto::StreamingBlob;
use std::ops::Range;
use std::sync::Arc;

/// What is served, within its limits. Clones share all.
#[derive(Debug, Clone)]
pub struct Objects {
    /// The stores.
    pub catalog: Arc<Catalog>,
    /// Limits.
    pub limits: Limits,
    /// Long bodies that may come in at a time.
    streams: Slots,
}

/// A body to be put somewhere, with what the client announced of it.
#[derive(Debug)]
pub struct Incoming {
    /// The bytes.
    pub body: StreamingBlob,
    /// How many, if the client says so.
    pub len: Option<u64>,
    /// Digests.
    pub announced: Announced,
}

/// Where a body goes: the object, what is kept of it, on which condition.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The store, and the collection.
    pub bucket: Bucket,
    /// The name.
    pub key: String,
    /// The condition.
    pub mode: PutMode,
    /// What is kept of it. The digests are added.
    pub meta: Meta,
    /// Bucket and id of the unfinished upload that it is a part of.
    pub part_of: Option<(String, String)>,
    /// Whether the properties of the object that was there, not those of its bytes, are kept.
    pub keeps: bool,
}

/// What a put came to.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The ETag without quotes.
    pub etag: String,
    /// Checksums that were asked for.
    pub sums: Sums,
}

impl Goal {
    fn finished(&self, digested: Digested) -> Meta {
        let Digested { md5, sums } = digested;
        let of_bytes = OfBytes { etag: md5, sums, ..OfBytes::default() };
        Meta { of_bytes: Some(of_bytes), ..self.meta.clone() }
    }

    /// Takes over the properties of the object that is there, if the put sets none.
    fn keep(&self, tx: &mut WriteTx, meta: &mut Meta) -> holdall::Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let Some(oid) = tx.collection(&self.bucket.name)?.lookup(&self.key)? else { return Ok(()) };
        let old = side::meta_in(tx, oid)?.about;
        meta.about = old.after_put(self.meta.about.clone());
        Ok(())
    }

    /// Refuses a part whose upload was ended while it came.
    fn check_upload(&self, tx: &mut WriteTx) -> holdall::Result<()> {
        let Some((bucket, id)) = &self.part_of else { return Ok(()) };
        let gone = || Why::NoUpload.says("the upload was ended meanwhile");
        side::upload_in(tx, bucket, id)?.ok_or_else(gone)?;
        Ok(())
    }

    /// Puts bytes at hand. Blocks for a commit.
    fn put_whole(&self, bytes: &[u8], announced: &Announced) -> Result<Stored> {
        let mut meta = self.finished(announced.check(bytes)?);
        self.bucket.served.write(|tx| {
            self.check_upload(tx)?;
            self.keep(tx, &mut meta)?;
            let (attributes, side) = meta.attributes(self.bucket.served.attribute_bytes);
            let options = PutOptions { mode: self.mode, attributes, ..PutOptions::default() };
            let oid = self.bucket.objects(tx)?.put_with(&self.key, bytes, &options)?;
            side::set(tx, oid, side.as_deref())
        })?;
        Ok(stored(meta))
    }

    /// Puts bytes as they come. Nothing is locked until the last one is there. Blocks.
    fn put_stream(
        &self,
        chunks: &mut Chunks,
        len: Option<u64>,
        announced: &Announced,
    ) -> Result<Stored> {
        let mut digests = Digests::for_body(announced)?;
        let options = PutOptions { mode: self.mode, expected_size: len, ..PutOptions::default() };
        let store = &self.bucket.served.store;
        let mut staged = store.stage(Target::from(&self.key), options)?;
        while let Some(bytes) = chunks.next()? {
            digests.update(&bytes);
            staged.push(&bytes)?;
        }
        check_len(len, staged.len())?;
        let mut meta = self.finished(digests.finish(announced)?);
        let put = |tx: &mut WriteTx| {
            self.check_upload(tx)?;
            // Before the new bytes take the attributes of the old ones away.
            self.keep(tx, &mut meta)?;
            let mut objects = self.bucket.objects(tx)?;
            let oid: Oid = staged.finish(&mut objects)?;
            drop(objects);
            side::set_meta(tx, oid, &meta, self.bucket.served.attribute_bytes)
        };
        self.bucket.served.write(put)?;
        Ok(stored(meta))
    }
}

fn stored(meta: Meta) -> Stored {
    let OfBytes { etag, sums, .. } = meta.of_bytes.unwrap_or_default();
    Stored { etag, sums }
}

impl Objects {
    /// Serves a catalog.
    pub fn new(catalog: Arc<Catalog>, limits: Limits) -> Self {
        let streams = Slots::new(limits.streams);
        Self { catalog, limits, streams }
    }

    /// Brings a body to its goal.
    ///
    /// # Errors
    /// Those of the body, of its digests, of the condition, of the engine.
    pub async fn store(&self, goal: Goal, incoming: Incoming) -> Result<Stored> {
        let Incoming { body, len, announced } = incoming;
        let (most, idle) = (self.limits.body_bytes, self.limits.idle());
        if len.is_some_and(|len| len > most) {
            return Err(
                Why::TooLong.says(format!("an object put at once has at most {most} bytes"))
            );
        }
        if len.is_some_and(|len| len <= SMALL) {
            let bytes = body::collect(body, SMALL, idle).await?;
            check_len(len, bytes.len() as u64)?;
            return body::blocking(move || goal.put_whole(&bytes, &announced)).await;
        }
        // Each takes memory and a thread for as long as its client sends.
        let slot = self.streams.take().await;
        let work = move |mut chunks: Chunks| goal.put_stream(&mut chunks, len, &announced);
        body::pump(body, &slot, (most, idle), work).await
    }

    /// Replaces a range of an object by a body.
    ///
    /// # Errors
    /// Those of the body, of its digests, of the condition, of the engine.
    pub async fn edit(&self, edit: Edit, range: Range<u64>, incoming: Incoming) -> Result<Edited> {
        let Incoming { body, len, announced } = incoming;
        let (most, idle) = (self.limits.body_bytes, self.limits.idle());
        if len.is_some_and(|len| len <= SMALL) {
            let bytes = body::collect(body, SMALL, idle).await?;
            check_len(len, bytes.len() as u64)?;
            return body::blocking(move || {
                announced.check(&bytes)?;
                edit.splice(range, &bytes)
            })
            .await;
        }
        let slot = self.streams.take().await;
        let work =
            move |mut chunks: Chunks| edit.splice_stream(range, &mut chunks, len, &announced);
        body::pump(body, &slot, (most, idle), work).await
    }
}
