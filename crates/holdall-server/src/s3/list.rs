//! Listings of objects.

use crate::http::xml::is_xml;
use crate::objects::{catalog::Bucket, meta::Meta};
use crate::s3::bucket::owner;
use crate::s3::error::{blocking, from_store};
use crate::s3::{Server, length, timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdall::{ListOptions, Listed};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use s3s::dto::{
    CommonPrefix, ETag, EncodingType, ListObjectVersionsInput, ListObjectVersionsOutput,
    ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output, Object,
    ObjectStorageClass, ObjectVersion, ObjectVersionStorageClass,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

/// Most entries of a page, as S3 has it.
const MOST: i32 = 1000;
/// What `encoding-type=url` leaves as it is.
pub const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// What to list.
#[derive(Debug, Clone, Default)]
struct Asked {
    prefix: String,
    delimiter: String,
    after: Option<Vec<u8>>,
    limit: usize,
}

/// A page of a listing.
#[derive(Debug, Default)]
struct Page {
    objects: Vec<(Vec<u8>, u64, Meta, String)>,
    prefixes: Vec<Vec<u8>>,
    next: Option<Vec<u8>>,
}

impl Asked {
    /// Lists. Blocks. Cost: a step and a record for each entry.
    fn page(&self, bucket: &Bucket) -> S3Result<Page> {
        let reader = bucket.read().map_err(from_store)?;
        let options = ListOptions {
            prefix: self.prefix.as_bytes(),
            start_after: self.after.as_deref(),
            delimiter: (!self.delimiter.is_empty()).then_some(self.delimiter.as_bytes()),
            limit: self.limit,
        };
        let listing = reader.list(&options).map_err(from_store)?;
        let mut page = Page { next: listing.next, ..Page::default() };
        for entry in listing.entries {
            match entry {
                Listed::Prefix(prefix) => page.prefixes.push(prefix),
                Listed::Object(entry) => {
                    let metadata = reader.metadata(entry.oid).map_err(from_store)?;
                    let meta = Meta::from_metadata(&metadata);
                    let etag = meta.etag(metadata.version);
                    page.objects.push((entry.name, metadata.size, meta, etag));
                }
            }
        }
        Ok(page)
    }
}

/// How names are written into the answer.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    url: bool,
}

impl Writer {
    /// As the client asks.
    ///
    /// # Errors
    /// InvalidArgument for an encoding that is not `url`.
    pub fn new(asked: Option<&EncodingType>) -> S3Result<Self> {
        match asked.map(EncodingType::as_str) {
            None => Ok(Self { url: false }),
            Some("url") => Ok(Self { url: true }),
            Some(other) => Err(s3_error!(InvalidArgument, "encoding-type {other:?} is not url")),
        }
    }

    /// A name. One that is not UTF-8 shows whole only if it is encoded.
    pub fn name(self, name: &[u8]) -> String {
        if self.url {
            percent_encode(name, PLAIN).to_string()
        } else {
            String::from_utf8_lossy(name).into_owned()
        }
    }
}

impl Writer {
    /// The name that a listing goes on behind.
    ///
    /// # Errors
    /// InvalidRequest if the answer cannot hold it: with another name the client would go on
    /// elsewhere, and miss objects.
    pub fn marker(self, name: &[u8]) -> S3Result<String> {
        let whole = std::str::from_utf8(name).is_ok_and(|name| name.chars().all(is_xml));
        if self.url || whole {
            return Ok(self.name(name));
        }
        let text = "the page ends at a key that XML cannot hold; list with encoding-type=url";
        Err(s3_error!(InvalidRequest, "{text}"))
    }
}

fn limit(asked: Option<i32>) -> S3Result<(usize, i32)> {
    let max = asked.unwrap_or(MOST);
    let negative = |_| s3_error!(InvalidArgument, "max-keys is negative");
    Ok((usize::try_from(max.min(MOST)).map_err(negative)?, max))
}

fn object((name, size, meta, etag): (Vec<u8>, u64, Meta, String), writer: Writer) -> Object {
    Object {
        key: Some(writer.name(&name)),
        size: Some(length(size)),
        e_tag: Some(ETag::Strong(etag)),
        last_modified: Some(timestamp(meta.modified())),
        storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
        ..Default::default()
    }
}

fn owned(object: Object) -> Object {
    Object { owner: Some(owner()), ..object }
}

/// Common prefixes as they are answered.
pub fn common(prefixes: Vec<Vec<u8>>, writer: Writer) -> Option<Vec<CommonPrefix>> {
    let common = |prefix: Vec<u8>| CommonPrefix { prefix: Some(writer.name(&prefix)) };
    (!prefixes.is_empty()).then(|| prefixes.into_iter().map(common).collect())
}

impl Server {
    async fn page(&self, bucket: &str, asked: Asked) -> S3Result<Page> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || asked.page(&bucket)).await
    }

    pub(super) async fn list(
        &self,
        req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = req.input;
        let writer = Writer::new(input.encoding_type.as_ref())?;
        let (limit, max) = limit(input.max_keys)?;
        let asked = Asked {
            prefix: input.prefix.clone().unwrap_or_default(),
            delimiter: input.delimiter.clone().unwrap_or_default(),
            after: input.marker.clone().filter(|m| !m.is_empty()).map(String::into_bytes),
            limit,
        };
        let page = self.page(&input.bucket, asked).await?;
        let encode = |text: Option<String>| text.map(|t| writer.name(t.as_bytes()));
        // Without a delimiter clients go on behind the last key, which is this one.
        let next = page.next.map(|next| writer.marker(&next)).transpose()?;
        let delimited = input.delimiter.as_ref().is_some_and(|d| !d.is_empty());
        Ok(S3Response::new(ListObjectsOutput {
            name: Some(input.bucket),
            // Clients do not decode it in this version.
            prefix: Some(input.prefix.unwrap_or_default()),
            marker: Some(encode(input.marker).unwrap_or_default()),
            max_keys: Some(max),
            is_truncated: Some(next.is_some()),
            next_marker: next.filter(|_| delimited),
            contents: Some(page.objects.into_iter().map(|o| owned(object(o, writer))).collect()),
            common_prefixes: common(page.prefixes, writer),
            delimiter: encode(input.delimiter.filter(|d| !d.is_empty())),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }

    pub(super) async fn list_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = req.input;
        let writer = Writer::new(input.encoding_type.as_ref())?;
        let (limit, max) = limit(input.max_keys)?;
        let bad = || s3_error!(InvalidArgument, "the continuation token is none of this server");
        let after = match &input.continuation_token {
            Some(token) => Some(URL_SAFE_NO_PAD.decode(token).map_err(|_| bad())?),
            None => input.start_after.clone().filter(|s| !s.is_empty()).map(String::into_bytes),
        };
        let asked = Asked {
            prefix: input.prefix.clone().unwrap_or_default(),
            delimiter: input.delimiter.clone().unwrap_or_default(),
            after,
            limit,
        };
        let page = self.page(&input.bucket, asked).await?;
        let encode = |text: Option<String>| text.map(|t| writer.name(t.as_bytes()));
        let count = page.objects.len() + page.prefixes.len();
        let with_owner = input.fetch_owner.unwrap_or(false);
        let entry = |o| if with_owner { owned(object(o, writer)) } else { object(o, writer) };
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(encode(input.prefix).unwrap_or_default()),
            max_keys: Some(max),
            key_count: i32::try_from(count).ok(),
            continuation_token: input.continuation_token,
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.map(|n| URL_SAFE_NO_PAD.encode(n)),
            contents: Some(page.objects.into_iter().map(entry).collect()),
            common_prefixes: common(page.prefixes, writer),
            delimiter: encode(input.delimiter.filter(|d| !d.is_empty())),
            encoding_type: input.encoding_type,
            start_after: encode(input.start_after),
            ..Default::default()
        }))
    }

    /// Objects as the one version that each has: what clients ask who delete a bucket with all
    /// that is in it.
    pub(super) async fn list_versions(
        &self,
        req: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let input = req.input;
        let writer = Writer::new(input.encoding_type.as_ref())?;
        let (limit, max) = limit(input.max_keys)?;
        let asked = Asked {
            prefix: input.prefix.clone().unwrap_or_default(),
            delimiter: input.delimiter.clone().unwrap_or_default(),
            after: input.key_marker.clone().filter(|m| !m.is_empty()).map(String::into_bytes),
            limit,
        };
        let page = self.page(&input.bucket, asked).await?;
        let version = |entry| {
            let Object { key, size, e_tag, last_modified, .. } = object(entry, writer);
            let class = ObjectVersionStorageClass::STANDARD;
            ObjectVersion {
                key,
                size,
                e_tag,
                last_modified,
                is_latest: Some(true),
                version_id: Some("null".into()),
                storage_class: Some(ObjectVersionStorageClass::from_static(class)),
                ..Default::default()
            }
        };
        let encode = |text: Option<String>| text.map(|t| writer.name(t.as_bytes()));
        let next = page.next.map(|next| writer.marker(&next)).transpose()?;
        Ok(S3Response::new(ListObjectVersionsOutput {
            name: Some(input.bucket),
            prefix: Some(encode(input.prefix).unwrap_or_default()),
            key_marker: Some(encode(input.key_marker).unwrap_or_default()),
            version_id_marker: input.version_id_marker,
            max_keys: Some(max),
            is_truncated: Some(next.is_some()),
            next_version_id_marker: next.is_some().then(|| "null".into()),
            next_key_marker: next,
            versions: Some(page.objects.into_iter().map(version).collect()),
            common_prefixes: common(page.prefixes, writer),
            delimiter: encode(input.delimiter.filter(|d| !d.is_empty())),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }
}

/// The path of an object as an address; `None` if clients, which fold dots, would ask for
/// another one.
pub fn address(bucket: &str, key: &str) -> Option<String> {
    let folds = key.split('/').any(|segment| matches!(segment, "." | ".."));
    (!folds).then(|| format!("/{bucket}/{}", percent_encode(key.as_bytes(), PLAIN)))
}
