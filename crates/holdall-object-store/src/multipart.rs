//! Objects put in parts.
//!
//! Owns: [`Upload`], [`Uploads`]. A part is written into segments of its own when it comes, before
//! any transaction: an upload that is given up, or that a crash ends, leaves nothing behind.
//! Completion makes the parts objects, joins their segments and removes the parts, in one
//! transaction.

use crate::attributes::to_stored;
use crate::error;
use crate::store::HoldallObjectStore;
use crate::write::result;
use async_trait::async_trait;
use holdall::{Key, StagedObject, Target};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    Attributes, MultipartId, MultipartUpload, PutMultipartOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts that have come, by their place.
type Parts = Arc<Mutex<BTreeMap<usize, StagedObject>>>;

/// Uploads that are known by an id. They end with the process.
#[derive(Debug, Default)]
pub struct Uploads {
    open: Mutex<HashMap<MultipartId, (Path, Attributes, Parts)>>,
    next: AtomicU64,
}

/// Writes a part's bytes. Blocks.
fn stage(own: &HoldallObjectStore, payload: &PutPayload) -> Result<StagedObject> {
    let options = holdall::PutOptions {
        expected_size: u64::try_from(payload.content_length()).ok(),
        ..holdall::PutOptions::default()
    };
    let written = own.store.stage(Target::New, options).and_then(|mut staged| {
        payload.iter().try_for_each(|chunk| staged.push(chunk))?;
        Ok(staged)
    });
    written.map_err(|e| error::convert("a part", e))
}

/// Makes an object of parts. Durable when it returns. Cost: one commit, whatever their size.
fn join(
    own: &HoldallObjectStore,
    location: &Path,
    attributes: &Attributes,
    parts: Vec<StagedObject>,
) -> Result<PutResult> {
    let attributes = to_stored(attributes)?;
    let joined = own.store.write(|tx| {
        let mut oids = Vec::with_capacity(parts.len());
        for part in parts {
            oids.push(part.finish(tx)?);
        }
        let keys: Vec<Key<'_>> = oids.iter().map(|oid| Key::from(*oid)).collect();
        let mut objects = tx.collection(&own.collection)?;
        let oid = objects.concat(&keys, Target::from(location.as_ref()))?;
        drop(objects);
        tx.set_attributes(oid, &attributes)?;
        for part in oids {
            tx.remove(part)?;
        }
        result(tx, oid)
    });
    joined.map_err(|e| error::convert(location.as_ref(), e))
}

/// An upload whose parts come in order of their calls.
#[derive(Debug)]
pub struct Upload {
    own: HoldallObjectStore,
    location: Path,
    attributes: Attributes,
    parts: Parts,
    /// Parts asked for.
    count: usize,
}

impl Upload {
    /// Begins an upload. Tags are not kept.
    pub fn new(own: HoldallObjectStore, location: Path, options: PutMultipartOptions) -> Self {
        let attributes = options.attributes;
        Self { own, location, attributes, parts: Parts::default(), count: 0 }
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (own, parts, at) = (self.own.clone(), self.parts.clone(), self.count);
        self.count += 1;
        Box::pin(async move {
            let staged = own.run(move |own| stage(own, &data)).await?;
            parts.lock().insert(at, staged);
            Ok(())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let parts = std::mem::take(&mut *self.parts.lock());
        if parts.len() != self.count {
            let text = format!("{} of {} parts have come", parts.len(), self.count);
            return Err(error::message(text));
        }
        let (location, attributes) = (self.location.clone(), self.attributes.clone());
        let parts = parts.into_values().collect();
        self.own.run(move |own| join(own, &location, &attributes, parts)).await
    }

    async fn abort(&mut self) -> Result<()> {
        let parts = std::mem::take(&mut *self.parts.lock());
        // Their space is given back.
        let work = move |_: &HoldallObjectStore| {
            drop(parts);
            Ok(())
        };
        self.own.run(work).await
    }
}

impl HoldallObjectStore {
    fn parts(&self, path: &Path, id: &MultipartId) -> Result<Parts> {
        let open = self.uploads.open.lock();
        let found = open.get(id).filter(|(location, _, _)| location == path);
        let none = || error::message(format!("there is no upload {id} of {path}"));
        found.map(|(_, _, parts)| parts.clone()).ok_or_else(none)
    }
}

#[async_trait]
impl MultipartStore for HoldallObjectStore {
    async fn create_multipart(&self, path: &Path) -> Result<MultipartId> {
        self.create_multipart_opts(path, PutMultipartOptions::default()).await
    }

    async fn create_multipart_opts(
        &self,
        path: &Path,
        opts: PutMultipartOptions,
    ) -> Result<MultipartId> {
        let id = self.uploads.next.fetch_add(1, Ordering::Relaxed).to_string();
        let upload = (path.clone(), opts.attributes, Parts::default());
        self.uploads.open.lock().insert(id.clone(), upload);
        Ok(id)
    }

    async fn put_part(
        &self,
        path: &Path,
        id: &MultipartId,
        part_idx: usize,
        data: PutPayload,
    ) -> Result<PartId> {
        let parts = self.parts(path, id)?;
        let staged = self.run(move |own| stage(own, &data)).await?;
        parts.lock().insert(part_idx, staged);
        Ok(PartId { content_id: part_idx.to_string() })
    }

    async fn complete_multipart(
        &self,
        path: &Path,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> Result<PutResult> {
        let staged = self.parts(path, id)?;
        let mut chosen = Vec::with_capacity(parts.len());
        {
            let mut staged = staged.lock();
            let place = |part: &PartId| part.content_id.parse::<usize>().ok();
            let places: Option<Vec<usize>> = parts.iter().map(place).collect();
            let known = places.filter(|all| all.iter().all(|at| staged.contains_key(at)));
            let known = known.ok_or_else(|| error::message("a part has not come"))?;
            chosen.extend(known.iter().filter_map(|at| staged.remove(at)));
        }
        if chosen.len() != parts.len() {
            return Err(error::message("a part is named twice"));
        }
        let upload = self.uploads.open.lock().remove(id);
        let attributes = upload.map(|(_, attributes, _)| attributes).unwrap_or_default();
        let path = path.clone();
        self.run(move |own| join(own, &path, &attributes, chosen)).await
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Result<()> {
        self.parts(path, id)?;
        let upload = self.uploads.open.lock().remove(id);
        let work = move |_: &Self| {
            drop(upload);
            Ok(())
        };
        self.run(work).await
    }
}
