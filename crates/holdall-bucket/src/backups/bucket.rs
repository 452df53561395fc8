//! A place in a bucket, and what is asked of it.
//!
//! Owns: [`Bucket`]. All calls wait; the requests run on threads of the place.

use super::place::{self, BACKUPS, FIRST, First, VERSION};
use crate::access::Access;
use crate::format::keys::HEAD;
use crate::refusal::{names_bucket, refused};
use bytes::Bytes;
use futures::TryStreamExt;
use holdall::{BackupId, Error, Result};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use std::sync::{Arc, Mutex};
use tokio::runtime::{Builder, Runtime};

/// Threads that speak to the server.
const THREADS: usize = 2;

/// A place of backups: a prefix in a bucket, or a directory.
#[derive(Debug)]
pub struct Bucket {
    name: String,
    pub(crate) client: Client,
    /// Increments that were begun and not listed: the store need not remember their marks.
    pub(crate) given_up: Mutex<Vec<BackupId>>,
    /// `None` once it is dropped.
    runtime: Option<Runtime>,
}

/// What its threads use.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// What the place was opened as.
    place: String,
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Bucket {
    /// The place `s3://BUCKET/PREFIX` or `file:///DIRECTORY`. Nothing is asked of it yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is none, or what `access` names is not understood.
    pub fn open(place: &str, access: &Access) -> Result<Self> {
        let (store, prefix) = place::open(place, access)?;
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime =
            runtime.map_err(|e| Error::Io { action: "starting threads".into(), source: e })?;
        let client = Client { place: place.to_owned(), store, prefix };
        Ok(Self {
            name: place.to_owned(),
            client,
            given_up: Mutex::default(),
            runtime: Some(runtime),
        })
    }

    /// What it was opened as.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| Error::Invalid("the place was closed".into()))
    }

    /// Waits for `work`.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime()?.block_on(work)
    }

    /// Has `work` done meanwhile.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Job<T>> {
        Ok(Job(self.runtime()?.spawn(work)))
    }

    /// Waits for what was started.
    pub(crate) fn join<T>(&self, mut job: Job<T>) -> Result<T> {
        let ended = |e: tokio::task::JoinError| Error::Invalid(format!("a request ended: {e}"));
        self.runtime()?.block_on(&mut job.0).map_err(ended)?
    }

    /// Whether the place holds backups already, and of which store.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is used for something else; [`Error::Unsupported`]; those of asking.
    pub(crate) fn first(&self) -> Result<Option<First>> {
        let Some(bytes) = self.wait(self.client.get_if(FIRST))? else {
            return match self.wait(self.client.get_if(HEAD))? {
                None => Ok(None),
                Some(_) => Err(Error::Invalid(format!(
                    "{} holds a store of objects, no backups; name another prefix",
                    self.name
                ))),
            };
        };
        let other = |what: String| Error::Invalid(format!("{} {what}", self.name));
        let first: First = serde_json::from_slice(&bytes)
            .map_err(|e| other(format!("holds no backups: its {FIRST} is not understood: {e}")))?;
        if first.holds != BACKUPS {
            return Err(other(format!("holds a {}, no backups; name another prefix", first.holds)));
        }
        if first.version != VERSION {
            let detail = format!(
                "{} has backups of version {}, this build knows {VERSION}",
                self.name, first.version
            );
            return Err(Error::Unsupported { detail });
        }
        Ok(Some(first))
    }

    /// Makes it a place of the backups of this store.
    ///
    /// # Errors
    /// As [`Bucket::first`]; [`Error::Invalid`] if it has those of another store.
    pub(crate) fn claim(&self, store: [u8; 16]) -> Result<()> {
        let store = holdall::BackupId(store).to_string();
        let own = First { holds: BACKUPS.into(), version: VERSION, store: store.clone() };
        let first = match self.first()? {
            Some(first) => first,
            None => {
                let bytes = json(&own)?;
                self.wait(self.client.put_new(FIRST, bytes))?;
                // Of two that come at once the first counts.
                self.first()?.ok_or_else(|| self.lacks(FIRST))?
            }
        };
        if first.store != store {
            return Err(Error::Invalid(format!(
                "{} has the backups of store {}, this is store {store}; name another prefix",
                self.name, first.store
            )));
        }
        Ok(())
    }

    /// An object that should be there.
    pub(crate) fn lacks(&self, what: &str) -> Error {
        Error::NotFound(format!("{what} in {}", self.name))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Something under way.
#[derive(Debug)]
pub(crate) struct Job<T>(tokio::task::JoinHandle<Result<T>>);

impl<T> Drop for Job<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An object of the place.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// Its name behind the prefix.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// Milliseconds since 1970 UTC, by the server's clock.
    pub(crate) modified: i64,
}

impl Client {
    fn path(&self, name: &str) -> Path {
        name.split('/').fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// # Errors
    /// Those of asking.
    pub(crate) async fn get_if(&self, name: &str) -> Result<Option<Bytes>> {
        let path = self.path(name);
        let failed = |e| refused(&self.place, &format!("reading {name}"), e);
        match self.store.get(&path).await {
            Ok(found) => found.bytes().await.map(Some).map_err(failed),
            Err(object_store::Error::NotFound { source, .. }) if !names_bucket(&*source) => {
                Ok(None)
            }
            Err(e) => Err(failed(e)),
        }
    }

    /// Puts an object.
    ///
    /// # Errors
    /// Those of asking.
    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let put = self.store.put(&self.path(name), PutPayload::from_bytes(bytes)).await;
        put.map(drop).map_err(|e| refused(&self.place, &format!("writing {name}"), e))
    }

    /// Puts an object unless one has that name; returns whether it did.
    ///
    /// # Errors
    /// Those of asking.
    pub(crate) async fn put_new(&self, name: &str, bytes: Bytes) -> Result<bool> {
        let payload = PutPayload::from_bytes(bytes);
        match self.store.put_opts(&self.path(name), payload, PutMode::Create.into()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(e) => Err(refused(&self.place, &format!("writing {name}"), e)),
        }
    }

    /// All objects in a folder, by name.
    ///
    /// # Errors
    /// Those of asking.
    pub(crate) async fn list(&self, folder: &str) -> Result<Vec<Object>> {
        let failed = |e| refused(&self.place, &format!("listing {folder}"), e);
        let path = self.path(folder);
        let skip = self.prefix.as_ref().len() + usize::from(!self.prefix.as_ref().is_empty());
        let found: Vec<ObjectMeta> =
            self.store.list(Some(&path)).try_collect().await.map_err(failed)?;
        let object = |meta: ObjectMeta| Object {
            name: meta.location.as_ref().get(skip..).unwrap_or_default().to_owned(),
            bytes: meta.size,
            modified: meta.last_modified.timestamp_millis(),
        };
        let mut found: Vec<Object> = found.into_iter().map(object).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes an object; one that is gone is no error.
    ///
    /// # Errors
    /// Those of asking.
    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        match self.store.delete(&self.path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(refused(&self.place, &format!("removing {name}"), e)),
        }
    }
}

/// The text of what a program keeps there.
pub(crate) fn json(what: &impl serde::Serialize) -> Result<Bytes> {
    let text = serde_json::to_vec_pretty(what);
    text.map(Bytes::from).map_err(|e| Error::Invalid(format!("a text for a bucket: {e}")))
}
