//! What is kept of an object beside its bytes: the attribute `content-type`, as `holdall serve` has
//! it.

use holdall::Attributes;
use opendal_core::raw::Timestamp;
use opendal_core::{Metadata, MetadataBuilder};

const CONTENT_TYPE: &str = "content-type";

/// The attributes of an object that is put now.
pub fn to_attributes(content_type: Option<&str>) -> Attributes {
    let mut kept = Attributes::new();
    if let Some(kind) = content_type {
        kept.insert(CONTENT_TYPE.to_owned(), kind.as_bytes().to_vec());
    }
    kept
}

/// What is known of an object.
pub fn file(found: &holdall::Metadata) -> Metadata {
    let text = |name: &str| std::str::from_utf8(found.attributes.get(name)?).ok();
    let mut told = MetadataBuilder::file(found.size);
    told.etag(format!("\"{}\"", found.version));
    if let Some(kind) = text(CONTENT_TYPE) {
        told.content_type(kind);
    }
    if let Some(time) = found.last_modified().and_then(|at| Timestamp::try_from(at).ok()) {
        told.last_modified(time);
    }
    told.build()
}

/// What is known of a folder.
pub fn folder() -> Metadata {
    MetadataBuilder::dir().build()
}
