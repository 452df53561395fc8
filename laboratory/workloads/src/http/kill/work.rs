//! What each client does until the server is killed: one request after the other on keys of its
//! own, each noted before it is sent and when it is answered.

use super::model::{Entry, Object, Upload, md5};
use crate::data;
use crate::http::client::Client;
use crate::http::content::Content;
use crate::http::upload;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use rand::Rng;
use rand::rngs::SmallRng;
use serde::Serialize;
use std::cell::Cell;

/// Keys of each client.
pub const KEYS: usize = 8;
/// Least and most bytes of an object that is put.
const SIZES: (usize, usize) = (10, 3_000_000);
/// Bytes of a part that others follow: the least that S3 allows.
const PART: usize = 5 << 20;

/// Answered requests by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// Objects put, new ones and in place of others.
    pub puts: u64,
    /// Objects deleted.
    pub deletes: u64,
    /// Bytes inserted into objects.
    pub inserts: u64,
    /// Parts uploaded.
    pub parts: u64,
    /// Uploads completed.
    pub completes: u64,
    /// Objects got and compared.
    pub gets: u64,
}

impl Answered {
    /// Adds another client's.
    pub fn add(&mut self, other: &Self) {
        self.puts += other.puts;
        self.deletes += other.deletes;
        self.inserts += other.inserts;
        self.parts += other.parts;
        self.completes += other.completes;
        self.gets += other.gets;
    }

    /// Changes.
    pub fn changes(&self) -> u64 {
        self.puts + self.deletes + self.inserts + self.parts + self.completes
    }
}

/// A client and what it knows of its keys.
#[derive(Debug)]
pub struct Worker {
    /// Its number.
    pub number: usize,
    /// Its keys.
    pub entries: Vec<Entry>,
    /// Its upload under way.
    pub upload: Option<Upload>,
    /// What was answered.
    pub answered: Answered,
    pool: Bytes,
}

impl Worker {
    /// A client whose keys do not exist yet; bytes are taken from `pool`.
    pub fn new(number: usize, pool: &Bytes) -> Self {
        let entries = vec![Entry::default(); KEYS];
        let (answered, pool) = (Answered::default(), pool.clone());
        Self { number, entries, upload: None, answered, pool }
    }

    /// The name of a key.
    pub fn key(&self, key: usize) -> String {
        format!("client-{:03}/key-{key}", self.number)
    }

    /// Works until `killed`.
    ///
    /// # Errors
    /// What failed while the server lived, with the key.
    pub async fn run(
        &mut self,
        client: &mut Client,
        rng: &mut SmallRng,
        killed: &Cell<bool>,
    ) -> Result<(), (String, String)> {
        while !killed.get() {
            let key = rng.random_range(0..KEYS);
            let done = self.step(client, rng, key).await;
            match done {
                Err(_) if killed.get() => break,
                Err(e) => return Err((self.key(key), format!("before the kill: {e:#}"))),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    async fn step(&mut self, client: &mut Client, rng: &mut SmallRng, key: usize) -> Result<()> {
        let there = self.entries[key].now.is_some();
        match rng.random_range(0..100) {
            0..10 if there => self.delete(client, key).await,
            10..35 if there => self.insert(client, rng, key).await,
            35..45 => self.multipart(client, rng, key).await,
            45..55 => self.get(client, key).await,
            _ => self.put(client, rng, key).await,
        }
    }

    /// Some bytes of the pool, without a copy.
    fn draw(&self, rng: &mut SmallRng, len: usize) -> Bytes {
        let from = rng.random_range(0..=self.pool.len() - len);
        self.pool.slice(from..from + len)
    }

    fn draw_sized(&self, rng: &mut SmallRng) -> Bytes {
        let len = data::log_len(rng, SIZES.0, SIZES.1);
        self.draw(rng, len)
    }

    async fn put(&mut self, client: &mut Client, rng: &mut SmallRng, key: usize) -> Result<()> {
        let object = Object::put(self.draw_sized(rng));
        let (bytes, etag) = (object.bytes.clone(), object.etag.clone());
        self.entries[key].begin(Some(object));
        let answer = client.put(&self.key(key), Content::all(bytes)).await?;
        self.entries[key].answered();
        self.answered.puts += 1;
        ensure!(Some(&answer.etag) == etag.as_ref(), "a put is answered ETag {}", answer.etag);
        Ok(())
    }

    async fn delete(&mut self, client: &mut Client, key: usize) -> Result<()> {
        let line = client.signer.object(rusty_s3::Method::Delete, &self.key(key), &[])?;
        self.entries[key].begin(None);
        client.done(Method::DELETE, line, Content::none()).await?;
        self.entries[key].answered();
        self.answered.deletes += 1;
        Ok(())
    }

    async fn insert(&mut self, client: &mut Client, rng: &mut SmallRng, key: usize) -> Result<()> {
        let old = self.entries[key].now.as_ref().context("nothing to insert into")?;
        let at = rng.random_range(0..=old.bytes.len());
        let len = data::log_len(rng, 1, 100_000);
        let inserted = self.draw(rng, len);
        let new = old.insert(at, &inserted);
        let size = new.bytes.len() as u64;
        self.entries[key].begin(Some(new));
        let content = Content::all(inserted);
        let (answer, told) = upload::insert(client, &self.key(key), at as u64, content).await?;
        self.entries[key].answered();
        if let Some(object) = &mut self.entries[key].now {
            object.etag = Some(answer.etag);
        }
        self.answered.inserts += 1;
        ensure!(told == size, "an insert is answered {told} bytes, not {size}");
        Ok(())
    }

    /// Uploads one part, or two of which the first has the least size that S3 allows, and
    /// completes.
    async fn multipart(
        &mut self,
        client: &mut Client,
        rng: &mut SmallRng,
        key: usize,
    ) -> Result<()> {
        let name = self.key(key);
        let id = upload::create(client, &name).await?;
        let new = Upload { key, id, parts: Vec::new(), pending: None, completing: false };
        let under_way = self.upload.insert(new);
        let mut parts = Vec::new();
        if rng.random_bool(0.3) {
            let from = rng.random_range(0..=self.pool.len() - PART);
            parts.push(self.pool.slice(from..from + PART));
        }
        let len = data::log_len(rng, SIZES.0, SIZES.1);
        let from = rng.random_range(0..=self.pool.len() - len);
        parts.push(self.pool.slice(from..from + len));
        for (number, bytes) in (1..).zip(parts) {
            let etag = md5(&bytes);
            under_way.pending = Some(etag.clone());
            let content = Content::all(bytes.clone());
            let answer = upload::part(client, &name, &under_way.id, number, content).await?;
            under_way.pending = None;
            ensure!(answer.etag == etag, "part {number} is answered ETag {}", answer.etag);
            under_way.parts.push((bytes, etag));
            self.answered.parts += 1;
        }
        self.complete(client).await
    }

    /// Completes the upload under way from the parts that were answered.
    ///
    /// # Errors
    /// Those of the request; another ETag than that of these parts.
    pub async fn complete(&mut self, client: &mut Client) -> Result<()> {
        let Some(under_way) = &mut self.upload else { return Ok(()) };
        let key = under_way.key;
        let etags: Vec<String> = under_way.parts.iter().map(|(_, etag)| etag.clone()).collect();
        let object = Object::completed(&under_way.parts);
        let (id, etag) = (under_way.id.clone(), object.etag.clone());
        under_way.completing = true;
        self.entries[key].begin(Some(object));
        let (_, told) = upload::complete(client, &self.key(key), &id, &etags).await?;
        self.entries[key].answered();
        self.upload = None;
        self.answered.completes += 1;
        ensure!(Some(&told) == etag.as_ref(), "a completion is answered ETag {told}");
        Ok(())
    }

    async fn get(&mut self, client: &mut Client, key: usize) -> Result<()> {
        let seen = get(client, &self.key(key)).await?;
        self.answered.gets += 1;
        self.entries[key].settle(seen).map(drop).map_err(anyhow::Error::msg)
    }
}

/// What is under a key: bytes and ETag, or nothing.
///
/// # Errors
/// Those of the connection; an answer that is neither.
pub async fn get(client: &mut Client, key: &str) -> Result<Option<(Bytes, String)>> {
    let line = client.signer.object(rusty_s3::Method::Get, key, &[])?;
    let mut all = Vec::new();
    let take = |_, bytes: &[u8]| {
        all.extend_from_slice(bytes);
        Ok(())
    };
    let answer = client.send(Method::GET, line, Content::none(), take).await?;
    match answer.status {
        StatusCode::OK => Ok(Some((all.into(), answer.etag))),
        StatusCode::NOT_FOUND => Ok(None),
        status => anyhow::bail!("a get is answered {status}"),
    }
}
