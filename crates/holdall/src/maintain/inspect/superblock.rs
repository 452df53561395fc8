//! Both copies of the superblock.

use holdall_core::superblock::{MAGIC, SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Result};
use holdall_io::Disk;

/// The volume's length and what lies where the copies of the superblock belong.
#[derive(Debug)]
#[non_exhaustive]
pub struct Superblocks {
    /// Bytes of the volume.
    pub volume_bytes: u64,
    /// The copies in order of place, each with its first byte.
    pub copies: Vec<(u64, SuperblockCopy)>,
}

/// A copy of the superblock.
#[derive(Debug)]
#[non_exhaustive]
pub enum SuperblockCopy {
    /// Its place is beyond the end of the file.
    Beyond,
    /// It is whole; with the bits of its compatible features.
    Whole(Superblock, u64),
    /// Its checksum is right, but this build cannot read it.
    Refused(Error, Vec<u8>),
    /// It begins as a superblock, and its checksum is wrong.
    Torn(Vec<u8>),
    /// Other bytes.
    Other(Vec<u8>),
}

pub(super) fn read(disk: &dyn Disk) -> Result<Superblocks> {
    let volume_bytes = disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
    let copy = |at| Ok((at, copy(disk, volume_bytes, at)?));
    let copies = SLOT_AT.into_iter().map(copy).collect::<Result<_>>()?;
    Ok(Superblocks { volume_bytes, copies })
}

fn copy(disk: &dyn Disk, volume_bytes: u64, at: u64) -> Result<SuperblockCopy> {
    if at + SLOT_BYTES as u64 > volume_bytes {
        return Ok(SuperblockCopy::Beyond);
    }
    let mut bytes = vec![0; SLOT_BYTES];
    let read = disk.read_at(at, &mut bytes);
    read.map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
    Ok(match Superblock::decode(&bytes) {
        Ok(Some(sb)) => SuperblockCopy::Whole(sb, Superblock::compatible_features(&bytes)),
        Ok(None) if bytes.starts_with(&MAGIC) => SuperblockCopy::Torn(bytes),
        Ok(None) => SuperblockCopy::Other(bytes),
        Err(e) => SuperblockCopy::Refused(e, bytes),
    })
}
