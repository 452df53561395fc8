//! The collections as `dav-server` sees them, for properties, folders and locks of what is not
//! there yet. Bytes do not pass here.

use crate::catalog::{Bucket, Catalog};
use crate::dav::node::{self, Node, mark};
use crate::dav::path::{Place, escape, escape_beside, prefix_of};
use crate::dav::{Head, get};
use crate::error::from_store;
use crate::meta::Meta;
use crate::users::User;
use crate::{body, records, side};
use dav_server::davpath::DavPath;
use dav_server::fs::{
    DavDirEntry, DavFile, DavMetaData, DavProp, FsError, FsFuture, FsResult, FsStream,
    GuardedFileSystem, OpenOptions, ReadDirMeta,
};
use futures::stream::{self, StreamExt as _};
use holdall::{ListOptions, Listed, Reader, WriteTx};
use http::StatusCode;
use parking_lot::Mutex;
use s3s::{S3Error, S3ErrorCode, S3Result};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

/// Entries of a folder read at a time.
const PAGE: usize = 1000;

/// Properties that clients set: name with namespace to the element as XML.
pub type Props = BTreeMap<String, String>;

/// Who asks, and what was seen on the way to the answer.
#[derive(Debug)]
pub struct Asking {
    catalog: Arc<Catalog>,
    user: Arc<User>,
    /// Whether properties are asked for one by one.
    named: bool,
    /// Whether properties are set, which makes room for them.
    sets: bool,
    /// Properties of resources that have some.
    seen: Mutex<BTreeMap<Vec<u8>, Props>>,
}

impl Asking {
    /// What a request with this XML asks.
    pub fn new(catalog: Arc<Catalog>, head: &Head, xml: &[u8]) -> Self {
        let asked = xmltree::Element::parse(xml).ok();
        let named = asked.is_some_and(|asked| asked.get_child("prop").is_some());
        let sets = head.method.as_str() == "PROPPATCH";
        Self { catalog, user: head.user.clone(), named, sets, seen: Mutex::default() }
    }

    fn note(&self, path: Vec<u8>, props: Props) {
        if !props.is_empty() {
            self.seen.lock().insert(path, props);
        }
    }

    fn props(&self, path: &DavPath) -> Props {
        self.seen.lock().get(&key_of(path)).cloned().unwrap_or_default()
    }
}

/// A path without the slash at its end.
fn key_of(path: &DavPath) -> Vec<u8> {
    let bytes = path.as_bytes();
    bytes.strip_suffix(b"/").unwrap_or(bytes).to_vec()
}

/// What properties are made of.
#[derive(Debug, Clone)]
struct Info {
    size: u64,
    modified: Option<SystemTime>,
    folder: bool,
    etag: Option<String>,
}

impl Info {
    fn folder(modified: Option<SystemTime>) -> Self {
        Self { size: 0, modified, folder: true, etag: None }
    }
}

impl DavMetaData for Info {
    fn len(&self) -> u64 {
        self.size
    }

    fn modified(&self) -> FsResult<SystemTime> {
        self.modified.ok_or(FsError::NotImplemented)
    }

    fn is_dir(&self) -> bool {
        self.folder
    }

    fn etag(&self) -> Option<String> {
        self.etag.clone()
    }
}

#[derive(Debug, Clone)]
struct Named {
    name: Vec<u8>,
    info: Info,
}

impl DavDirEntry for Named {
    fn name(&self) -> Vec<u8> {
        self.name.clone()
    }

    fn metadata(&'_ self) -> FsFuture<'_, Box<dyn DavMetaData>> {
        let info: Box<dyn DavMetaData> = Box::new(self.info.clone());
        Box::pin(std::future::ready(Ok(info)))
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
        S3ErrorCode::AccessDenied | S3ErrorCode::InvalidRequest => FsError::Forbidden,
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

/// What is known of an object or a marker, its properties included.
fn known(reader: &Reader, found: &holdall::Metadata) -> S3Result<(Meta, String)> {
    let meta = Meta::of(&found.attributes);
    let etag = meta.etag(found.version);
    let meta = if meta.about.side {
        side::complete(reader, found.oid, meta).map_err(from_store)?
    } else {
        meta
    };
    Ok((meta, etag))
}

fn file(found: &holdall::Metadata, meta: &Meta, etag: String) -> Info {
    let modified = Some(meta.modified());
    Info { size: found.size, modified, folder: false, etag: Some(etag) }
}

fn metadata(asking: &Asking, path: &DavPath) -> S3Result<FsResult<Box<dyn DavMetaData>>> {
    let place = Place::of(path)?;
    let node = node::find(&asking.catalog, &place)?;
    let (info, props) = match &node {
        Node::Missing => return Ok(Err(FsError::NotFound)),
        Node::Root => (Info::folder(None), Props::new()),
        Node::Collection => {
            let bucket = node::collection(&asking.catalog, &place)?;
            let reader = bucket.served.store.read().map_err(from_store)?;
            let props = records::collection_props(&reader, &bucket.name).map_err(from_store)?;
            (Info::folder(None), props)
        }
        Node::Folder(None) => (Info::folder(None), Props::new()),
        Node::Folder(Some(found)) | Node::File(found) => {
            let bucket = node::collection(&asking.catalog, &place)?;
            let reader = bucket.read().map_err(from_store)?;
            let (meta, etag) = known(&reader, found)?;
            let info = if node.is_folder() {
                Info::folder(meta.modified)
            } else {
                file(found, &meta, etag)
            };
            (info, meta.about.props)
        }
    };
    asking.note(key_of(path), props);
    Ok(Ok(Box::new(info)))
}

/// A page of a folder, and the name to go on behind.
type Page = (Vec<Named>, Option<Vec<u8>>);

/// Objects of a page beside which a folder of their name lies.
fn beside(
    reader: &mut Reader,
    files: &[&[u8]],
    folders: &BTreeSet<&[u8]>,
    last: Option<&[u8]>,
) -> holdall::Result<BTreeSet<Vec<u8>>> {
    let mut found = BTreeSet::new();
    for file in files {
        let prefix = prefix_of(file);
        // The folder may lie behind the page, where only names between the two end it.
        let later = || last.is_some_and(|last| last.starts_with(file) && *last < prefix[..]);
        if folders.contains(&prefix[..]) || (later() && node::holds(reader, &prefix)?) {
            found.insert(file.to_vec());
        }
    }
    Ok(found)
}

fn page(
    asking: &Asking,
    path: &DavPath,
    bucket: &Bucket,
    prefix: &[u8],
    after: Option<&[u8]>,
) -> S3Result<Page> {
    let mut reader = bucket.read().map_err(from_store)?;
    let options = ListOptions { prefix, start_after: after, delimiter: Some(b"/"), limit: PAGE };
    let listing = reader.list(&options).map_err(from_store)?;
    let (mut files, mut folders) = (Vec::new(), BTreeSet::new());
    for entry in &listing.entries {
        match entry {
            Listed::Prefix(prefix) => _ = folders.insert(&prefix[..]),
            Listed::Object(entry) => files.push(&entry.name[..]),
        }
    }
    let last = listing.next.as_deref();
    let beside = beside(&mut reader, &files, &folders, last).map_err(from_store)?;
    let mut entries = Vec::with_capacity(listing.entries.len());
    for entry in &listing.entries {
        let (name, info, props) = match entry {
            // The folder's own marker.
            Listed::Object(entry) if entry.name == prefix => continue,
            Listed::Object(entry) => {
                let segment = &entry.name[prefix.len()..];
                let is_beside = beside.contains(&entry.name);
                let name = if is_beside { escape_beside(segment) } else { escape(segment) };
                let found = reader.metadata(entry.oid).map_err(from_store)?;
                let (meta, etag) = known(&reader, &found)?;
                (name, file(&found, &meta, etag), meta.about.props)
            }
            Listed::Prefix(folder) => {
                let name = escape(&folder[prefix.len()..folder.len() - 1]);
                let marker = node::Names::metadata(&mut reader, folder).map_err(from_store)?;
                let meta = marker.map(|found| known(&reader, &found)).transpose()?;
                let meta = meta.map(|(meta, _)| meta).unwrap_or_default();
                (name, Info::folder(meta.modified), meta.about.props)
            }
        };
        asking.note([&key_of(path)[..], b"/", &name].concat(), props);
        entries.push(Named { name, info });
    }
    Ok((entries, listing.next))
}

type Entry = Box<dyn DavDirEntry>;

/// The collections that a user sees.
fn collections(asking: &Asking) -> S3Result<Vec<Named>> {
    let names = asking.catalog.collections()?.into_iter();
    let seen = names.filter(|name| asking.user.sees(name));
    Ok(seen.map(|name| Named { name: escape(name.as_bytes()), info: Info::folder(None) }).collect())
}

fn boxed(entries: Vec<Named>) -> Vec<FsResult<Entry>> {
    entries.into_iter().map(|entry| Ok(Box::new(entry) as Entry)).collect()
}

/// A folder's entries, a page at a time.
fn entries(asking: Arc<Asking>, path: DavPath, bucket: Bucket, prefix: Vec<u8>) -> FsStream<Entry> {
    let begun = Some((asking, path, bucket, prefix, None));
    let pages = stream::unfold(begun, |state| async move {
        let (asking, path, bucket, prefix, after) = state?;
        let read = body::blocking(move || {
            let read = page(&asking, &path, &bucket, &prefix, after.as_deref())?;
            Ok((read, (asking, path, bucket, prefix)))
        });
        match read.await {
            Ok(((entries, next), (asking, path, bucket, prefix))) => {
                let state = next.map(|next| (asking, path, bucket, prefix, Some(next)));
                Some((boxed(entries), state))
            }
            Err(e) => Some((vec![Err(refused(e))], None)),
        }
    });
    Box::pin(pages.flat_map(stream::iter))
}

fn create_dir(asking: &Asking, path: &DavPath) -> S3Result<FsResult<()>> {
    let place = Place::of(path)?;
    if node::find(&asking.catalog, &place)?.is_there() {
        return Ok(Err(FsError::Exists));
    }
    if place.key.is_empty() {
        asking.catalog.create(place.collection.as_deref().unwrap_or_default(), None)?;
        return Ok(Ok(()));
    }
    let bucket = node::collection(&asking.catalog, &place)?;
    let mut reader = bucket.read().map_err(from_store)?;
    if !node::has_parent(&mut reader, &place).map_err(from_store)? {
        return Ok(Err(FsError::NotFound));
    }
    let prefix = prefix_of(crate::dav::put::text(&place.key)?.as_bytes());
    let made = bucket.served.store.write(|tx| mark(tx, &bucket, &prefix));
    made.map_err(from_store)?;
    Ok(Ok(()))
}

/// Makes an empty object for a lock on what is not there.
fn open(asking: &Asking, path: &DavPath) -> S3Result<FsResult<Box<dyn DavFile>>> {
    let place = Place::of(path)?;
    if place.key.is_empty() {
        return Ok(Err(FsError::Forbidden));
    }
    let bucket = node::collection(&asking.catalog, &place)?;
    let mut reader = bucket.read().map_err(from_store)?;
    if !node::has_parent(&mut reader, &place).map_err(from_store)? {
        return Ok(Err(FsError::NotFound));
    }
    let key = crate::dav::put::text(&place.key)?;
    let modified = Some(SystemTime::now());
    let content_type = Some(get::media_type(&place.key));
    let meta = Meta { modified, content_type, ..Meta::default() };
    let made = bucket.served.store.write(|tx| {
        let oid = bucket.objects(tx)?.put(&key, &[])?;
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
    });
    made.map_err(from_store)?;
    Ok(Ok(Box::new(Made(Info { size: 0, modified, folder: false, etag: None }))))
}

fn prop_name(prop: &DavProp) -> String {
    format!("{{{}}}{}", prop.namespace.as_deref().unwrap_or_default(), prop.name)
}

fn patch(props: &mut Props, patch: &[(bool, DavProp)]) {
    for (set, prop) in patch {
        let xml = prop.xml.as_ref().map(|xml| String::from_utf8_lossy(xml).into_owned());
        match xml.filter(|_| *set) {
            Some(xml) => _ = props.insert(prop_name(prop), xml),
            None => _ = props.remove(&prop_name(prop)),
        }
    }
}

/// Sets and removes properties in one transaction.
fn patch_props(asking: &Asking, path: &DavPath, asked: &[(bool, DavProp)]) -> S3Result<()> {
    let place = Place::of(path)?;
    let bucket = node::collection(&asking.catalog, &place)?;
    let work = |tx: &mut WriteTx| {
        let name = &bucket.name;
        if place.key.is_empty() {
            return records::change_collection_props(tx, name, |props| patch(props, asked));
        }
        let node = node::look(&mut node::InTx(tx, name), &place)?;
        let oid = match node {
            Node::File(found) => found.oid,
            Node::Missing => return Err(holdall::Error::NotFound("what has properties".into())),
            _ => mark(tx, &bucket, &place.prefix())?,
        };
        let meta = Meta::of(&tx.metadata(oid)?.attributes);
        let mut meta = side::complete_in(tx, oid, meta)?;
        patch(&mut meta.about.props, asked);
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
    };
    bucket.served.store.write(work).map_err(from_store)
}

/// A property as `dav-server` has it.
fn prop(name: &str, xml: &str, with_content: bool) -> Option<DavProp> {
    let (namespace, name) = name.strip_prefix('{')?.split_once('}')?;
    Some(DavProp {
        name: name.to_owned(),
        prefix: None,
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        xml: with_content.then(|| xml.as_bytes().to_vec()),
    })
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
        path: &'a DavPath,
        _: ReadDirMeta,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, FsStream<Entry>> {
        let (asking, path) = (asking.clone(), path.clone());
        Box::pin(blocking(move || {
            let place = Place::of(&path)?;
            if place.collection.is_none() {
                let entries = boxed(collections(&asking)?);
                return Ok(Ok(Box::pin(stream::iter(entries)) as FsStream<Entry>));
            }
            let bucket = node::collection(&asking.catalog, &place)?;
            Ok(Ok(entries(asking, path, bucket, place.prefix())))
        }))
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

    fn have_props<'a>(
        &'a self,
        path: &'a DavPath,
        asking: &'a Arc<Asking>,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        let there = asking.sets || asking.seen.lock().contains_key(&key_of(path));
        Box::pin(std::future::ready(there))
    }

    fn patch_props<'a>(
        &'a self,
        path: &'a DavPath,
        patch: Vec<(bool, DavProp)>,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, Vec<(StatusCode, DavProp)>> {
        let (asking, path) = (asking.clone(), path.clone());
        Box::pin(blocking(move || {
            // The root has no place for them.
            let done = if Place::of(&path)?.collection.is_none() {
                StatusCode::FORBIDDEN
            } else {
                patch_props(&asking, &path, &patch)?;
                StatusCode::OK
            };
            let told = patch.into_iter().map(|(_, prop)| (done, DavProp { xml: None, ..prop }));
            Ok(Ok(told.collect()))
        }))
    }

    fn get_props<'a>(
        &'a self,
        path: &'a DavPath,
        with_content: bool,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, Vec<DavProp>> {
        // Those asked for by name have been told already.
        let props = if asking.named { Props::new() } else { asking.props(path) };
        let props = props.iter().filter_map(|(name, xml)| prop(name, xml, with_content));
        Box::pin(std::future::ready(Ok(props.collect())))
    }

    fn get_prop<'a>(
        &'a self,
        path: &'a DavPath,
        prop: DavProp,
        asking: &'a Arc<Asking>,
    ) -> FsFuture<'a, Vec<u8>> {
        let found = asking.props(path).remove(&prop_name(&prop)).map(String::into_bytes);
        Box::pin(std::future::ready(found.ok_or(FsError::NotFound)))
    }
}
