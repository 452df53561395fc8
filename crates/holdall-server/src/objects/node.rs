//! What lies at a path.
//!
//! Owns: [`Node`]. A folder is there if a name begins with its own and a slash; an empty one is
//! kept by a marker, an empty object whose name ends with the slash, as S3's clients make them.

use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::meta::Meta;
use crate::objects::place::{self, Place, prefix_of};
use crate::objects::side;
use crate::refusal::{Refusal, Result, Why};
use holdall::{ListOptions, Listed, Listing, Metadata, Reader, WriteTx};

/// What lies at a path.
#[derive(Debug, Clone)]
pub enum Node {
    /// All collections.
    Root,
    /// A collection.
    Collection,
    /// A folder; what is known of its marker, if it has one.
    Folder(Option<Box<Metadata>>),
    /// An object.
    File(Box<Metadata>),
    /// Nothing.
    Missing,
}

impl Node {
    /// Whether it holds others.
    pub fn is_folder(&self) -> bool {
        matches!(self, Self::Root | Self::Collection | Self::Folder(_))
    }

    /// Whether there is something.
    pub fn is_there(&self) -> bool {
        !matches!(self, Self::Missing)
    }

    /// What the engine knows of the object or the marker.
    pub fn metadata(&self) -> Option<&Metadata> {
        match self {
            Self::File(metadata) | Self::Folder(Some(metadata)) => Some(metadata),
            _ => None,
        }
    }

    /// The ETag without quotes; folders have none.
    pub fn etag(&self) -> Option<String> {
        match self {
            Self::File(metadata) => Some(crate::objects::meta::etag_of(metadata)),
            _ => None,
        }
    }
}

/// A state, or a transaction, in which names are looked up.
pub trait Names {
    /// What is known of a name.
    fn metadata(&mut self, name: &[u8]) -> holdall::Result<Option<Metadata>>;
    /// Names in order.
    fn list(&mut self, options: &ListOptions<'_>) -> holdall::Result<Listing>;
}

/// The names of objects in a listing without a delimiter.
pub fn names(listing: Listing) -> impl Iterator<Item = Vec<u8>> {
    listing.entries.into_iter().filter_map(|entry| match entry {
        Listed::Object(entry) => Some(entry.name),
        Listed::Prefix(_) => None,
    })
}

fn there(found: holdall::Result<Metadata>) -> holdall::Result<Option<Metadata>> {
    match found {
        Ok(metadata) => Ok(Some(metadata)),
        Err(holdall::Error::NotFound(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

impl Names for Reader {
    fn metadata(&mut self, name: &[u8]) -> holdall::Result<Option<Metadata>> {
        there(Self::metadata(self, name))
    }

    fn list(&mut self, options: &ListOptions<'_>) -> holdall::Result<Listing> {
        Self::list(self, options)
    }
}

/// A collection within a transaction.
pub struct InTx<'t>(pub &'t mut WriteTx, pub &'t str);

impl Names for InTx<'_> {
    fn metadata(&mut self, name: &[u8]) -> holdall::Result<Option<Metadata>> {
        there(self.0.collection(self.1)?.metadata(name))
    }

    fn list(&mut self, options: &ListOptions<'_>) -> holdall::Result<Listing> {
        self.0.collection(self.1)?.list(options)
    }
}

/// Whether a name begins with this prefix. Cost: one look-up.
///
/// # Errors
/// Those of reading.
pub fn holds(names: &mut impl Names, prefix: &[u8]) -> holdall::Result<bool> {
    let options = ListOptions { prefix, start_after: None, delimiter: None, limit: 1 };
    Ok(!names.list(&options)?.entries.is_empty())
}

/// What lies at a place of a collection that is there: what the path says, the object or the
/// folder; if only the other one is there, that. Cost: three look-ups at most.
///
/// # Errors
/// Those of reading.
pub fn look(names: &mut impl Names, place: &Place) -> holdall::Result<Node> {
    let Some(key) = place.key.as_deref() else { return Ok(Node::Collection) };
    let first = if place.slash { folder(names, place)? } else { file(names, key)? };
    match first {
        Some(node) => Ok(node),
        None if place.slash => Ok(file(names, key)?.unwrap_or(Node::Missing)),
        None => Ok(folder(names, place)?.unwrap_or(Node::Missing)),
    }
}

fn folder(names: &mut impl Names, place: &Place) -> holdall::Result<Option<Node>> {
    let prefix = place.prefix();
    if !holds(names, &prefix)? {
        return Ok(None);
    }
    Ok(Some(Node::Folder(names.metadata(&prefix)?.map(Box::new))))
}

fn file(names: &mut impl Names, key: &[u8]) -> holdall::Result<Option<Node>> {
    // What is empty, or ends with a slash, is a folder's and no object's.
    if key.is_empty() || key.ends_with(b"/") {
        return Ok(None);
    }
    Ok(names.metadata(key)?.map(|metadata| Node::File(Box::new(metadata))))
}

/// Whether both an object and a folder of a place's name are there.
///
/// # Errors
/// Those of reading.
pub fn is_both(names: &mut impl Names, place: &Place) -> holdall::Result<bool> {
    let file = look(names, &place.with_slash(false))?;
    Ok(matches!(file, Node::File(_)) && holds(names, &place.prefix())?)
}

/// Whether the folder that a place lies in is there.
///
/// # Errors
/// Those of reading.
pub fn has_parent(names: &mut impl Names, place: &Place) -> holdall::Result<bool> {
    place.parent().map_or(Ok(true), |parent| holds(names, &prefix_of(parent)))
}

/// The collection of a place.
///
/// # Errors
/// NoBucket.
pub fn collection(catalog: &Catalog, place: &Place) -> Result<Bucket> {
    let none = || Why::NoBucket.says("there is no such collection");
    let name = place.collection.as_deref().ok_or_else(none)?;
    catalog.collection(name)?.ok_or_else(none)
}

/// What lies at a place in the newest state. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn find(catalog: &Catalog, place: &Place) -> Result<Node> {
    let Some(name) = &place.collection else { return Ok(Node::Root) };
    let Some(bucket) = catalog.collection(name)? else { return Ok(Node::Missing) };
    if place.key.is_none() {
        return Ok(Node::Collection);
    }
    let mut reader = bucket.read()?;
    look(&mut reader, place).map_err(Refusal::from)
}

/// Makes a folder's marker if there is none, and returns its OID.
///
/// # Errors
/// Those of a transaction.
pub fn mark(tx: &mut WriteTx, bucket: &Bucket, prefix: &[u8]) -> holdall::Result<holdall::Oid> {
    if let Some(oid) = tx.collection(&bucket.name)?.lookup(prefix)? {
        return Ok(oid);
    }
    let oid = bucket.objects(tx)?.put(prefix, &[])?;
    side::set_meta(tx, oid, &Meta::default(), bucket.served.attribute_bytes)?;
    Ok(oid)
}

/// Marks the folder that a removed name lay in, if it would be gone with it.
///
/// # Errors
/// Those of a transaction.
pub fn keep_parent(tx: &mut WriteTx, bucket: &Bucket, key: &[u8]) -> holdall::Result<()> {
    let Some(parent) = place::parent(key) else { return Ok(()) };
    let prefix = prefix_of(parent);
    if !holds(&mut InTx(tx, &bucket.name), &prefix)? {
        mark(tx, bucket, &prefix)?;
    }
    Ok(())
}
