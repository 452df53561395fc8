//! The stores that are served, and which bucket lies in which.
//!
//! Owns: [`Catalog`], [`Bucket`]. A bucket is a collection whose name S3 allows; others are not
//! shown. While it serves, the server holds each store's lock, so its own list stays true.

use crate::error::StartError;
use crate::objects::acl::Acl;
use crate::objects::records;
use crate::objects::side::{self, SYSTEM};
use crate::refusal::{Refusal, Result, Why};
use holdall::{
    CollectionMut, DEFAULT_COLLECTION, ObjectWriter, Reader, Store, WriteOptions, WriteTx,
};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// The collection of what was deleted at the page (`web/trash.rs`). Those whose names begin with it
/// and a slash hold a deletion each, and are not shown.
pub const TRASH: &str = ".trash";

/// Whether a collection is the server's own, and not shown.
fn is_hidden(name: &str) -> bool {
    name == SYSTEM || name.strip_prefix(TRASH).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a bucket may have this name: those of S3, if dots and hyphens do not meet.
pub fn is_bucket_name(name: &str) -> bool {
    s3s::path::check_bucket_name(name) && !name.contains("-.") && !name.contains(".-")
}

/// One store of those served.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where it lies. Two of the same store share it.
    pub path: Arc<PathBuf>,
    /// It.
    pub store: Store,
    /// Most bytes that an object's attributes take in it.
    pub attribute_bytes: usize,
    /// How long a request waits for changes of others.
    pub waits: WriteOptions,
}

impl Served {
    /// The newest durable state.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn read(&self) -> Result<Reader> {
        Ok(self.store.read()?)
    }

    /// Changes the store in a transaction. Blocks for a commit.
    ///
    /// # Errors
    /// Those of `work`, and of the engine: Busy if others write for too long.
    pub fn write<T>(&self, work: impl FnOnce(&mut WriteTx) -> holdall::Result<T>) -> Result<T> {
        Ok(self.store.write_with(&self.waits, work)?)
    }
}

/// A bucket, and the store it lies in.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Its name, which is its collection's.
    pub name: String,
    /// Its store.
    pub served: Served,
}

impl Bucket {
    /// The newest durable state, seen through the bucket.
    pub fn read(&self) -> holdall::Result<Reader> {
        self.served.read()?.collection(&self.name)
    }

    /// The bucket within a transaction, which takes the writer's lock.
    ///
    /// # Errors
    /// NoBucket if it was deleted since the request came: a put would make it again, and
    /// nobody would be shown it.
    pub fn objects<'t>(&self, tx: &'t mut WriteTx) -> holdall::Result<CollectionMut<'t>> {
        let mut objects = tx.collection(&self.name)?;
        let there = objects.has_collection()?;
        self.check(there)?;
        Ok(objects)
    }

    /// As [`Bucket::objects`], for a writer that is about to finish.
    ///
    /// # Errors
    /// NoBucket.
    pub fn check_writer(&self, writer: &mut ObjectWriter<'_>) -> holdall::Result<()> {
        let there = writer.has_collection()?;
        self.check(there)
    }

    /// The ACL. Blocks.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn acl(&self) -> Result<Acl> {
        let reader = self.served.read()?;
        records::bucket_acl(&reader, &self.name).map_err(Refusal::from)
    }

    /// Sets the ACL. Blocks for a commit if it is another one.
    ///
    /// # Errors
    /// NoBucket if it was deleted meanwhile, those of the engine.
    pub fn set_acl(&self, acl: Acl) -> Result<()> {
        if self.acl()? == acl {
            return Ok(());
        }
        self.change(|tx| records::set_bucket_acl(tx, &self.name, acl))
    }

    /// Changes a record of the bucket, which must be there. Blocks for a commit.
    ///
    /// # Errors
    /// As [`Bucket::set_acl`].
    pub fn change(&self, change: impl FnOnce(&mut WriteTx) -> holdall::Result<()>) -> Result<()> {
        let work = |tx: &mut WriteTx| {
            drop(self.objects(tx)?);
            change(tx)
        };
        self.served.write(work)
    }

    /// Removes an unfinished upload with its parts. Blocks for a commit.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn give_up(&self, id: &str) -> Result<()> {
        let parts = side::parts(&self.served.read()?, id)?;
        self.served.write(|tx| side::drop_upload(tx, &self.name, id, &parts).map(drop))?;
        Ok(())
    }

    /// Gives up all unfinished uploads, unless there are objects: the bucket is not going to be
    /// deleted then. Blocks.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn give_up_all(&self) -> Result<()> {
        let reader = self.served.read()?;
        if self.read()?.names("").next().is_some() {
            return Ok(());
        }
        let uploads = side::uploads(&reader, Some(&self.name))?;
        uploads.iter().try_for_each(|(_, id, _)| self.give_up(id))
    }

    fn check(&self, there: bool) -> holdall::Result<()> {
        // The server's own collection is made when it is needed.
        if there || self.name == SYSTEM {
            return Ok(());
        }
        Err(Why::NoBucket.says(format!("there is no bucket {} any more", self.name)).into())
    }
}

/// All stores with their buckets.
#[derive(Debug)]
pub struct Catalog {
    stores: Vec<Served>,
    /// Held while a bucket is made or deleted. The list's own lock is never held over a commit:
    /// every request takes that one.
    changing: Mutex<()>,
    /// Bucket to place in `stores`.
    buckets: RwLock<BTreeMap<String, usize>>,
    /// Where new buckets go.
    for_new: usize,
}

impl Catalog {
    /// Takes opened stores; new buckets go to the one at `for_new`.
    ///
    /// # Errors
    /// [`StartError::SameBucket`], [`StartError::Store`].
    pub fn new(stores: Vec<Served>, for_new: usize) -> Result<Self, StartError> {
        let mut buckets = BTreeMap::new();
        for (place, served) in stores.iter().enumerate() {
            let names = served.store.read().and_then(|reader| reader.collections());
            let names = names
                .map_err(|source| StartError::Store { path: (*served.path).clone(), source })?;
            for name in names.into_iter().filter(|name| is_bucket_name(name)) {
                if let Some(first) = buckets.insert(name.clone(), place) {
                    let path = |served: &Served| (*served.path).clone();
                    let (first, second) = (path(&stores[first]), path(served));
                    return Err(StartError::SameBucket { bucket: name, first, second });
                }
            }
        }
        Ok(Self { stores, changing: Mutex::new(()), buckets: RwLock::new(buckets), for_new })
    }

    /// All stores.
    pub fn stores(&self) -> &[Served] {
        &self.stores
    }

    /// A bucket by its name.
    ///
    /// # Errors
    /// NoBucket.
    pub fn bucket(&self, name: &str) -> Result<Bucket> {
        let place = self.buckets.read().get(name).copied();
        let place =
            place.ok_or_else(|| Why::NoBucket.says(format!("there is no bucket {name}")))?;
        Ok(Bucket { name: name.to_owned(), served: self.stores[place].clone() })
    }

    /// A collection by its name, which need not be one that buckets may have. Of two stores that
    /// have such a one, the first counts. The server's own is not shown.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn collection(&self, name: &str) -> Result<Option<Bucket>> {
        if let Ok(bucket) = self.bucket(name) {
            return Ok(Some(bucket));
        }
        if is_hidden(name) || is_bucket_name(name) {
            return Ok(None);
        }
        for served in &self.stores {
            let there = served.store.read().and_then(|reader| reader.collection(name));
            match there {
                Ok(_) => return Ok(Some(Bucket { name: name.to_owned(), served: served.clone() })),
                Err(holdall::Error::NotFound(_) | holdall::Error::Invalid(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(None)
    }

    /// Names of all collections, in order, whether buckets may have them or not.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn collections(&self) -> Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.buckets.read().keys().cloned().collect();
        for served in &self.stores {
            let found = served.store.read().and_then(|reader| reader.collections());
            let found = found?.into_iter();
            names.extend(found.filter(|n| !is_hidden(n) && !is_bucket_name(n)));
        }
        Ok(names.into_iter().collect())
    }

    /// Names of all buckets, in order.
    pub fn names(&self) -> Vec<String> {
        self.buckets.read().keys().cloned().collect()
    }

    /// When a bucket was made, if it was made over S3.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn created(&self, name: &str) -> Result<Option<SystemTime>> {
        let bucket = self.bucket(name)?;
        let reader = bucket.served.read()?;
        records::bucket_created(&reader, name).map_err(Refusal::from)
    }

    /// Makes a bucket. Blocks for a commit. False if it was there already; it has the ACL then
    /// if one is given.
    ///
    /// # Errors
    /// Status 403 for the server's own collection; those of the engine.
    pub fn create(&self, name: &str, acl: Option<Acl>) -> Result<bool> {
        if is_hidden(name) {
            let text = "a collection of this name is the server's own";
            return Err(Why::Reserved.says(text));
        }
        let _changing = self.changing.lock();
        if let Some(bucket) = self.collection(name)? {
            if let Some(acl) = acl {
                bucket.set_acl(acl)?;
            }
            return Ok(false);
        }
        self.stores[self.for_new].write(|tx| {
            tx.collection(name)?.create_collection()?;
            // What the command line dropped may have left records.
            records::forget_bucket(tx, name)?;
            records::set_bucket_acl(tx, name, acl.unwrap_or_default())?;
            records::note_bucket(tx, name, SystemTime::now())
        })?;
        if is_bucket_name(name) {
            self.buckets.write().insert(name.to_owned(), self.for_new);
        }
        Ok(true)
    }

    /// Deletes an empty bucket. Blocks for a commit.
    ///
    /// # Errors
    /// NoBucket, NotEmpty, those of the engine.
    pub fn delete(&self, name: &str) -> Result<()> {
        let _changing = self.changing.lock();
        let none = || Why::NoBucket.says(format!("there is no bucket {name}"));
        let bucket = self.collection(name)?.ok_or_else(none)?;
        if name == DEFAULT_COLLECTION {
            let text = "the default collection cannot be deleted; delete its objects";
            return Err(Why::Denied.says(text));
        }
        let drop_it = |tx: &mut WriteTx| {
            records::forget_bucket(tx, name)?;
            if tx.collection(name)?.has_names()? {
                let text = Why::NotEmpty.says(format!("the bucket {name} holds objects"));
                return Err(text.into());
            }
            tx.drop_collection(name).map(drop)
        };
        bucket.served.write(drop_it)?;
        self.buckets.write().remove(name);
        Ok(())
    }
}
