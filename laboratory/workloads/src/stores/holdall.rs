//! Holdall as a map from keys to bytes, by name and by OID.

use super::ids::Ids;
use crate::peer::{Maker, Peer, Setup};
use anyhow::{Context as _, Result, ensure};
use holdall::{Error, Key, Object, Oid, Options, PutOptions, Reader, Store, Target, WriteTx};
use std::path::{Path, PathBuf};

/// Bytes in which an object is looked at.
const PIECE: usize = 256 << 10;

/// Opens Holdall.
#[derive(Debug)]
pub struct Holdall {
    /// Objects without names; the adapter keeps which OID each ordinal has.
    pub by_oid: bool,
}

impl Holdall {
    fn options(setup: &Setup, volume: Option<u64>) -> Options {
        Options::default()
            .cache_bytes(usize::try_from(setup.cache_bytes).unwrap_or(usize::MAX))
            .max_bytes(volume)
    }

    fn start(&self, dir: &Path, options: &Options) -> Result<Box<dyn Peer>> {
        let volume = dir.join("store.holdall");
        // Beside the directory: an application has its OIDs in its own data.
        let list = dir.with_extension("oids");
        if !volume.exists() && list.exists() {
            // Of a store that was here before.
            std::fs::remove_file(&list)?;
        }
        let store = options.open_or_create(volume)?;
        let ids = self.by_oid.then(|| Ids::load(&list)).transpose()?;
        Ok(Box::new(Opened { store, ids, list }))
    }
}

impl Maker for Holdall {
    fn name(&self) -> &'static str {
        if self.by_oid { "Holdall by OID" } else { "Holdall by name" }
    }

    fn settings(&self, setup: &Setup) -> String {
        let names = if self.by_oid {
            "objects without names, the adapter keeps a vector from ordinal to OID"
        } else {
            "the key is the name"
        };
        format!(
            "{}; cache_bytes = {} MiB, all else default; {names}; every commit durable (`write`)",
            env!("CARGO_PKG_VERSION"),
            setup.cache_bytes >> 20,
        )
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>> {
        self.start(dir, &Self::options(setup, None))
    }

    fn open_within(&self, dir: &Path, setup: &Setup, volume: u64) -> Result<Box<dyn Peer>> {
        self.start(dir, &Self::options(setup, Some(volume)))
    }

    fn by_ordinal(&self) -> bool {
        self.by_oid
    }
}

struct Opened {
    store: Store,
    /// By OID if there is one.
    ids: Option<Ids>,
    /// Where it is kept between two openings.
    list: PathBuf,
}

fn ordinal(key: &[u8]) -> Result<u64> {
    Ok(u64::from_be_bytes(key.try_into().context("by OID keys are ordinals of eight bytes")?))
}

impl Opened {
    /// What the object is called in calls of Holdall; none if its OID is not known.
    fn key<'k>(&self, key: &'k [u8]) -> Result<Option<Key<'k>>> {
        match &self.ids {
            None => Ok(Some(key.into())),
            Some(ids) => Ok(ids.get(ordinal(key)?).map(Key::Oid)),
        }
    }

    fn known<'k>(&self, key: &'k [u8]) -> Result<Key<'k>> {
        self.key(key)?.context("no object of this key")
    }

    /// The object, opened in a snapshot; none if there is none.
    fn object(&self, reader: &Reader, key: &[u8]) -> Result<Option<Object>> {
        let Some(key) = self.key(key)? else { return Ok(None) };
        match reader.open(key) {
            Ok(object) => Ok(Some(object)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// By OID: creates or, in place, replaces each. Returns what is new.
    fn put_each(tx: &mut WriteTx, ids: &Ids, items: &[(u64, &[u8])]) -> holdall::Result<Vec<Oid>> {
        for (ordinal, bytes) in items {
            if let Some(oid) = ids.get(*ordinal) {
                tx.set_bytes(oid, bytes)?;
            }
        }
        let new = items.iter().filter(|(ordinal, _)| ids.get(*ordinal).is_none());
        tx.create_many(new.map(|(_, bytes)| *bytes))
    }
}

impl Peer for Opened {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        let Some(ids) = &self.ids else {
            self.store.write(|tx| tx.put_many(items.iter().copied()))?;
            return Ok(());
        };
        let items: Vec<_> =
            items.iter().map(|(k, v)| Ok((ordinal(k)?, *v))).collect::<Result<_>>()?;
        let mut new = self.store.write(|tx| Self::put_each(tx, ids, &items))?.into_iter();
        for (ordinal, _) in &items {
            if ids.get(*ordinal).is_none() {
                ids.set(*ordinal, Some(new.next().context("as many new ones as created")?))?;
            }
        }
        Ok(())
    }

    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let old = self.ids.as_ref().map(|ids| Ok::<_, anyhow::Error>(ids.get(ordinal(key)?)));
        let old = old.transpose()?.flatten();
        let target = if self.ids.is_some() { Target::New } else { Target::Name(key.to_vec()) };
        let mut piece = vec![0; PIECE];
        let oid = self.store.write(|tx| {
            let options = PutOptions { expected_size: Some(size), ..PutOptions::default() };
            let mut writer = tx.writer(target, options)?;
            let mut left = size;
            while left > 0 {
                let n = left.min(PIECE as u64) as usize;
                next(&mut piece[..n]);
                writer.push(&piece[..n])?;
                left -= n as u64;
            }
            let oid = writer.finish()?;
            // The new one has an OID of its own; the old one goes in the same commit.
            old.map(|old| tx.remove(old)).transpose()?;
            Ok(oid)
        })?;
        match &self.ids {
            Some(ids) => ids.set(ordinal(key)?, Some(oid)),
            None => Ok(()),
        }
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let Some(key) = self.key(key)? else { return Ok(false) };
        Ok(self.store.get_into(key, out)?)
    }

    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        // By OID: the application's own look-ups, before those of the store.
        let known: Vec<Key<'_>> = keys.iter().map(|k| self.known(k)).collect::<Result<_>>()?;
        self.store.read()?.get_many(known, |_, bytes| {
            seen(bytes?.ok_or_else(|| Error::NotFound("one of the keys".into()))?);
            Ok(())
        })?;
        Ok(())
    }

    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let reader = self.store.read()?;
        let Some(object) = self.object(&reader, key)? else { return Ok(false) };
        let size = object.size();
        let mut piece = vec![0; PIECE.min(usize::try_from(size)?)];
        let mut at = 0;
        while at < size {
            let n = object.read_at(at, &mut piece)?;
            seen(&piece[..n]);
            at += n as u64;
        }
        Ok(true)
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        let n = self.store.read_at(self.known(key)?, offset, out)?;
        ensure!(n == Some(out.len()), "the range is not in the object");
        Ok(())
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        let key = self.known(key)?;
        self.store.write(|tx| tx.splice(key, offset..offset + delete, insert))?;
        Ok(())
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        let known: Vec<Key<'_>> = keys.iter().map(|k| self.known(k)).collect::<Result<_>>()?;
        self.store.write(|tx| known.iter().try_for_each(|key| tx.remove(key).map(drop)))?;
        let Some(ids) = &self.ids else { return Ok(()) };
        keys.iter().try_for_each(|key| ids.set(ordinal(key)?, None))
    }

    fn settle(&self) -> Result<()> {
        Ok(self.store.checkpoint()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        if let Some(ids) = &self.ids {
            ids.save(&self.list)?;
        }
        Ok(self.store.close()?)
    }
}
