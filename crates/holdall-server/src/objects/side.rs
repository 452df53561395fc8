//! Records of the server's own: side records of objects, unfinished uploads.
//!
//! Owns: the collection [`SYSTEM`], whose name no bucket may have; `records.rs` has what lies there
//! of buckets. Its objects are:
//!
//! | name | holds |
//! |---|---|
//! | `about/OID` | what has no room in the object's attributes |
//! | `bucket/NAME` | when the bucket was made, in nanoseconds |
//! | `tags/NAME` | the bucket's tags |
//! | `acl/NAME` | the bucket's ACL, if it opens it |
//! | `cors/NAME` | the bucket's rules for other origins |
//! | `props/NAME` | WebDAV's properties of the collection |
//! | `lock/TOKEN` | a lock of WebDAV |
//! | `upload/BUCKET/ID` | an unfinished upload ([`Upload`]) |
//! | `part/ID/NUMBER` | a part of it |

use crate::objects::meta::{About, Meta};
use holdall::{Metadata, Oid, Reader, Result, WriteTx};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The collection of the server's own records.
pub const SYSTEM: &str = ".s3";

fn about_name(oid: Oid) -> String {
    format!("about/{oid}")
}

/// The system collection of a state; `None` if nothing was put there yet.
pub fn system(reader: &Reader) -> Result<Option<Reader>> {
    match reader.collection(SYSTEM) {
        Ok(found) => Ok(Some(found)),
        Err(holdall::Error::NotFound(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// What is kept of an object that was found, the side record included.
///
/// # Errors
/// Those of reading.
pub fn meta(reader: &Reader, found: &Metadata) -> Result<Meta> {
    let mut meta = Meta::from_metadata(found);
    if meta.needs_side()
        && let Some(system) = system(reader)?
        && let Some(bytes) = system.get(about_name(found.oid))?
    {
        meta.add_side(&bytes);
    }
    Ok(meta)
}

/// As [`meta`], within a transaction.
///
/// # Errors
/// Those of reading.
pub fn meta_in(tx: &mut WriteTx, oid: Oid) -> Result<Meta> {
    let mut meta = Meta::from_metadata(&tx.metadata(oid)?);
    if meta.needs_side()
        && let Some(bytes) = tx.collection(SYSTEM)?.get(about_name(oid))?
    {
        meta.add_side(&bytes);
    }
    Ok(meta)
}

/// Sets an object's side record, or removes what an earlier object of the name left.
///
/// # Errors
/// Those of a transaction.
pub fn set(tx: &mut WriteTx, oid: Oid, side: Option<&[u8]>) -> Result<()> {
    let mut system = tx.collection(SYSTEM)?;
    match side {
        Some(bytes) => system.put(about_name(oid), bytes).map(drop),
        None => system.remove(about_name(oid)).map(drop),
    }
}

/// Removes an object, whose name the current collection has, with its side record. False if
/// there is none.
///
/// # Errors
/// Those of a transaction.
pub fn remove(tx: &mut WriteTx, bucket: &str, key: impl AsRef<[u8]>) -> Result<bool> {
    let key = key.as_ref();
    let Some(oid) = tx.collection(bucket)?.lookup(key)? else { return Ok(false) };
    tx.collection(bucket)?.remove(key)?;
    set(tx, oid, None)?;
    Ok(true)
}

/// Writes what S3 keeps of an object that is there.
///
/// # Errors
/// Those of a transaction.
pub fn set_meta(tx: &mut WriteTx, oid: Oid, meta: &Meta, most: usize) -> Result<()> {
    let (attributes, side) = meta.attributes(most);
    tx.set_attributes(oid, &attributes)?;
    set(tx, oid, side.as_deref())
}

/// Nanoseconds since 1970, as records have them.
pub fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// The time that a record has.
pub fn time(nanos: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// An unfinished multipart upload.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Upload {
    /// The object to be.
    pub key: String,
    /// When it was begun, in nanoseconds since 1970.
    pub begun: u64,
    /// The media type to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The client's properties of the object to be.
    #[serde(default)]
    pub about: About,
    /// The checksum that parts must have, as S3 calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// FULL_OBJECT or COMPOSITE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// If-Match of the object that its completion replaces, as the client wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    /// If-None-Match of that object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches_not: Option<String>,
}

impl Upload {
    /// When it was begun.
    pub fn begun(&self) -> SystemTime {
        time(self.begun)
    }

    /// Sets when it was begun.
    pub fn begin(&mut self, now: SystemTime) {
        self.begun = nanos(now);
    }
}

fn upload_name(bucket: &str, id: &str) -> String {
    format!("upload/{bucket}/{id}")
}

/// The name of a part; names sort as numbers do.
pub fn part_name(id: &str, number: i32) -> String {
    format!("part/{id}/{number:05}")
}

/// Writes the record of an upload.
///
/// # Errors
/// Those of a transaction.
pub fn put_upload(tx: &mut WriteTx, bucket: &str, id: &str, upload: &Upload) -> Result<()> {
    let bytes = serde_json::to_vec(upload).map_err(|e| holdall::Error::Invalid(e.to_string()))?;
    tx.collection(SYSTEM)?.put(upload_name(bucket, id), &bytes).map(drop)
}

fn parse_upload(bytes: &[u8]) -> Option<Upload> {
    serde_json::from_slice(bytes).ok()
}

/// An unfinished upload; `None` if it was finished, given up, or is of another bucket.
///
/// # Errors
/// Those of reading.
pub fn upload(reader: &Reader, bucket: &str, id: &str) -> Result<Option<Upload>> {
    let Some(system) = system(reader)? else { return Ok(None) };
    Ok(system.get(upload_name(bucket, id))?.as_deref().and_then(parse_upload))
}

/// As [`upload`], within a transaction.
///
/// # Errors
/// Those of reading.
pub fn upload_in(tx: &mut WriteTx, bucket: &str, id: &str) -> Result<Option<Upload>> {
    let bytes = tx.collection(SYSTEM)?.get(upload_name(bucket, id))?;
    Ok(bytes.as_deref().and_then(parse_upload))
}

/// Unfinished uploads of a bucket with their ids, or of all buckets.
///
/// # Errors
/// Those of reading.
pub fn uploads(reader: &Reader, bucket: Option<&str>) -> Result<Vec<(String, String, Upload)>> {
    let Some(system) = system(reader)? else { return Ok(Vec::new()) };
    let prefix = bucket.map_or_else(|| "upload/".to_owned(), |b| format!("upload/{b}/"));
    let mut found = Vec::new();
    for entry in system.names(&prefix) {
        let entry = entry?;
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let Some((bucket, id)) = name.strip_prefix("upload/").and_then(|n| n.split_once('/'))
        else {
            continue;
        };
        if let Some(upload) = system.get(entry.oid)?.as_deref().and_then(parse_upload) {
            found.push((bucket.to_owned(), id.to_owned(), upload));
        }
    }
    Ok(found)
}

/// How many unfinished uploads a bucket has.
///
/// # Errors
/// Those of reading.
pub fn count_uploads(reader: &Reader, bucket: &str) -> Result<usize> {
    let Some(system) = system(reader)? else { return Ok(0) };
    let mut count = 0;
    for entry in system.names(format!("upload/{bucket}/")) {
        entry?;
        count += 1;
    }
    Ok(count)
}

/// Parts of an upload as they are: number and object.
///
/// # Errors
/// Those of reading.
pub fn parts(reader: &Reader, id: &str) -> Result<Vec<(i32, Oid)>> {
    let Some(system) = system(reader)? else { return Ok(Vec::new()) };
    let prefix = format!("part/{id}/");
    let number = |name: &[u8]| std::str::from_utf8(&name[prefix.len()..]).ok()?.parse().ok();
    let mut found = Vec::new();
    for entry in system.names(&prefix) {
        let entry = entry?;
        if let Some(number) = number(&entry.name) {
            found.push((number, entry.oid));
        }
    }
    Ok(found)
}

/// Names of parts whose upload is not among `uploads`, and of side records without an object.
/// An upload begun after `reader` has no parts in it.
///
/// # Errors
/// Those of reading.
pub fn nobodys(reader: &Reader, uploads: &BTreeSet<String>) -> Result<Vec<Vec<u8>>> {
    let Some(system) = system(reader)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in system.names("part/") {
        let name = entry?.name;
        let text = String::from_utf8_lossy(&name);
        let id = text.strip_prefix("part/").and_then(|rest| rest.split('/').next());
        if id.is_none_or(|id| !uploads.contains(id)) {
            found.push(name);
        }
    }
    for entry in system.names("about/") {
        let name = entry?.name;
        let text = String::from_utf8_lossy(&name);
        let oid = text.strip_prefix("about/").and_then(|oid| oid.parse::<Oid>().ok());
        let there = match oid.map(|oid| reader.metadata(oid)) {
            Some(Ok(metadata)) => Meta::from_metadata(&metadata).needs_side(),
            Some(Err(holdall::Error::NotFound(_) | holdall::Error::Dangling(_))) | None => false,
            Some(Err(e)) => return Err(e),
        };
        if !there {
            found.push(name);
        }
    }
    Ok(found)
}

/// Removes an upload's record and the parts given.
///
/// # Errors
/// Those of a transaction.
pub fn drop_upload(tx: &mut WriteTx, bucket: &str, id: &str, parts: &[(i32, Oid)]) -> Result<bool> {
    let mut system = tx.collection(SYSTEM)?;
    for (number, _) in parts {
        system.remove(part_name(id, *number))?;
    }
    system.remove(upload_name(bucket, id))
}
