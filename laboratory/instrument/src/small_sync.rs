//! The smallest durable write that a machine does: what puts are held against, and what the
//! probe asks.
//!
//! Owns: [`SmallSync`].

use anyhow::Result;
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a call that fills the file.
const CALL: usize = 1 << 20;

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
    ///
    /// # Errors
    /// Those of the file system; so for the rest.
    pub fn new(path: &Path) -> Result<Self> {
        let file = create(path)?;
        let zeros = vec![0; CALL];
        for i in 0..ROUND / CALL as u64 {
            file.write_all_at(&zeros, i * CALL as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, block: noise(4096) })
    }

    /// One write, one sync.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put(&mut self) -> Result<()> {
        self.file.write_all_at(&self.block, self.at)?;
        self.file.sync_data()?;
        self.at = (self.at + 4096) % ROUND;
        Ok(())
    }
}

/// A new empty file.
///
/// # Errors
/// Those of the file system.
pub fn create(path: &Path) -> Result<File> {
    Ok(OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?)
}

/// Bytes that nothing can compress.
fn noise(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    SmallRng::seed_from_u64(1).fill_bytes(&mut bytes);
    bytes
}
