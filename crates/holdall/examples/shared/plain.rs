//! What the examples that work on large plain files share: data that need not be kept because it
//! can be made again, copies whose writes are counted, the edit of a plain file.

use crate::shared::BYTES_AT_ONCE;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

/// Bytes that look random and are always the same for a `number`.
pub fn noise(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// What an edit costs without a store: copies `from` to a new durable file with the bytes
/// `range` replaced by `bytes`.
pub fn rewrite_file(from: &Path, to: &Path, range: Range<u64>, bytes: &[u8]) -> Result<()> {
    let mut old = File::open(from).with_context(|| format!("opening {}", from.display()))?;
    let mut new = File::create(to).with_context(|| format!("creating {}", to.display()))?;
    copy((&mut old).take(range.start), &mut new)?;
    new.write_all(bytes)?;
    old.seek(SeekFrom::Start(range.end))?;
    copy(old, &mut new)?;
    new.sync_data().with_context(|| format!("syncing {}", to.display()))
}

/// Copies by read and write calls, so that [`written`](crate::shared::written) counts them.
pub fn copy(mut from: impl Read, mut to: impl Write) -> Result<u64> {
    let (mut piece, mut all) = (vec![0; BYTES_AT_ONCE], 0);
    loop {
        let n = from.read(&mut piece)?;
        if n == 0 {
            return Ok(all);
        }
        to.write_all(&piece[..n])?;
        all += n as u64;
    }
}

/// Lets an error of the example's own end a transaction.
pub fn give_up(error: anyhow::Error) -> holdall::Error {
    holdall::Error::Other(error.into())
}
