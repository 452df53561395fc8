//! The bare limits: what the same bytes cost without a store.

use anyhow::Result;
use holdall_instrument::small_sync::create;
use memmap2::Mmap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of a call of large writes and reads.
pub const CALL: usize = 1 << 20;

/// Writes `bytes` to a new file in calls of 1 MiB and syncs once.
pub fn write_once(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = create(path)?;
    for (i, piece) in bytes.chunks(CALL).enumerate() {
        file.write_all_at(piece, (i * CALL) as u64)?;
    }
    Ok(file.sync_data()?)
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

/// A whole file in memory.
pub fn map(file: &File) -> Result<Mmap> {
    #[expect(unsafe_code, reason = "nobody changes the file while it is mapped: it is our own")]
    // SAFETY: see the reason.
    Ok(unsafe { Mmap::map(file)? })
}
