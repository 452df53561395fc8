//! Where a command's objects are: in a store's file, or in a bucket.
//!
//! Owns: [`StoreAt`], the arguments that say it; [`Place`], to read from, and [`Changes`], to change;
//! what a bucket cannot do for both. What a change becomes there is in `bucket_changes`. A command that
//! shares neither has a branch at its top.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdall::{Error, Oid, Store};
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::store::ObjectVersion;
use holdall_control::Change;

use crate::bucket::{Reach, is_in_bucket};
use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::wait::Waiting;
use crate::writer::{self, Writer};
use crate::{bucket_changes, name, open};

/// Where a command's objects are.
#[derive(clap::Args)]
pub struct StoreAt {
    /// The store's file, or s3://BUCKET/PREFIX
    store: PathBuf,
    #[command(flatten)]
    reach: Reach,
}

/// Where objects are read.
pub enum Place<'a> {
    /// In this file.
    File(&'a Path),
    /// In a bucket; the collection is chosen.
    Bucket(BucketStore),
}

/// Takes a command's changes.
pub enum Changes<'p> {
    /// To a store's file.
    File(Writer<'p>),
    /// To a bucket.
    Bucket(Box<BucketStore>),
}

/// What identifies an object that was stored.
pub enum Id {
    /// In a file.
    Oid(Oid),
    /// In a bucket.
    Version(ObjectVersion),
}

/// What came of a change.
pub struct Done {
    /// Of an object that was stored.
    pub id: Option<Id>,
    /// The size of an object that was stored or edited.
    pub size: Option<u64>,
}

impl StoreAt {
    /// What was given.
    pub fn path(&self) -> &Path {
        &self.store
    }

    /// Says what is wrong with the place, or with one of the arguments that name objects there, before
    /// anything is opened or read.
    pub fn check(&self, must_exist: bool, names: &[&OsStr]) -> Outcome {
        if is_in_bucket(&self.store) {
            return names.iter().try_for_each(|arg| text(arg).map(drop));
        }
        self.reach.must_be_unused()?;
        open::check(&self.store, must_exist)
    }

    /// Where to read, in this collection.
    pub fn place(&self, collection: Option<&str>) -> Outcome<Place<'_>> {
        Ok(match self.bucket()? {
            None => Place::File(&self.store),
            Some(store) => Place::Bucket(in_collection(&store, collection)?),
        })
    }

    /// Opens what is there, for changes.
    pub fn existing(&self, waiting: &Waiting) -> Outcome<Changes<'_>> {
        Ok(match self.bucket()? {
            None => Changes::File(writer::existing(&self.store, waiting)?),
            Some(store) => Changes::Bucket(Box::new(store)),
        })
    }

    /// As [`StoreAt::existing`]; a file is made if it is missing. In a bucket one is not made by the way:
    /// the server is to be probed first.
    pub fn or_create(&self, waiting: &Waiting) -> Outcome<Changes<'_>> {
        Ok(match self.bucket()? {
            None => Changes::File(writer::or_create(&self.store, waiting)?),
            Some(store) => Changes::Bucket(Box::new(store)),
        })
    }

    fn bucket(&self) -> Outcome<Option<BucketStore>> {
        if is_in_bucket(&self.store) { self.reach.store(&self.store).map(Some) } else { Ok(None) }
    }
}

/// The store as seen from a collection.
pub fn in_collection(store: &BucketStore, collection: Option<&str>) -> Outcome<BucketStore> {
    Ok(match collection {
        None => store.clone(),
        Some(collection) => store.collection(collection)?,
    })
}

/// The name of an object in a bucket that an argument spells.
pub fn text(arg: &OsStr) -> Outcome<&str> {
    if let Some(oid) = name::as_oid(arg) {
        return Err(Failure::new(
            format!("{oid}: objects in a bucket have no OIDs"),
            "give a name",
        ));
    }
    arg.to_str().ok_or_else(|| not_text(name::bytes(arg)))
}

/// The refusal of a name that is not UTF-8.
pub fn not_text(name: &[u8]) -> Failure {
    let what = format!("{}: names in a bucket are UTF-8", name::escape(name));
    Failure::new(what, "give a name that is")
}

/// That an object is not in a bucket.
pub fn missing(store: &BucketStore, name: &str) -> Failure {
    let collection = store.inner().collection_name();
    let of = match collection {
        holdall::DEFAULT_COLLECTION => String::new(),
        collection => format!(" of collection {collection:?}"),
    };
    let what = format!("not found: object {name:?}{of}");
    Failure::Told(what, "see what is there with `holdall ls STORE`".into(), NOT_FOUND)
}

impl Changes<'_> {
    /// The store of a file, to be read.
    pub fn store(&self) -> Option<&Store> {
        match self {
            Self::File(writer) => Some(writer.store()),
            Self::Bucket(_) => None,
        }
    }

    /// Makes a change without data.
    pub fn change(&mut self, collection: Option<&str>, change: Change) -> Outcome<Done> {
        self.change_with(collection, change, io::empty())
    }

    /// Makes a change durable.
    pub fn change_with(
        &mut self,
        collection: Option<&str>,
        change: Change,
        mut data: impl Read + Send + 'static,
    ) -> Outcome<Done> {
        match self {
            Self::File(writer) => {
                let written = writer.change_with(collection, change, data)?;
                Ok(Done { id: written.oid.map(Id::Oid), size: written.size })
            }
            Self::Bucket(store) => {
                bucket_changes::apply(&in_collection(store, collection)?, change, &mut data)
            }
        }
    }

    /// Closes the store after `done` came about.
    pub fn close(self, done: &str) -> Outcome {
        match self {
            Self::File(writer) => writer.close(done),
            Self::Bucket(_) => Ok(()),
        }
    }

    /// Closes the store if all went well, after what `done` says came about; else leaves no file behind
    /// that the command made.
    pub fn end<T>(self, outcome: Outcome<T>, done: impl FnOnce(&T) -> String) -> Outcome<T> {
        match self {
            Self::File(writer) => writer.end(outcome, done),
            Self::Bucket(_) => outcome,
        }
    }
}

impl Id {
    /// The field of JSON that has it.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Oid(_) => "oid",
            Self::Version(_) => "version",
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oid(oid) => oid.fmt(f),
            Self::Version(version) => version.fmt(f),
        }
    }
}

impl Done {
    /// What identifies the object that was stored.
    ///
    /// # Errors
    /// That it did not come.
    pub fn stored(self) -> Outcome<Id> {
        let none = || Error::Invalid("the OID of the object did not come".into()).into();
        self.id.ok_or_else(none)
    }
}
