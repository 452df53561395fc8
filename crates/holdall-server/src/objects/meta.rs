//! What S3 keeps of an object beside its bytes, and where.
//!
//! Owns: [`Meta`], [`About`], [`OfBytes`]. They lie in the object's attributes:
//!
//! | attribute | holds |
//! |---|---|
//! | `mtime` | last change in nanoseconds since 1970, if a client or the command line set it; else the engine's time counts |
//! | `content-type` | the media type |
//! | `s3` | [`About`] as JSON: the client's properties of the object |
//! | `#s3` | [`OfBytes`] as JSON: ETag, checksums, parts; the engine drops it with an edit |
//!
//! What has no room there lies in a side record of the system collection (`side.rs`), changed in
//! the same transaction.
//!
//! What belongs to the bytes and what to the object is decided here, for all doors:
//!
//! | belongs to | what | a put of bytes alone (WebDAV, the page) | an edit of a range |
//! |---|---|---|---|
//! | these very bytes | ETag, checksums, parts, metadata that [`describes_bytes`] | gone | gone |
//! | their form | media type, Content-Encoding, Content-Language | as the put says | stays |
//! | the object | tags, ACL, other metadata, properties, Cache-Control, Content-Disposition, Expires | stays | stays |
//!
//! A put over S3 or by the command line makes the object anew: nothing stays but what it says.

use crate::http::{date, digest::Sums};
use crate::objects::acl::Acl;
use holdall::{Attributes, Metadata, Version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

const MTIME: &str = "mtime";
const CONTENT_TYPE: &str = "content-type";
const ABOUT: &str = "s3";
const OF_BYTES: &str = "#s3";

/// Metadata by which clients describe the bytes that they put: times and sums of the file that
/// they came from, as rclone, s3cmd, s3fs and gsutil write them.
const DESCRIBE: [&str; 11] = [
    "atime",
    "btime",
    "ctime",
    "goog-reserved-file-mtime",
    "md5",
    "md5chksum",
    "mtime",
    "s3cmd-attrs",
    "sha1",
    "sha256",
    "x-amz-content-sha256",
];
/// What keys of clients that encrypt begin with: they open these bytes only.
const ENVELOPE: &str = "x-amz-";

/// Whether metadata of this name, without `x-amz-meta-`, describes the very bytes: with others it
/// would lie, and a client that compares times would not send the object again.
pub fn describes_bytes(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DESCRIBE.contains(&name.as_str()) || name.starts_with(ENVELOPE)
}

/// A client's properties of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// The header Cache-Control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// The header Content-Disposition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disposition: Option<String>,
    /// The header Content-Encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The header Content-Language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The header Expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
    /// The header Expires as it came, if it is no date: the past, as HTTP has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_text: Option<String>,
    /// The headers x-amz-meta-*.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user: BTreeMap<String, String>,
    /// The tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// The ACL.
    #[serde(skip_serializing_if = "Acl::is_private")]
    pub acl: Acl,
    /// Properties that WebDAV's clients set: name with namespace to the element as XML.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub props: BTreeMap<String, String>,
    /// Whether the rest lies in the side record.
    #[serde(skip_serializing_if = "is_false")]
    pub side: bool,
}

impl About {
    /// What stays if other bytes are put.
    pub fn without_bytes(mut self) -> Self {
        (self.encoding, self.language) = (None, None);
        self.user.retain(|name, _| !describes_bytes(name));
        self
    }

    /// What is kept of the header Expires: a date, or a text that is none, which is the past.
    pub fn expiring(header: Option<&str>, field: Option<OffsetDateTime>) -> Self {
        let expires = header.map_or(field, date::parse).map(OffsetDateTime::unix_timestamp);
        let expires_text = header.filter(|_| expires.is_none()).map(str::to_owned);
        Self { expires, expires_text, ..Self::default() }
    }

    /// The header Expires as the client wrote it.
    pub fn expires_text(&self) -> Option<String> {
        let seconds = || OffsetDateTime::from_unix_timestamp(self.expires?).ok();
        self.expires_text.clone().or_else(|| date::text(SystemTime::from(seconds()?)))
    }

    /// What holds once other bytes are put, of whose form, and of the object, the put says `said`.
    pub fn after_put(self, said: Self) -> Self {
        let mut about = self.without_bytes();
        (about.encoding, about.language) = (said.encoding, said.language);
        about.disposition = said.disposition.or(about.disposition);
        if said.expires.is_some() || said.expires_text.is_some() {
            (about.expires, about.expires_text) = (said.expires, said.expires_text);
        }
        about
    }
}

/// A part of a multipart upload, as the completed object remembers it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartInfo {
    /// Its number, which the client chose.
    pub number: i32,
    /// Its size in bytes.
    pub size: u64,
    /// Its checksums.
    #[serde(default, skip_serializing_if = "Sums::is_empty")]
    pub sums: Sums,
}

/// What is derived from an object's bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfBytes {
    /// The ETag without quotes.
    pub etag: String,
    /// Checksums that a client asked for.
    #[serde(skip_serializing_if = "Sums::is_empty")]
    pub sums: Sums,
    /// Whether the checksums are of the parts' checksums, not of the bytes.
    #[serde(skip_serializing_if = "is_false")]
    pub composite: bool,
    /// The upload it was completed from, by which a repeated completion is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload: Option<String>,
    /// The parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartInfo>,
    /// Of the headers x-amz-meta-* those that describe the bytes, while they are stored: in
    /// [`Meta`] they stand among the others.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user: BTreeMap<String, String>,
    /// Whether checksums and parts lie in the side record.
    #[serde(skip_serializing_if = "is_false")]
    pub side: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// What a side record holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    about: About,
    of_bytes: OfBytes,
}

/// What S3 keeps of an object beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    /// Last change: as a client set it, else as the engine keeps it.
    pub modified: Option<SystemTime>,
    /// Media type.
    pub content_type: Option<String>,
    /// The client's properties of it.
    pub about: About,
    /// What is derived from its bytes; none after a range edit, or if the engine put it.
    pub of_bytes: Option<OfBytes>,
}

impl Meta {
    /// Reads what is known of an object. What lies in the side record is missing still if
    /// [`Meta::needs_side`] says so.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self { modified: metadata.last_modified(), ..Self::said(&metadata.attributes) }
    }

    /// What attributes say.
    fn said(attributes: &Attributes) -> Self {
        let text = |key: &str| std::str::from_utf8(attributes.get(key)?).ok();
        let mut meta = Self {
            modified: text(MTIME).and_then(time_of),
            content_type: text(CONTENT_TYPE).map(str::to_owned),
            about: text(ABOUT).and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default(),
            of_bytes: text(OF_BYTES).and_then(|t| serde_json::from_str(t).ok()),
        };
        meta.join();
        meta
    }

    /// Puts all properties that clients set into one place.
    fn join(&mut self) {
        let of_bytes = self.of_bytes.as_mut().map(|b| std::mem::take(&mut b.user));
        self.about.user.extend(of_bytes.unwrap_or_default());
    }

    /// Puts what describes the bytes to what the engine drops with them.
    fn split(&self) -> (About, Option<OfBytes>) {
        let (mut about, mut of_bytes) = (self.about.clone(), self.of_bytes.clone());
        if let Some(of_bytes) = &mut of_bytes {
            let user = std::mem::take(&mut about.user).into_iter();
            (of_bytes.user, about.user) = user.partition(|(name, _)| describes_bytes(name));
        }
        (about, of_bytes)
    }

    /// Whether a part lies in the side record.
    pub fn needs_side(&self) -> bool {
        self.about.side || self.of_bytes.as_ref().is_some_and(|b| b.side)
    }

    /// Completes it by the side record. A record that cannot be read adds nothing.
    pub fn add_side(&mut self, bytes: &[u8]) {
        let Ok(side) = serde_json::from_slice::<Side>(bytes) else { return };
        if self.about.side {
            self.about = About { side: false, ..side.about };
        }
        if let Some(of_bytes) = self.of_bytes.as_mut().filter(|b| b.side) {
            let (etag, upload) = (std::mem::take(&mut of_bytes.etag), of_bytes.upload.take());
            *of_bytes = OfBytes { side: false, etag, upload, ..side.of_bytes };
        }
        self.join();
    }

    /// The attributes that keep it, in at most `most` bytes, and the side record for what has
    /// no room there.
    pub fn attributes(&self, most: usize) -> (Attributes, Option<Vec<u8>>) {
        let (about, of_bytes) = self.split();
        let whole = self.encode(&about, of_bytes.as_ref());
        // Lengths of keys and values take two bytes each at most.
        let len: usize = whole.iter().map(|(key, value)| key.len() + value.len() + 4).sum();
        if len <= most {
            return (whole, None);
        }
        let side = Side { about, of_bytes: of_bytes.unwrap_or_default() };
        let about = About { side: true, ..About::default() };
        let of_bytes = self.of_bytes.as_ref().map(|b| OfBytes {
            etag: b.etag.clone(),
            upload: b.upload.clone(),
            side: true,
            ..OfBytes::default()
        });
        // Strings and numbers always become JSON.
        let bytes = serde_json::to_vec(&side).unwrap_or_default();
        (self.encode(&about, of_bytes.as_ref()), Some(bytes))
    }

    fn encode(&self, about: &About, of_bytes: Option<&OfBytes>) -> Attributes {
        let mut out = Attributes::new();
        if let Some(modified) = self.modified {
            out.insert(MTIME.into(), nanos(modified).to_string().into_bytes());
        }
        if let Some(kind) = &self.content_type {
            out.insert(CONTENT_TYPE.into(), kind.clone().into_bytes());
        }
        if *about != About::default() {
            out.insert(ABOUT.into(), serde_json::to_vec(about).unwrap_or_default());
        }
        if let Some(of_bytes) = of_bytes {
            out.insert(OF_BYTES.into(), serde_json::to_vec(of_bytes).unwrap_or_default());
        }
        out
    }

    /// The ETag without quotes: the stored one, or after a range edit and for objects of the
    /// engine one derived from the version, whose hyphens keep it from being taken for an MD5.
    pub fn etag(&self, version: Version) -> String {
        self.of_bytes.as_ref().map_or_else(|| version.to_string(), |b| b.etag.clone())
    }

    /// The last change; 1970 if it is not known, so that it does not change by itself.
    pub fn modified(&self) -> SystemTime {
        self.modified.unwrap_or(UNIX_EPOCH)
    }
}

/// The ETag of an object by its metadata alone.
pub fn etag_of(metadata: &Metadata) -> String {
    Meta::from_metadata(metadata).etag(metadata.version)
}

fn time_of(text: &str) -> Option<SystemTime> {
    let nanos: i128 = text.parse().ok()?;
    let distance = Duration::from_nanos(u64::try_from(nanos.unsigned_abs()).ok()?);
    if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

fn nanos(time: SystemTime) -> i128 {
    let signed = |d: Duration| i128::try_from(d.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => signed(after),
        Err(before) => -signed(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large() -> Meta {
        let parts = (1..=200)
            .map(|number| PartInfo { number, size: 5 << 20, sums: Sums::default() })
            .collect();
        let user = BTreeMap::from([("camera".into(), "x".repeat(1900))]);
        Meta {
            modified: Some(UNIX_EPOCH + Duration::from_nanos(12)),
            content_type: Some("image/png".into()),
            about: About { user, ..About::default() },
            of_bytes: Some(OfBytes { etag: "00-200".into(), parts, ..OfBytes::default() }),
        }
    }

    #[test]
    fn what_fits_the_attributes_needs_no_side_record() {
        let mut meta = large();
        meta.about.user.clear();
        meta.of_bytes.as_mut().unwrap().parts.clear();
        let (attributes, side) = meta.attributes(1024);
        assert!(side.is_none());
        assert_eq!(Meta::said(&attributes), meta);
    }

    #[test]
    fn what_does_not_fit_comes_back_from_the_side_record() {
        let meta = large();
        let (attributes, side) = meta.attributes(1024);
        let mut back = Meta::said(&attributes);
        assert!(back.needs_side());
        back.add_side(&side.unwrap());
        assert_eq!(back, meta);
    }

    #[test]
    fn what_describes_the_bytes_goes_with_them() {
        let mut meta = large();
        for name in ["mtime", "Md5chksum", "s3cmd-attrs", "x-amz-key-v2"] {
            meta.about.user.insert(name.into(), "1".into());
        }
        for most in [8192, 1024] {
            let (mut attributes, side) = meta.attributes(most);
            let read = |attributes: &Attributes| {
                let mut back = Meta::said(attributes);
                side.iter().for_each(|side| back.add_side(side));
                back
            };
            assert_eq!(read(&attributes), meta);
            attributes.remove(OF_BYTES);
            assert_eq!(read(&attributes).about, large().about);
        }
        assert_eq!(meta.about.without_bytes(), large().about);
    }

    #[test]
    fn an_edit_of_the_bytes_drops_what_was_derived_from_them_only() {
        let (mut attributes, side) = large().attributes(1024);
        attributes.remove(OF_BYTES);
        let mut back = Meta::said(&attributes);
        back.add_side(&side.unwrap());
        assert_eq!(back.about, large().about);
        assert_eq!(back.of_bytes, None);
    }
}
