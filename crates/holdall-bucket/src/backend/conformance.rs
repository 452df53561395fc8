//! Whether a backend does what a bucket store asks of it.
//!
//! Owns: [`check`], which each implementation of [`Backend`] runs in a test. It does not race;
//! the probe of a store does.

use super::{Backend, Got, Put};
use bytes::Bytes;
use holdall::{Error, Result};

/// Asks a backend all that a store asks of it, below `prefix`, which holds nothing; what it writes is
/// deleted in the end.
///
/// # Errors
/// [`Error::Invalid`] with what was asked and what came; those of the backend.
pub async fn check(backend: &dyn Backend, prefix: &str) -> Result<()> {
    contents(backend, prefix).await?;
    conditions(backend, prefix).await?;
    listings(backend, prefix).await?;
    let mut after = None;
    loop {
        let page = backend.list(prefix, after.as_deref(), false, 1000).await?;
        for key in &page.keys {
            backend.delete(&key.key).await?;
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn require(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Invalid(format!("the backend fails: {what}"))) }
}

async fn contents(backend: &dyn Backend, prefix: &str) -> Result<()> {
    let key = format!("{prefix}b/00/x/1");
    require(backend.get(&key, None, None).await? == Got::Absent, "a new key holds nothing")?;
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    backend.put_new(&key, Bytes::from(bytes.clone())).await?;
    let Got::Found(found) = backend.get(&key, None, None).await? else {
        return require(false, "what was written is found");
    };
    require(found.bytes == bytes && found.len == bytes.len() as u64, "it holds what was written")?;
    require(found.date > 1_000_000_000_000, "it has a date")?;
    let got = backend.get(&key, None, Some(&found.tag)).await?;
    require(got == Got::Same, "it is the same by its tag")?;
    for range in [0..1, 1..2, 99_999..100_000, 40..16_384, 0..100_000, 99_000..200_000] {
        let got = backend.get(&key, Some(range.clone()), None).await?;
        let Got::Found(part) = got else { return require(false, "a range is found") };
        let expected = &bytes[range.start as usize..bytes.len().min(range.end as usize)];
        require(part.bytes == expected, &format!("bytes {range:?}"))?;
        require(part.len == bytes.len() as u64, "a range tells the whole length")?;
        require(part.tag == found.tag, "a range has the tag of the whole")?;
    }
    backend.delete(&key).await?;
    require(backend.get(&key, None, None).await? == Got::Absent, "what was deleted is gone")?;
    backend.delete(&key).await
}

async fn conditions(backend: &dyn Backend, prefix: &str) -> Result<()> {
    let key = format!("{prefix}n/c/name%2Fwith%20signs!");
    let put = |tag, text: &'static [u8]| backend.put_if(&key, tag, Bytes::from_static(text));
    let Put::Done(first) = put(None, b"1").await? else {
        return require(false, "what is absent can be created");
    };
    require(put(None, b"2").await? == Put::NotDone, "what is there cannot be created")?;
    let Put::Done(second) = put(Some(&first), b"3").await? else {
        return require(false, "it can be replaced by its tag");
    };
    require(put(Some(&first), b"4").await? == Put::NotDone, "an old tag replaces nothing")?;
    let Got::Found(found) = backend.get(&key, None, None).await? else {
        return require(false, "what was replaced is found");
    };
    require(found.bytes == b"3"[..] && found.tag == second, "a refused write changes nothing")?;
    let absent = format!("{key}x");
    let never = backend.put_if(&absent, Some(&first), Bytes::from_static(b"5")).await?;
    require(!matches!(never, Put::Done(_)), "what is absent has no tag")?;
    if backend.features().delete_if {
        let deleted = backend.delete_if(&key, &first).await?;
        let got = backend.get(&key, None, None).await?;
        require(!deleted && matches!(got, Got::Found(_)), "an old tag deletes nothing")?;
        let deleted = backend.delete_if(&key, &second).await?;
        let got = backend.get(&key, None, None).await?;
        require(deleted && got == Got::Absent, "its tag deletes it")?;
    }
    backend.delete(&key).await
}

async fn listings(backend: &dyn Backend, prefix: &str) -> Result<()> {
    let names = ["a!", "a/%_/b!", "a/b!", "a/x!", "b!", "c/d!", "c/e/f!", "\u{e9}!"];
    let keys: Vec<String> = names.iter().map(|name| format!("{prefix}n/l/{name}")).collect();
    for key in &keys {
        let put = backend.put_if(key, None, Bytes::copy_from_slice(key.as_bytes())).await?;
        require(matches!(put, Put::Done(_)), &format!("{key} can be created"))?;
    }
    let folder = format!("{prefix}n/l/");
    for limit in [1, 2, 3, 1000] {
        let (all, _) = collect(backend, &folder, false, limit).await?;
        require(all == keys, &format!("a listing of {limit} at a time: {all:?}"))?;
        let (flat, folders) = collect(backend, &folder, true, limit).await?;
        let expected = [&keys[0], &keys[4], &keys[7]];
        require(flat.iter().eq(expected), &format!("keys beside folders: {flat:?}"))?;
        let expected = ["a/", "c/"].map(|name| format!("{folder}{name}"));
        require(folders == expected, &format!("folders: {folders:?}"))?;
    }
    let (part, _) = collect(backend, &format!("{folder}a/"), false, 1000).await?;
    require(part == keys[1..4], "a listing of a folder")?;
    let (part, _) = collect(backend, &format!("{folder}c"), false, 1000).await?;
    require(part == keys[5..7], "a listing by part of a component")?;
    let page = backend.list(&folder, Some(&keys[3]), false, 1000).await?;
    require(page.keys.iter().map(|k| &k.key).eq(&keys[4..]), "a listing behind a key")?;
    let page = backend.list(&folder, Some(&format!("{folder}a0")), false, 1000).await?;
    require(page.keys.iter().map(|k| &k.key).eq(&keys[4..]), "a listing behind what is no key")?;
    let Got::Found(found) = backend.get(&keys[0], None, None).await? else {
        return require(false, "a key of a listing is found");
    };
    let page = backend.list(&folder, None, false, 1).await?;
    let first = page.keys.first();
    let same = first.is_some_and(|l| l.len == found.len && l.tag == found.tag);
    require(same, &format!("lengths and tags of a listing: {first:?}"))
}

/// All keys and folders, in pages of `limit`.
async fn collect(
    backend: &dyn Backend,
    prefix: &str,
    folders: bool,
    limit: usize,
) -> Result<(Vec<String>, Vec<String>)> {
    let (mut keys, mut found, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = backend.list(prefix, after.as_deref(), folders, limit).await?;
        keys.extend(page.keys.into_iter().map(|listed| listed.key));
        found.extend(page.folders);
        after = page.next;
        if after.is_none() {
            return Ok((keys, found));
        }
        require(keys.len() + found.len() < 1000, "a listing ends")?;
    }
}
