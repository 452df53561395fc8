//! Reading what is left of a damaged log.
//!
//! Owns no state. Unlike [`scan`](super::scan()) it goes on behind what is damaged.

use holdall_core::Lsn;
use holdall_core::log_format::{self as format, BLOCK, BlockHeader};
use holdall_io::Disk;
use std::collections::BTreeMap;

/// Blocks read at a time.
const AT_ONCE: usize = 64;

/// The payloads, in order, of every whole group of the log's last epoch: of `store`, from `from` on, if these are known;
/// else of the store whose block comes first. What cannot be read is passed over. Cost: one pass over the
/// file; memory of all payloads.
pub fn gather(disk: &dyn Disk, store: Option<[u8; 16]>, from: Lsn) -> Vec<Vec<u8>> {
    let (mut found, mut store) = (Vec::new(), store);
    let (mut blocks, mut epoch) = (BTreeMap::new(), 0);
    let length = disk.len().unwrap_or(0);
    let mut buffer = vec![0; AT_ONCE * BLOCK];
    for at in (0..length / BLOCK as u64).step_by(AT_ONCE) {
        let count = (length / BLOCK as u64 - at).min(AT_ONCE as u64) as usize;
        let part = &mut buffer[..count * BLOCK];
        read(disk, at * BLOCK as u64, part);
        for block in part.chunks_exact(BLOCK) {
            let Some(header) = BlockHeader::decode_any(block) else { continue };
            if *store.get_or_insert(header.store_id) != header.store_id || header.lsn < from {
                continue;
            }
            if header.epoch > epoch {
                epoch = header.epoch;
                blocks.clear();
            }
            if header.epoch == epoch {
                blocks.insert(header.lsn, (header, format::payload(block, &header).to_vec()));
            }
        }
    }
    let mut group: Option<(Lsn, Vec<u8>)> = None;
    for (lsn, (header, payload)) in blocks {
        let goes_on = group.take().filter(|(next, _)| *next == lsn && header.group < lsn);
        let mut bytes = match goes_on {
            Some((_, bytes)) => bytes,
            None if header.group == lsn => Vec::new(),
            // The group's begin is lost.
            None => continue,
        };
        bytes.extend_from_slice(&payload);
        match header.last {
            true => found.push(bytes),
            false => group = Some((Lsn(lsn.0 + BLOCK as u64), bytes)),
        }
    }
    found
}

/// Reads blocks; those that cannot be read are zeros.
fn read(disk: &dyn Disk, at: u64, to: &mut [u8]) {
    if disk.read_at(at, to).is_ok() {
        return;
    }
    for (i, block) in to.chunks_exact_mut(BLOCK).enumerate() {
        if disk.read_at(at + (i * BLOCK) as u64, block).is_err() {
            block.fill(0);
        }
    }
}
