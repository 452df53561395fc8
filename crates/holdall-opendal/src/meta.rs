//! What is kept of an object beside its bytes: attributes `mtime` and `content-type`, as
//! `holdall serve` has them.

use holdall::Attributes;
use opendal_core::raw::Timestamp;
use opendal_core::{Metadata, MetadataBuilder};
use std::time::{SystemTime, UNIX_EPOCH};

const MTIME: &str = "mtime";
const CONTENT_TYPE: &str = "content-type";

/// The attributes of an object that is put now.
pub fn kept(content_type: Option<&str>) -> Attributes {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut kept = Attributes::from([(MTIME.to_owned(), now.to_string().into_bytes())]);
    if let Some(kind) = content_type {
        kept.insert(CONTENT_TYPE.to_owned(), kind.as_bytes().to_vec());
    }
    kept
}

/// What is told of an object.
pub fn file(found: &holdall::Metadata) -> Metadata {
    let text = |name: &str| std::str::from_utf8(found.attributes.get(name)?).ok();
    let mut told = MetadataBuilder::file(found.size);
    told.etag(format!("\"{}\"", found.version));
    if let Some(kind) = text(CONTENT_TYPE) {
        told.content_type(kind);
    }
    let nanos = text(MTIME).and_then(|text| text.parse::<i64>().ok());
    let time =
        nanos.map(|nanos| (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000)));
    let time = time.and_then(|(s, ns)| Timestamp::new(s, i32::try_from(ns).ok()?).ok());
    if let Some(time) = time {
        told.last_modified(time);
    }
    told.build()
}

/// What is told of a folder.
pub fn folder() -> Metadata {
    MetadataBuilder::dir().build()
}
