//! Creating and opening a store in a bucket.
//!
//! Owns: [`Options`]; the head, which is written once.

use super::BucketStore;
use super::cache::Cache;
use super::environment::{Environment, Machine};
use super::inner::Inner;
use crate::backend::{Backend, Got, Put};
use crate::format::{Head, Sizes, keys};
use holdall::{Error, Result};
use std::sync::Arc;

/// How a store is created or opened.
#[derive(Debug, Clone)]
pub struct Options {
    name: String,
    sizes: Sizes,
    environment: Arc<dyn Environment>,
}

impl Default for Options {
    fn default() -> Self {
        Self { name: "the bucket".into(), sizes: Sizes::default(), environment: Arc::new(Machine) }
    }
}

impl Options {
    /// What errors call the store.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The sizes of a store that is created.
    #[must_use]
    pub fn sizes(self, sizes: Sizes) -> Self {
        Self { sizes, ..self }
    }

    /// Time and chance; those of the machine unless this is called.
    #[must_use]
    pub fn environment(self, environment: Arc<dyn Environment>) -> Self {
        Self { environment, ..self }
    }

    /// Creates a store if there is none.
    ///
    /// # Errors
    /// [`Error::Exists`] if there is one; [`Error::Invalid`] for sizes that cannot be; those of the
    /// backend.
    pub async fn create(self, backend: Arc<dyn Backend>) -> Result<BucketStore> {
        self.sizes.check()?;
        let head = Head::new(self.environment.draw()?, self.sizes);
        match backend.put_if(keys::HEAD, None, head.encode()?).await? {
            Put::Done(_) => Ok(self.store(backend, head)),
            // An answer that was lost, or somebody else: the head tells.
            Put::NotDone | Put::Unknown(_) => match read_head(&*backend, &self.name).await? {
                Some(found) if found.store == head.store => Ok(self.store(backend, head)),
                Some(_) => Err(Error::Exists(format!("a store in {}", self.name))),
                None => {
                    let action = format!("creating a store in {}", self.name);
                    Err(Error::io(action, std::io::ErrorKind::TimedOut.into()))
                }
            },
        }
    }

    /// Opens a store.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; [`Error::NotAStore`]; [`Error::Unsupported`]; those of
    /// the backend.
    pub async fn open(self, backend: Arc<dyn Backend>) -> Result<BucketStore> {
        let head = read_head(&*backend, &self.name).await?;
        let head = head.ok_or_else(|| Error::NotFound(format!("a store in {}", self.name)))?;
        Ok(self.store(backend, head))
    }

    fn store(self, backend: Arc<dyn Backend>, head: Head) -> BucketStore {
        let Self { name, environment, .. } = self;
        BucketStore::of(Arc::new(Inner { name, backend, environment, head, cache: Cache::new() }))
    }
}

impl BucketStore {
    /// Creates a store if there is none, as [`Options::create`].
    ///
    /// # Errors
    /// As [`Options::create`].
    pub async fn create(backend: Arc<dyn Backend>) -> Result<Self> {
        Options::default().create(backend).await
    }

    /// Opens a store, as [`Options::open`].
    ///
    /// # Errors
    /// As [`Options::open`].
    pub async fn open_in(backend: Arc<dyn Backend>) -> Result<Self> {
        Options::default().open(backend).await
    }
}

async fn read_head(backend: &dyn Backend, name: &str) -> Result<Option<Head>> {
    match backend.get(keys::HEAD, None, None).await? {
        Got::Found(found) if found.len > crate::format::MAX_HEAD => {
            let detail = format!("its head has {} bytes", found.len);
            Err(Error::NotAStore { path: name.into(), detail })
        }
        Got::Found(found) => Head::decode(&found.bytes.whole(), name).map(Some),
        _ => Ok(None),
    }
}
