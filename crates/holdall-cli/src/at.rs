//! Where a command's objects are: in a store's file, or in a bucket.
//!
//! Owns: [`StoreAt`], the arguments that say it; [`Place`], to read from, and [`Changes`], to change;
//! What a change becomes in a bucket is
//! in `bucket_changes`. A command that
//! shares neither has a branch at its top.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdall::Store;
use holdall_bucket::blocking::BucketStore;
use holdall_control::Change;

use crate::bucket::{Reach, in_collection, is_in_bucket, text};
use crate::done::{Done, Id};
use crate::failure::Outcome;
use crate::wait::Waiting;
use crate::writer::{self, Writer};
use crate::{bucket_changes, open};

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
