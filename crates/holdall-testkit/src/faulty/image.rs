//! The content of a simulated file ([`Image`]), cheap to copy.
//!
//! Owns its bytes in chunks of 4 KiB that copies share until one of them writes. Invariants: a
//! missing chunk is zeros; bytes of the last chunk past the length are zeros. Threads: none of its
//! own, the storage locks.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use holdall_io::bounds::full;

pub(super) const CHUNK: usize = 4096;

/// A file's content. Copying costs a few nanoseconds per 4 KiB.
#[derive(Clone, Default)]
pub(super) struct Image {
    len: u64,
    chunks: Vec<Option<Arc<[u8; CHUNK]>>>,
}

impl Image {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `buf` from `offset`; the caller has checked that the range lies within the length.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) {
        let mut at = offset as usize;
        let mut rest = buf;
        while !rest.is_empty() {
            let start = at % CHUNK;
            let n = (CHUNK - start).min(rest.len());
            let (now, later) = rest.split_at_mut(n);
            match &self.chunks[at / CHUNK] {
                Some(chunk) => now.copy_from_slice(&chunk[start..start + n]),
                None => now.fill(0),
            }
            rest = later;
            at += n;
        }
    }

    /// Writes what of `bytes` lies within the length; the rest is dropped.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let shown = self.len.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let mut rest = &bytes[..shown];
        let mut at = offset as usize;
        while !rest.is_empty() {
            let start = at % CHUNK;
            let n = (CHUNK - start).min(rest.len());
            let (now, later) = rest.split_at(n);
            let slot = &mut self.chunks[at / CHUNK];
            if let Ok(whole) = <[u8; CHUNK]>::try_from(now) {
                *slot = Some(Arc::new(whole));
            } else {
                let chunk = slot.get_or_insert_with(|| Arc::new([0; CHUNK]));
                Arc::make_mut(chunk)[start..start + n].copy_from_slice(now);
            }
            rest = later;
            at += n;
        }
    }

    /// Makes these chunks zeros.
    pub(super) fn clear(&mut self, chunks: Range<u64>) {
        let from = (chunks.start as usize).min(self.chunks.len());
        let to = (chunks.end as usize).clamp(from, self.chunks.len());
        self.chunks[from..to].fill(None);
    }

    /// Sets the length; new bytes are zeros.
    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let chunks = usize::try_from(len.div_ceil(CHUNK as u64)).map_err(|_| full(len))?;
        if len < self.len {
            self.chunks.truncate(chunks);
            let keep = (len % CHUNK as u64) as usize;
            if keep > 0
                && let Some(Some(last)) = self.chunks.last_mut()
            {
                Arc::make_mut(last)[keep..].fill(0);
            }
        } else {
            let more = chunks - self.chunks.len();
            self.chunks.try_reserve(more).map_err(|_| full(len))?;
            self.chunks.resize(chunks, None);
        }
        self.len = len;
        Ok(())
    }

    /// A copy as one vector.
    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_until_written() {
        let mut one = Image::default();
        one.set_len(3 * CHUNK as u64 - 5).unwrap();
        one.write(10, &[1; 2 * CHUNK]);
        let before = one.to_vec();
        let mut two = one.clone();
        two.write(4000, &[2; 200]);
        assert_eq!(one.to_vec(), before);
        assert_eq!(two.to_vec()[3999..4201], [&[1][..], &[2; 200], &[1]].concat());
    }

    #[test]
    fn bytes_cut_off_do_not_come_back() {
        let mut image = Image::default();
        image.set_len(5000).unwrap();
        image.write(0, &[7; 6000]);
        assert_eq!(image.to_vec(), [7; 5000]);
        image.set_len(100).unwrap();
        image.set_len(9000).unwrap();
        assert_eq!(image.to_vec(), [&[7; 100][..], &[0; 8900]].concat());
        assert_eq!(image.set_len(i64::MAX as u64).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(image.len(), 9000);
    }
}
