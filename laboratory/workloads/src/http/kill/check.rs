//! What must hold after a restart: every answered change is there, every unanswered one is whole
//! or absent, uploads under way can be gone on with, and the list shows what is there.

use super::model::{Found, Object};
use super::work::{KEYS, Worker, get};
use crate::http::client::Client;
use crate::http::content::Content;
use crate::http::sign::BUCKET;
use crate::http::{upload, xml};
use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde::Serialize;
use std::collections::BTreeMap;

/// Something that may not be: the key and what, in words.
pub type Violation = (String, String);

/// Unanswered requests, by what became of them.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Unanswered {
    /// Without effect.
    pub absent: u64,
    /// With their whole effect.
    pub whole: u64,
}

/// Checks one client's keys and goes on with its upload.
///
/// # Errors
/// The first violation.
pub async fn keys(
    worker: &mut Worker,
    client: &mut Client,
    unanswered: &mut Unanswered,
) -> Result<(), Violation> {
    for key in 0..KEYS {
        let name = worker.key(key);
        let told = |text: String| (name.clone(), text);
        let seen = get(client, &name).await.map_err(|e| told(format!("{e:#}")))?;
        let found = worker.entries[key].settle(seen).map_err(told)?;
        match found {
            Some(Found::Old) => unanswered.absent += 1,
            Some(Found::New) => unanswered.whole += 1,
            None => {}
        }
    }
    let Some(under_way) = &worker.upload else { return Ok(()) };
    let name = worker.key(under_way.key);
    go_on(worker, client).await.map_err(|e| (name, format!("{e:#}")))
}

/// Looks at an upload whose last request was not answered, and completes it.
async fn go_on(worker: &mut Worker, client: &mut Client) -> Result<()> {
    let under_way = worker.upload.as_ref().context("no upload")?;
    let (key, id) = (under_way.key, under_way.id.clone());
    let name = worker.key(key);
    let whole = Object::completed(&under_way.parts);
    let now = worker.entries[key].now.as_ref();
    let took_effect = under_way.completing && now.is_some_and(|o| o.etag == whole.etag);
    if !took_effect {
        let found =
            upload::parts(client, &name, &id).await.context("an upload that must be there")?;
        let mut wanted: BTreeMap<u64, &String> =
            (1..).zip(under_way.parts.iter().map(|(_, etag)| etag)).collect();
        for (number, etag) in &found {
            let next = under_way.parts.len() as u64 + 1;
            let right = match wanted.remove(number) {
                Some(answered) => answered == etag,
                None => *number == next && under_way.pending.as_ref() == Some(etag),
            };
            ensure!(right, "part {number} of the upload has the ETag {etag}");
        }
        ensure!(wanted.is_empty(), "answered parts are missing: {wanted:?}");
    }
    if under_way.parts.is_empty() {
        let query = [("uploadId", &*id)];
        let line = client.signer.object(rusty_s3::Method::Delete, &name, &query)?;
        client.done(Method::DELETE, line, Content::none()).await?;
        worker.upload = None;
        return Ok(());
    }
    // One that took effect is answered once more; others take effect now.
    worker.complete(client).await?;
    let seen = get(client, &name).await?;
    worker.entries[key].settle(seen).map(drop).map_err(anyhow::Error::msg)
}

/// Checks that the list shows all keys that are there, and no others.
///
/// # Errors
/// The first violation.
pub async fn list(workers: &[Worker], client: &mut Client) -> Result<(), Violation> {
    let mut wanted = BTreeMap::new();
    for worker in workers {
        for (key, entry) in worker.entries.iter().enumerate() {
            if let Some(object) = &entry.now {
                let etag = object.etag.clone().unwrap_or_default();
                wanted.insert(worker.key(key), (object.bytes.len().to_string(), etag));
            }
        }
    }
    let found = listed(client).await.map_err(|e| ("the list".to_owned(), format!("{e:#}")))?;
    differences(&wanted, &found)
}

type Listed = BTreeMap<String, (String, String)>;

fn differences(wanted: &Listed, found: &Listed) -> Result<(), Violation> {
    for (key, is) in found {
        match wanted.get(key) {
            None => return Err((key.clone(), "it is listed and does not exist".into())),
            Some(must) if must != is => {
                return Err((key.clone(), format!("it is listed as {is:?}, not {must:?}")));
            }
            Some(_) => {}
        }
    }
    match wanted.keys().find(|key| !found.contains_key(*key)) {
        Some(key) => Err((key.clone(), "it exists and is not listed".into())),
        None => Ok(()),
    }
}

/// Size and ETag of all keys, page by page.
async fn listed(client: &mut Client) -> Result<Listed> {
    let mut all = Listed::new();
    let mut after = String::new();
    loop {
        let query = [("list-type", "2"), ("max-keys", "100"), ("start-after", &*after)];
        let line = client.signer.line(rusty_s3::Method::Get, &format!("/{BUCKET}"), &query)?;
        let (_, text) = client.done(Method::GET, line, Content::none()).await?;
        let before = all.len();
        for item in xml::all(&text, "Contents") {
            let field = |name| xml::first(item, name).with_context(|| format!("no {name}: {item}"));
            let etag = xml::etag(field("ETag")?);
            after = field("Key")?.to_owned();
            all.insert(after.clone(), (field("Size")?.to_owned(), etag));
        }
        if xml::first(&text, "IsTruncated") != Some("true") {
            return Ok(all);
        }
        ensure!(all.len() > before, "a page with more behind it brings no key after {after}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_must_show_what_is_there() {
        let of = |pairs: &[(&str, &str)]| -> Listed {
            let entry = |(k, s): &(&str, &str)| ((*k).to_owned(), ((*s).to_owned(), String::new()));
            pairs.iter().map(entry).collect()
        };
        let wanted = of(&[("a", "1"), ("b", "2")]);
        assert!(differences(&wanted, &wanted).is_ok());
        for bad in [of(&[("a", "1")]), of(&[("a", "1"), ("b", "3")])] {
            assert!(differences(&wanted, &bad).is_err_and(|(key, _)| key == "b"));
        }
        let more = of(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert!(differences(&wanted, &more).is_err_and(|(key, _)| key == "c"));
    }
}
