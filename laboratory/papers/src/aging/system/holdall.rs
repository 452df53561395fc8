//! Holdall: this project's engine, by its public interface only.

use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall::{PutOptions, Store};

use super::super::places::files_below;
use super::face::{Ask, System, found};
use holdall_instrument::draw::number;

/// Of the volume, next to which the engine puts its log.
const VOLUME: &str = "store.holdall";

/// An open store.
pub(super) struct Opened {
    store: Store,
    dir: PathBuf,
}

fn name(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

impl Opened {
    /// All options are the defaults but the largest size.
    pub(super) fn open(dir: &Path, bytes: u64) -> Result<Self> {
        let store = Store::builder().max_bytes(bytes).open_or_create(dir.join(VOLUME))?;
        Ok(Self { store, dir: dir.to_owned() })
    }
}

impl System for Opened {
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()> {
        let expected_size = ask.hint.then_some(bytes.len() as u64);
        self.store.write(|tx| {
            let options = PutOptions { expected_size, ..PutOptions::default() };
            let mut writer = tx.writer(name(key), options)?;
            for request in bytes.chunks(ask.request) {
                writer.push(request)?;
            }
            writer.finish()
        })?;
        Ok(())
    }

    /// Told the size, it keeps room for the rest behind the object.
    fn append(&mut self, key: u64, bytes: &[u8], expected_size: Option<u64>) -> Result<()> {
        self.store.write(|tx| {
            if tx.lookup(name(key))?.is_some() {
                return tx.append(&name(key)[..], bytes).map(drop);
            }
            let options = PutOptions { expected_size, ..PutOptions::default() };
            tx.put_with(name(key), bytes, &options).map(drop)
        })?;
        Ok(())
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let there = self.store.get_into(&name(key)[..], out)?;
        found(there.then_some(()), key)
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.store.write(|tx| tx.remove(&name(key)[..]))?;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.store.checkpoint()?)
    }

    fn logs(&self) -> Result<Vec<PathBuf>> {
        let files = files_below(&self.dir)?;
        Ok(files.into_iter().filter(|file| !file.ends_with(VOLUME)).collect())
    }

    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let reader = self.store.read()?;
        let (mut segments, mut pages) = (0, 0);
        for &key in keys {
            let own = reader.segments(&name(key)[..])?;
            segments += own.segments;
            pages += own.pages;
        }
        let each = number(segments as f64 / keys.len() as f64);
        let long = number(pages as f64 / segments.max(1) as f64);
        Ok(format!("{each} segments an object, {long} pages each"))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.store.close()?)
    }
}
