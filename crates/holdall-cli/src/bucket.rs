//! Places in buckets, of backups and of objects: how commands reach them.
//!
//! Owns: [`Reach`]; the names of objects there.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use holdall::Error;
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::{Access, Bucket, is_bucket};

use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::name;

/// What an address of a store in a bucket begins with.
const SCHEME: &str = "s3://";

/// Whether this names a store in a bucket.
pub fn is_in_bucket(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().starts_with(SCHEME.as_bytes())
}

/// How a bucket is reached.
#[derive(clap::Args, Default)]
pub struct Reach {
    /// Address of the S3 server, if it is not AWS
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Profile of aws-cli that has the keys
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Remote of rclone that has endpoint and keys
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    remote: Option<String>,
}

impl Reach {
    /// The place that this names, if it names one in a bucket.
    pub fn place(&self, path: &Path) -> Outcome<Option<Arc<Bucket>>> {
        let Some(text) = path.to_str().filter(|text| is_bucket(text)) else { return Ok(None) };
        Ok(Some(Arc::new(Bucket::open(text, &self.access())?)))
    }

    /// What there is to reach a bucket.
    pub fn access(&self) -> Access {
        Access {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            profile: self.profile.clone(),
            remote: self.remote.clone(),
            ..Access::default()
        }
    }

    /// The same, but for what is given.
    pub fn with(&self, other: [Option<String>; 4]) -> Self {
        let [endpoint, region, profile, remote] = other;
        let has_keys = profile.is_some() || remote.is_some();
        let unless = |own: &Option<String>| own.clone().filter(|_| !has_keys);
        Self {
            endpoint: endpoint.or_else(|| unless(&self.endpoint)),
            region: region.or_else(|| unless(&self.region)),
            profile: profile.or_else(|| unless(&self.profile)),
            remote: remote.or_else(|| unless(&self.remote)),
        }
    }

    /// Opens the store of objects at `path`, which [`is_in_bucket`].
    pub fn store(&self, path: &Path) -> Outcome<BucketStore> {
        let place = address(path)?;
        BucketStore::open_at(place, &self.access()).map_err(|e| match e {
            Error::NotFound(what) if !what.starts_with("bucket ") => {
                let hint = "check the address, or make one with `holdall bucket create`";
                Failure::Told(format!("not found: {what}"), hint.into(), NOT_FOUND)
            }
            e => failed(e),
        })
    }

    /// Refuses what says how to reach a bucket if there is none.
    pub fn must_be_unused(&self) -> Outcome {
        let given = [
            ("--endpoint", &self.endpoint),
            ("--region", &self.region),
            ("--profile", &self.profile),
            ("--remote", &self.remote),
        ];
        match given.iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((option, _)) => {
                let what = format!("{option} is of use with a bucket only");
                Err(Failure::new(what, "name a place as s3://BUCKET/PREFIX"))
            }
        }
    }
}

/// What a failure of a bucket as a whole says.
pub fn failed(e: Error) -> Failure {
    match e {
        Error::NotFound(what) if what.starts_with("bucket ") => {
            let hint = "check the address, or make the bucket by the server's own means";
            Failure::Told(format!("not found: {what}"), hint.into(), NOT_FOUND)
        }
        e => e.into(),
    }
}

/// The address of a place in a bucket, which is text.
pub fn address(path: &Path) -> Outcome<&str> {
    path.to_str().ok_or_else(|| {
        let what = format!("{}: an address of a bucket is UTF-8", path.display());
        Failure::new(what, "write s3://BUCKET/PREFIX")
    })
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
