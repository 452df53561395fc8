//! What answers say of resources: of one, and of those in a folder, a page at a time.
//!
//! Owns: [`Resource`].

use crate::dav::get::media_type;
use crate::dav::path::{self, Path};
use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::node::{self, Node};
use crate::objects::{meta::Meta, place::Place, records, side};
use crate::refusal::Result;
use crate::users::User;
use holdall::{ListOptions, Listed, Metadata, Reader};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Entries of a folder read at a time.
const PAGE: usize = 1000;
/// Bytes of their properties after which fewer are.
const PAGE_PROPS: usize = 1 << 20;

/// Properties that clients set: name with namespace to the element as XML.
pub type Props = BTreeMap<String, String>;

/// What is known of an object, a folder or a collection.
#[derive(Debug, Clone, Default)]
pub struct Resource {
    /// Its path below the prefix, decoded, as it is shown.
    pub path: Vec<u8>,
    /// Whether it holds others.
    pub folder: bool,
    /// Bytes.
    pub size: u64,
    /// Last change, if it is known.
    pub modified: Option<SystemTime>,
    /// The ETag without quotes; folders have none.
    pub etag: Option<String>,
    /// The media type of an object.
    pub kind: Option<String>,
    /// What clients set.
    pub props: Props,
}

impl Resource {
    /// Its address below the prefix, with a folder's slash.
    pub fn address(&self) -> String {
        let slash = if self.folder { "/" } else { "" };
        format!("{}{slash}", path::address(&self.path))
    }

    fn folder(path: Vec<u8>) -> Self {
        Self { path, folder: true, ..Self::default() }
    }

    /// A folder by its marker.
    fn marked(path: Vec<u8>, marker: Option<Meta>) -> Self {
        let meta = marker.unwrap_or_default();
        Self { modified: meta.modified, props: meta.about.props, ..Self::folder(path) }
    }

    fn object(path: Vec<u8>, key: &[u8], found: &Metadata, meta: Meta) -> Self {
        Self {
            path,
            folder: false,
            size: found.size,
            modified: Some(meta.modified()),
            etag: Some(meta.etag(found.version)),
            kind: Some(meta.content_type.unwrap_or_else(|| media_type(key))),
            props: meta.about.props,
        }
    }
}

/// What is kept of an object or a marker; the side record is read only if it has properties.
fn meta(reader: &Reader, found: &Metadata) -> Result<Meta> {
    let meta = Meta::from_metadata(found);
    Ok(if meta.about.side { side::meta(reader, found)? } else { meta })
}

/// What lies at a path; `None` if there is nothing. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn one(catalog: &Catalog, path: &Path) -> Result<Option<Resource>> {
    let place = Place::from_path(path)?;
    let node = node::find(catalog, &place)?;
    let shown = path.as_bytes();
    let shown = shown.strip_suffix(b"/").unwrap_or(shown).to_vec();
    Ok(Some(match &node {
        Node::Missing => return Ok(None),
        Node::Root | Node::Folder(None) => Resource::folder(shown),
        Node::Collection => {
            let bucket = node::collection(catalog, &place)?;
            let reader = bucket.served.read()?;
            let props = records::collection_props(&reader, &bucket.name)?;
            Resource { props, ..Resource::folder(shown) }
        }
        Node::Folder(Some(found)) | Node::File(found) => {
            let reader = node::collection(catalog, &place)?.read()?;
            let meta = meta(&reader, found)?;
            if node.is_folder() {
                Resource::marked(shown, Some(meta))
            } else {
                Resource::object(shown, place.name(), found, meta)
            }
        }
    }))
}

/// The collections that a user sees. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn collections(catalog: &Catalog, user: &User) -> Result<Vec<Resource>> {
    let names = catalog.collections()?.into_iter().filter(|name| user.sees(name));
    let path = |name: String| [b"/", &path::shown_collection(&name)[..]].concat();
    Ok(names.map(|name| Resource::folder(path(name))).collect())
}

/// The entries of a folder behind the name `after`, and the name to go on behind. They take some
/// megabytes at most, whatever clients set. Blocks. Cost: a step and a record for each entry.
///
/// # Errors
/// Those of the engine.
pub fn page(
    bucket: &Bucket,
    folder: &[u8],
    prefix: &[u8],
    after: Option<&[u8]>,
) -> Result<(Vec<Resource>, Option<Vec<u8>>)> {
    let mut reader = bucket.read()?;
    let options = ListOptions { prefix, start_after: after, delimiter: Some(b"/"), limit: PAGE };
    let listing = reader.list(&options)?;
    let mut entries: Vec<Resource> = Vec::with_capacity(listing.entries.len());
    let mut bytes = 0;
    for (at, entry) in listing.entries.iter().enumerate() {
        if bytes > PAGE_PROPS {
            let last = listing.entries[..at].last().map(|entry| match entry {
                Listed::Object(entry) => entry.name.clone(),
                Listed::Prefix(below) => below.clone(),
            });
            return Ok((entries, last));
        }
        let count = entries.len();
        match entry {
            // The folder's own marker.
            Listed::Object(entry) if entry.name == prefix => {}
            Listed::Object(entry) => {
                let name = path::shown(&entry.name[prefix.len()..]);
                let found = reader.metadata(entry.oid)?;
                let meta = meta(&reader, &found)?;
                let path = [folder, b"/", &name].concat();
                entries.push(Resource::object(path, &entry.name, &found, meta));
            }
            Listed::Prefix(below) => {
                let name = path::shown(&below[prefix.len()..below.len() - 1]);
                let marker = node::Names::metadata(&mut reader, below)?;
                let marker = marker.map(|found| meta(&reader, &found)).transpose()?;
                entries.push(Resource::marked([folder, b"/", &name].concat(), marker));
            }
        }
        let props = entries[count..].iter().flat_map(|entry| &entry.props);
        bytes += props.map(|(name, xml)| name.len() + xml.len()).sum::<usize>();
    }
    Ok((entries, listing.next))
}
