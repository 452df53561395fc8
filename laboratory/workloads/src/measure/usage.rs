//! What a store uses: bytes at the device, bytes on disk, memory.
//!
//! Owns: [`Meter`]. Bytes at the device come from the block layer (written sectors of the
//! device below the directory) and so include what others write; `write_bytes` of
//! /proc/self/io is not used, as it was seen to count pages twice that the device received
//! once, and it leaves out what is written by way of a map of the file.

use anyhow::Result;
use holdall_instrument::contest::Figure;
use holdall_instrument::system::{self, Written};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of blocks in use below `dir`, its directories included.
///
/// # Errors
/// Those of the file system.
pub fn disk_bytes(dir: &Path) -> Result<u64> {
    let mut all = 0;
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        all += fs::metadata(&dir)?.blocks() * 512;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            // A store's own threads may remove files meanwhile.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                dirs.push(entry.path());
            } else {
                all += meta.blocks() * 512;
            }
        }
    }
    Ok(all)
}

/// Counts from its start to the end of one row.
#[derive(Debug)]
pub struct Meter {
    dir: PathBuf,
    written: Written,
    base: u64,
}

impl Meter {
    /// Starts counting for the store in `dir`; `base` is what [`system::resident`] said
    /// before the store was opened.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(dir: &Path, base: u64) -> Result<Self> {
        system::forget_peak_memory();
        Ok(Self { dir: dir.to_owned(), written: Written::now(dir)?, base })
    }

    /// Fills the figure's memory and, if bytes of objects were `written`, its bytes at the
    /// device.
    ///
    /// # Errors
    /// Those of the system.
    pub fn stop(&self, figure: &mut Figure, written: u64) -> Result<()> {
        let peak = system::peak_memory(std::process::id())?;
        figure.memory = Some(peak.saturating_sub(self.base));
        if written > 0 {
            let (_, device) = Written::now(&self.dir)?.shares_since(self.written, written as f64);
            // No block device below, as on tmpfs: nothing to say.
            figure.device = (device > 0.0).then_some(device);
        }
        Ok(())
    }

    /// Bytes on disk per byte of `live` objects, delayed allocation done.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn disk_share(&self, live: u64) -> Result<f64> {
        system::sync_all(&self.dir)?;
        Ok(disk_bytes(&self.dir)? as f64 / live.max(1) as f64)
    }
}
