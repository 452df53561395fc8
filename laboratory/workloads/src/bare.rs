//! The bare limits: what the same bytes cost without a store.

use anyhow::Result;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a call of large writes and reads.
pub const CALL: usize = 1 << 20;

/// Durable overwrites of 4 KiB, round and round in a file that was allocated and written.
#[derive(Debug)]
pub struct SmallSync {
    file: File,
    at: u64,
    block: Vec<u8>,
}

/// Size of that file.
const ROUND: u64 = 8 << 20;

impl SmallSync {
    /// Makes the file.
    pub fn new(path: &Path) -> Result<Self> {
        let file = create(path)?;
        let zeros = vec![0; CALL];
        for i in 0..ROUND / CALL as u64 {
            file.write_all_at(&zeros, i * CALL as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, block: crate::data::bytes(4096, 1) })
    }

    /// One write, one sync.
    pub fn put(&mut self) -> Result<()> {
        self.file.write_all_at(&self.block, self.at)?;
        self.file.sync_data()?;
        self.at = (self.at + 4096) % ROUND;
        Ok(())
    }
}

/// A new empty file.
pub fn create(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?)
}

/// Writes `bytes` to a new file in calls of 1 MiB and syncs once.
pub fn write_once(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = create(path)?;
    for (i, piece) in bytes.chunks(CALL).enumerate() {
        file.write_all_at(piece, (i * CALL) as u64)?;
    }
    Ok(file.sync_data()?)
}

/// As [`write_once`], but every 4 MiB are handed to the device as they come, which keeps few
/// pages of the cache in use: what a careful program can reach.
pub fn write_paced(path: &Path, bytes: &[u8]) -> Result<()> {
    const STEP: usize = 4 * CALL;
    let file = create(path)?;
    for (i, step) in bytes.chunks(STEP).enumerate() {
        let at = (i * STEP) as u64;
        for (j, piece) in step.chunks(CALL).enumerate() {
            file.write_all_at(piece, at + (j * CALL) as u64)?;
        }
        let len = std::num::NonZeroU64::new(step.len() as u64);
        rustix::fs::fadvise(&file, at, len, rustix::fs::Advice::DontNeed)?;
    }
    Ok(file.sync_data()?)
}

/// Appends `count` times `bytes`, each with a sync.
pub fn append(path: &Path, bytes: &[u8], count: u64) -> Result<()> {
    let file = create(path)?;
    for i in 0..count {
        file.write_all_at(bytes, i * bytes.len() as u64)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Reads all of a file, each call filling `buf`. Returns the bytes read.
pub fn read_through(path: &Path, buf: &mut [u8]) -> Result<u64> {
    let file = File::open(path)?;
    let mut at = 0;
    loop {
        match file.read_at(buf, at)? {
            0 => return Ok(at),
            n => at += n as u64,
        }
    }
}
