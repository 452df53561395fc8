//! A prefix of a bucket of an S3 server.
//!
//! Owns: [`S3`], which sends what [`Backend`] asks for, and says what the answers mean. Conditional
//! writes are sent once, whatever becomes of them; all else is tried again. Keys go to the server as
//! they are, byte by byte. Tags are kept without quotes, and quoted again as the server needs it.

use super::{Backend, Body, Features, Found, Got, Listed, Page, Put, Tag};
use crate::access::Access;
use crate::address::{Address, Tries};
use crate::refusal::{for_good, names_bucket, refused, told};
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use holdall::{Error, Result};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::signer::{Method, SignedUrlOptions, Signer};
use object_store::{
    GetOptions, GetRange, GetResult, HeaderValue, ListResult, ObjectStore, ObjectStoreExt, PutMode,
    PutPayload, UpdateVersion,
};
use reqwest::header::IF_MATCH;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Most keys of a page that servers give.
const MOST_LISTED: usize = 1000;
/// How often is asked for what the client itself does not try again: an answer that breaks off, a
/// deletion that nothing answers.
const AGAIN: usize = 3;
/// What is waited before each, behind the client's own tries: a server that is started again takes some
/// seconds, and a failed read costs a collector its whole cycle.
const PAUSES: [Duration; AGAIN - 1] = [Duration::from_millis(100), Duration::from_secs(3)];
/// No more begins after this.
const ASKING: Duration = Duration::from_secs(60);
/// How long a signed deletion is good, and how long its answer is waited for.
const SIGNED: Duration = Duration::from_secs(60);
const ANSWERED: Duration = Duration::from_secs(30);
/// Comes behind all that follows a delimiter.
const LAST: char = '\u{10FFFF}';

/// How a server wants tags in the conditions of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quoting {
    /// In quotes, as HTTP has it.
    #[default]
    Quoted,
    /// Bare.
    Bare,
}

/// A prefix of a bucket of an S3 server. Clones share their connections.
///
/// Its futures run on a tokio runtime of the caller's, with time and network.
#[derive(Debug, Clone)]
pub struct S3 {
    name: String,
    /// Empty, or ends with `/`.
    prefix: String,
    once: AmazonS3,
    several: AmazonS3,
    http: reqwest::Client,
    quoting: Quoting,
    delete_if: bool,
}

impl S3 {
    /// The place `s3://BUCKET/PREFIX`. Nothing is asked of the server yet; what it does with conditions
    /// [`probe`](crate::probe) finds out. Until then tags are quoted, and [`Backend::delete_if`] is not
    /// offered: servers that do not know it delete whatever the tag.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no such place, or what `access` names is not understood.
    pub fn open(place: &str, access: &Access) -> Result<Self> {
        let address = Address::parse(place)?;
        // One deletion a request: some servers have no other.
        let builder = address.builder(access)?.with_disable_bulk_delete(true);
        let once = address.client(builder.clone(), Tries::Once)?;
        let several = address.client(builder, Tries::Several)?;
        let http = reqwest::Client::builder().timeout(ANSWERED).build();
        let http = http.map_err(|e| Error::Invalid(format!("{place}: {}", told(&e))))?;
        let mut prefix = address.prefix.as_ref().to_owned();
        if !prefix.is_empty() {
            prefix.push('/');
        }
        let (quoting, delete_if) = (Quoting::default(), false);
        Ok(Self { name: place.to_owned(), prefix, once, several, http, quoting, delete_if })
    }

    /// What it was opened as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How tags are written.
    pub fn quoting(&self) -> Quoting {
        self.quoting
    }

    /// The same, with tags written so.
    pub fn with_quoting(self, quoting: Quoting) -> Self {
        Self { quoting, ..self }
    }

    /// The same, where the server is known to heed the tag of a deletion, or not to. AWS says it does; others
    /// look first and then delete, which loses what was written between.
    pub fn with_delete_if(self, delete_if: bool) -> Self {
        Self { delete_if, ..self }
    }

    fn path(&self, key: &str) -> Result<Path> {
        let full = format!("{}{key}", self.prefix);
        match Path::parse(&full) {
            Ok(path) if path.as_ref() == full && !path.is_root() => Ok(path),
            _ => Err(Error::Invalid(format!("no key of a bucket: {key}"))),
        }
    }

    fn written(&self, tag: &Tag) -> String {
        match self.quoting {
            Quoting::Quoted => quoted(tag),
            Quoting::Bare => tag.0.clone(),
        }
    }

    /// The conditional write itself, with its answer in the server's words.
    async fn put_once(
        &self,
        path: &Path,
        expected: Option<&Tag>,
        bytes: Bytes,
    ) -> object_store::Result<Option<String>> {
        let mode = expected.map_or(PutMode::Create, |tag| {
            PutMode::Update(UpdateVersion { e_tag: Some(self.written(tag)), version: None })
        });
        let put = self.once.put_opts(path, PutPayload::from_bytes(bytes), mode.into()).await?;
        Ok(put.e_tag)
    }
}

/// A tag as HTTP has it.
fn quoted(tag: &Tag) -> String {
    if tag.0.starts_with("W/") { tag.0.clone() } else { format!("\"{}\"", tag.0) }
}

/// A tag without its quotes, so that those of answers and listings are the same.
fn bare(given: &str) -> Tag {
    let inner = given.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    Tag(inner.unwrap_or(given).to_owned())
}

/// Whether a key is one that a server uses for itself: keys of a store have no component that begins
/// with a dot. Versity's gateway gives a record such a name for the moment in which it replaces the old
/// one, for ever if it is killed then.
fn is_servers(key: &str) -> bool {
    key.split('/').any(|component| component.starts_with('.'))
}

/// Asks until there is an answer, or it is too late.
async fn again<T, A>(ask: impl Fn() -> A) -> object_store::Result<T>
where
    A: Future<Output = object_store::Result<T>>,
{
    let started = Instant::now();
    let mut left = AGAIN;
    loop {
        left -= 1;
        match ask().await {
            Err(e) if left > 0 && passing(&e) && started.elapsed() < ASKING => {
                tokio::time::sleep(PAUSES[AGAIN - 1 - left]).await;
            }
            answer => return answer,
        }
    }
}

/// Whether it may be otherwise another time.
fn passing(e: &object_store::Error) -> bool {
    matches!(e, object_store::Error::Generic { .. }) && !for_good(e)
}

/// A failure of a client that the client would not report as such.
fn broken(what: String) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: what.into() }
}

/// All that was asked for, or an error.
async fn read(got: GetResult) -> object_store::Result<Found> {
    let (asked, len) = (got.range.end.saturating_sub(got.range.start), got.meta.size);
    let date = got.meta.last_modified.timestamp_millis();
    let tag = got.meta.e_tag.as_deref().map(bare);
    let tag = tag.ok_or_else(|| broken("the answer has no ETag".into()))?;
    let parts: Vec<Bytes> = got.into_stream().try_collect().await?;
    let bytes = Body::from(parts);
    if bytes.len() as u64 != asked {
        return Err(broken(format!("{} bytes came, {asked} were asked for", bytes.len())));
    }
    Ok(Found { bytes, len, tag, date: u64::try_from(date).unwrap_or(0) })
}

#[async_trait]
impl Backend for S3 {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        let path = self.path(key)?;
        // Reads know quotes everywhere, whatever writes want.
        let unless = unless.map(quoted);
        let asked = || async {
            let options = GetOptions {
                range: range.clone().map(GetRange::Bounded),
                if_none_match: unless.clone(),
                ..GetOptions::default()
            };
            let answer = read(self.several.get_opts(&path, options).await?).await;
            // After a broken-off answer the client asks for the rest, which what is there since may lack.
            answer.map_err(|e| match for_good(&e) {
                true => broken(format!("{key} was replaced while it was read")),
                false => e,
            })
        };
        match again(asked).await {
            Ok(found) => Ok(Got::Found(found)),
            Err(object_store::Error::NotModified { .. }) => Ok(Got::Same),
            Err(object_store::Error::NotFound { source, .. }) if !names_bucket(&*source) => {
                Ok(Got::Absent)
            }
            Err(e) => Err(refused(&self.name, &format!("reading {key}"), e)),
        }
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        let put = || self.several.put(&path, PutPayload::from_bytes(bytes.clone()));
        again(put).await.map(drop).map_err(|e| refused(&self.name, &format!("writing {key}"), e))
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        use object_store::Error as E;
        let path = self.path(key)?;
        match self.put_once(&path, expected, bytes).await {
            Ok(Some(tag)) => Ok(Put::Done(bare(&tag))),
            Ok(None) => Ok(Put::Unknown("the answer has no ETag".into())),
            Err(e) if for_good(&e) => Err(refused(&self.name, &format!("writing {key}"), e)),
            Err(E::AlreadyExists { .. } | E::Precondition { .. } | E::NotModified { .. }) => {
                Ok(Put::NotDone)
            }
            Err(e) => Ok(Put::Unknown(told(&e))),
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match again(|| self.several.delete(&path)).await {
            Ok(()) => Ok(()),
            Err(object_store::Error::NotFound { source, .. }) if !names_bucket(&*source) => Ok(()),
            Err(e) => Err(refused(&self.name, &format!("deleting {key}"), e)),
        }
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        let path = self.path(key)?;
        let action = format!("deleting {key}");
        let tag = HeaderValue::from_str(&self.written(tag));
        let tag = tag.map_err(|e| Error::Invalid(format!("{action}: its tag: {e}")))?;
        // The client has no conditional deletion; it signs what another sends.
        let options = SignedUrlOptions::new().with_signed_header(IF_MATCH, tag.clone());
        let url = self.several.signed_url_opts(Method::DELETE, &path, SIGNED, &options).await;
        let url = url.map_err(|e| refused(&self.name, &action, e))?;
        let Ok(answer) = self.http.delete(url).header(IF_MATCH, tag).send().await else {
            return Ok(false);
        };
        let status = answer.status();
        if status.is_success() {
            return Ok(true);
        }
        let text = answer.text().await.unwrap_or_default();
        let text = format!("Server returned non-2xx status code: {status}: {text}");
        let e = match status.as_u16() {
            401 | 403 => object_store::Error::PermissionDenied {
                path: path.to_string(),
                source: text.into(),
            },
            404 | 409 | 412 if !text.contains("NoSuchBucket") => return Ok(false),
            _ => broken(text),
        };
        if for_good(&e) { Err(refused(&self.name, &action, e)) } else { Ok(false) }
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        let full = format!("{}{prefix}", self.prefix);
        let offset = after.map(|after| {
            // What is in a folder comes behind its name, and would show it once more.
            let last = (folders && after.ends_with('/')).then_some(LAST);
            format!("{}{after}{}", self.prefix, last.map_or_else(String::new, String::from))
        });
        let failed = |e| refused(&self.name, &format!("listing {full}"), e);
        let mut token = None;
        loop {
            let asked = || {
                let options = PaginatedListOptions {
                    offset: offset.clone(),
                    delimiter: folders.then_some("/".into()),
                    max_keys: Some(limit.clamp(1, MOST_LISTED)),
                    page_token: token.clone(),
                    ..PaginatedListOptions::default()
                };
                self.several.list_paginated(Some(&full), options)
            };
            let got = again(asked).await.map_err(failed)?;
            let mut page = self.page(got.result, prefix, after).map_err(failed)?;
            let last = page.keys.last().map(|listed| &listed.key).max(page.folders.last());
            page.next = got.page_token.as_ref().and(last.cloned());
            // A page may hold nothing of ours and not be the last.
            if page.next.is_some() || got.page_token.is_none() {
                return Ok(page);
            }
            token = got.page_token;
        }
    }

    fn features(&self) -> Features {
        Features { delete_if: self.delete_if }
    }
}

impl S3 {
    /// What a page of a listing says.
    ///
    /// # Errors
    /// If it has what it should not have, or is out of order: nobody can tell what it lacks.
    fn page(
        &self,
        listed: ListResult,
        prefix: &str,
        after: Option<&str>,
    ) -> object_store::Result<Page> {
        let own = |full: &str| full.strip_prefix(self.prefix.as_str()).map(str::to_owned);
        let mut page = Page::default();
        let mut last = after.map(str::to_owned);
        let wrong = |key: &str| broken(format!("the server lists {key} out of place"));
        for meta in listed.objects {
            let full = meta.location.as_ref();
            let key = own(full).unwrap_or_default();
            if is_servers(&key) {
                continue;
            }
            if !key.starts_with(prefix) || last.as_ref().is_some_and(|last| *last >= key) {
                // Consoles show folders by making an empty object, whose `/` the client drops.
                if meta.size == 0 {
                    continue;
                }
                return Err(wrong(full));
            }
            let tag = meta.e_tag.as_deref().map(bare);
            let tag = tag.ok_or_else(|| broken(format!("the listing gives no ETag of {full}")))?;
            let date = u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0);
            page.keys.push(Listed { key: key.clone(), len: meta.size, tag, date });
            last = Some(key);
        }
        let mut last = after.map(str::to_owned);
        for path in listed.common_prefixes {
            let folder = format!("{}/", own(path.as_ref()).unwrap_or_default());
            if after == Some(folder.as_str()) || is_servers(&folder) {
                continue;
            }
            if !folder.starts_with(prefix) || last.as_ref().is_some_and(|last| *last >= folder) {
                return Err(wrong(path.as_ref()));
            }
            page.folders.push(folder.clone());
            last = Some(folder);
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_to_the_server_as_they_are() {
        let access = Access { endpoint: Some("http://127.0.0.1:1".into()), ..Access::default() };
        for (place, prefix) in [("s3://b", ""), ("s3://b/x/y%20", "x/y%20/")] {
            let s3 = S3::open(place, &access).unwrap();
            for key in ["holdall", "n/c/a%2Fb!", "n/c/%_/a!", "n/c/%2E./\u{e9}~!", "b/00/x/1"] {
                assert_eq!(s3.path(key).unwrap().as_ref(), format!("{prefix}{key}"));
            }
            for key in ["", "a/", "/a", "a//b", "../a", "a\n"] {
                assert!(matches!(s3.path(key), Err(Error::Invalid(_))), "{key}");
            }
        }
    }

    #[test]
    fn what_a_server_keeps_for_itself_is_not_listed() {
        let access = Access { endpoint: Some("http://127.0.0.1:1".into()), ..Access::default() };
        let s3 = S3::open("s3://b/.x", &access).unwrap();
        let meta = |key: &str| object_store::ObjectMeta {
            location: Path::parse(format!(".x/{key}")).unwrap(),
            last_modified: std::time::UNIX_EPOCH.into(),
            size: 8,
            e_tag: Some("\"t\"".into()),
            version: None,
        };
        let objects = ["n/c/.a!.tmp.7", "n/c/%2Ea!", "n/c/a.b!"].map(meta).into();
        let common_prefixes = [".x/n/.tmp", ".x/n/c"].map(|f| Path::parse(f).unwrap()).into();
        let listed = ListResult { objects, common_prefixes, extensions: Default::default() };
        let page = s3.page(listed, "n/", None).unwrap();
        let keys: Vec<&str> = page.keys.iter().map(|listed| &*listed.key).collect();
        assert_eq!(keys, ["n/c/%2Ea!", "n/c/a.b!"]);
        assert_eq!(page.folders, ["n/c/"]);
    }

    #[test]
    fn tags_are_the_same_however_they_are_written() {
        assert_eq!(bare("\"a-1\""), bare("a-1"));
        assert_eq!(quoted(&bare("\"a-1\"")), "\"a-1\"");
        assert_eq!(quoted(&bare("W/\"a\"")), "W/\"a\"");
    }
}
