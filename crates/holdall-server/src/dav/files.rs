//! The collections as `dav-server` sees them, for folders and locks of what is not
//! there yet. Bytes do not pass here.

use crate::dav::list::{self, Resource};
use crate::objects::catalog::Catalog;
use crate::objects::node::{self, mark};
use crate::objects::place::{Place, prefix_of};

use crate::dav::{get, put};
use crate::error::from_store;
use crate::http::body;
use crate::objects::meta::Meta;
use crate::objects::side;
use dav_server::davpath::DavPath;
use dav_server::fs::{
    DavDirEntry, DavFile, DavMetaData, FsError, FsFuture, FsResult, FsStream, GuardedFileSystem,
    OpenOptions, ReadDirMeta,
};
use http::StatusCode;
use s3s::{S3Error, S3ErrorCode, S3Result};
use std::sync::Arc;
use std::time::SystemTime;

/// Who asks.
#[derive(Debug)]
pub struct Asking {
    /// What is served.
    pub catalog: Arc<Catalog>,
}

/// What conditions are checked against.
#[derive(Debug, Clone)]
struct Info(Resource);

impl DavMetaData for Info {
    fn len(&self) -> u64 {
        self.0.size
    }

    fn modified(&self) -> FsResult<SystemTime> {
        self.0.modified.ok_or(FsError::NotImplemented)
    }

    fn is_dir(&self) -> bool {
        self.0.folder
    }

    fn etag(&self) -> Option<String> {
        self.0.etag.clone()
    }
}

/// An object made for a lock. Its bytes are put by requests of their own.
#[derive(Debug)]
struct Made(Info);

impl DavFile for Made {
    fn metadata(&'_ mut self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        let info: Box<dyn DavMetaData> = Box::new(self.0.clone());
        Box::pin(std::future::ready(Ok(info)))
    }

    fn write_buf(&'_ mut self, _: Box<dyn bytes::Buf + Send>) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Err(FsError::NotImplemented)))
    }

    fn write_bytes(&'_ mut self, _: bytes::Bytes) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Err(FsError::NotImplemented)))
    }

    fn read_bytes(&'_ mut self, _: usize) -> FsFuture<'_, bytes::Bytes> {
        Box::pin(std::future::ready(Err(FsError::NotImplemented)))
    }

    fn seek(&'_ mut self, _: std::io::SeekFrom) -> FsFuture<'_, u64> {
        Box::pin(std::future::ready(Err(FsError::NotImplemented)))
    }

    fn flush(&'_ mut self) -> FsFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over")]
fn refused(e: S3Error) -> FsError {
    match e.code() {
        S3ErrorCode::NoSuchKey | S3ErrorCode::NoSuchBucket => FsError::NotFound,
        S3ErrorCode::InvalidRequest => FsError::Forbidden,
        _ if e.status_code() == Some(StatusCode::FORBIDDEN) => FsError::Forbidden,
        _ if e.status_code() == Some(StatusCode::INSUFFICIENT_STORAGE) => {
            FsError::InsufficientStorage
        }
        _ => FsError::GeneralFailure,
    }
}

/// Runs what may wait for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> S3Result<FsResult<T>> + Send + 'static,
) -> FsResult<T> {
    body::blocking(work).await.map_err(refused)?
}

fn metadata(asking: &Asking, path: &DavPath) -> S3Result<FsResult<Box<dyn DavMetaData>>> {
    let found = list::one(&asking.catalog, path)?;
    Ok(found.map_or(Err(FsError::NotFound), |resource| Ok(Box::new(Info(resource)) as Box<_>)))
}

fn create_dir(asking: &Asking, path: &DavPath) -> S3Result<FsResult<()>> {
    let place = Place::of(path)?;
    if node::find(&asking.catalog, &place)?.is_there() {
        return Ok(Err(FsError::Exists));
    }
    let Some(key) = &place.key else {
        asking.catalog.create(place.collection.as_deref().unwrap_or_default(), None)?;
        return Ok(Ok(()));
    };
    let bucket = node::collection(&asking.catalog, &place)?;
    let mut reader = bucket.read().map_err(from_store)?;
    if !node::has_parent(&mut reader, &place).map_err(from_store)? {
        return Ok(Err(FsError::NotFound));
    }
    let prefix = put::text(prefix_of(key))?.into_bytes();
    let made = bucket.served.store.write(|tx| mark(tx, &bucket, &prefix));
    made.map_err(from_store)?;
    Ok(Ok(()))
}

/// Makes an empty object for a lock on what is not there.
fn open(asking: &Asking, path: &DavPath) -> S3Result<FsResult<Box<dyn DavFile>>> {
    let place = Place::of(path)?;
    let Some(key) = place.key.as_ref().filter(|_| !place.slash) else {
        return Ok(Err(FsError::Forbidden));
    };
    let bucket = node::collection(&asking.catalog, &place)?;
    let mut reader = bucket.read().map_err(from_store)?;
    if !node::has_parent(&mut reader, &place).map_err(from_store)? {
        return Ok(Err(FsError::NotFound));
    }
    let name = put::text(key.clone())?;
    let content_type = Some(get::media_type(key));
    let meta = Meta { content_type, ..Meta::default() };
    let made = bucket.served.store.write(|tx| {
        let oid = bucket.objects(tx)?.put(&name, &[])?;
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)?;
        Ok(tx.metadata(oid)?.modified)
    });
    let modified = made.map_err(from_store)?;
    Ok(Ok(Box::new(Made(Info(Resource { modified, ..Resource::default() })))))
}

/// All collections of the server. Who asks comes with each call.
#[derive(Debug, Clone)]
pub struct Files;

impl GuardedFileSystem<Arc<Asking>> for Files {
    fn open<'a>(
        &'a self,
        path: &'a DavPath,
        _: OpenOptions,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, Box<dyn DavFile>> {
        let (asking, path) = (asking.clone(), path.clone());
        Box::pin(blocking(move || open(&asking, &path)))
    }

    fn read_dir<'a>(
        &'a self,
        _: &'a DavPath,
        _: ReadDirMeta,
        _: &'a Arc<Asking>,
    ) -> FsFuture<'a, FsStream<Box<dyn DavDirEntry>>> {
        // Folders are listed by PROPFIND, which does not pass here.
        Box::pin(std::future::ready(Err(FsError::NotImplemented)))
    }

    fn metadata<'a>(
        &'a self,
        path: &'a DavPath,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, Box<dyn DavMetaData>> {
        let (asking, path) = (asking.clone(), path.clone());
        Box::pin(blocking(move || metadata(&asking, &path)))
    }

    fn create_dir<'a>(&'a self, path: &'a DavPath, asking: &'a Arc<Asking>) -> FsFuture<'a, ()> {
        let (asking, path) = (asking.clone(), path.clone());
        Box::pin(blocking(move || create_dir(&asking, &path)))
    }
}
