//! A disk in memory that stores only what was written with something other than zeros.
//!
//! Owns granules of 64 KiB, so that objects of many gigabytes can be run against the cost model
//! while only their index pages take memory. Threads: one read-write lock.

use std::io;

use parking_lot::RwLock;

use holdall_io::Disk;
use holdall_io::bounds::{check_len, read_end, write_end};
use holdall_io::granules::Granules;

const GRANULE: usize = 64 * 1024;

/// A sparse disk in memory of up to 2^63 - 1 bytes; bytes never written read as zeros.
///
/// Zeros written if nothing is stored take no memory. Unlike what [`Disk::grow`] promises for
/// files, growing reserves nothing: memory is taken when it is written.
pub struct SparseDisk {
    state: RwLock<State>,
}

struct State {
    len: u64,
    granules: Granules,
}

impl SparseDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::with_granules(GRANULE)
    }

    /// An empty disk that stores pieces of this many bytes, at least 1: small ones for a few bytes
    /// here and there.
    #[must_use]
    pub fn with_granules(bytes: usize) -> Self {
        let granules = Granules::new(bytes.max(1));
        Self { state: RwLock::new(State { len: 0, granules }) }
    }
}

impl Default for SparseDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for SparseDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.read();
        f.debug_struct("SparseDisk")
            .field("len", &state.len)
            .field("stored", &state.granules.stored())
            .finish()
    }
}

impl Disk for SparseDisk {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let state = self.state.read();
        read_end(offset, buf.len(), state.len)?;
        for piece in state.granules.pieces(offset, buf.len()) {
            let target = &mut buf[piece.outside];
            match state.granules.get(piece.index) {
                Some(bytes) => target.copy_from_slice(&bytes[piece.inside]),
                None => target.fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = write_end(offset, bytes.len())?;
        let mut state = self.state.write();
        state.len = state.len.max(end);
        for piece in state.granules.pieces(offset, bytes.len()) {
            let source = &bytes[piece.outside];
            if state.granules.get(piece.index).is_some() || has_bits(source) {
                state.granules.get_or_zeros(piece.index)[piece.inside].copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.state.read().len)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        let mut state = self.state.write();
        state.len = state.len.max(len);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.state.write();
        if len < state.len {
            state.len = len;
            state.granules.cut(len);
        }
        Ok(())
    }

    fn allocated(&self) -> io::Result<u64> {
        Ok(self.state.read().granules.stored())
    }
}

/// Whether any byte is not zero; by stretches without a way out between, which the compiler
/// makes vectors of.
fn has_bits(bytes: &[u8]) -> bool {
    bytes.chunks(512).any(|stretch| stretch.iter().fold(0, |all, b| all | b) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_and_nearly_empty() {
        let disk = SparseDisk::new();
        disk.grow(i64::MAX as u64).unwrap();
        assert_eq!(disk.allocated().unwrap(), 0);
        let at = 100 << 30;
        disk.write_at(at, &[0; 4096]).unwrap();
        assert_eq!(disk.allocated().unwrap(), 0);
        disk.write_at(at + 100, b"x").unwrap();
        assert_eq!(disk.allocated().unwrap(), GRANULE as u64);
        disk.write_at(at + 100, &[0]).unwrap();
        let mut buf = [1; 3];
        disk.read_at(at + 99, &mut buf).unwrap();
        assert_eq!(buf, [0; 3]);
    }
}
