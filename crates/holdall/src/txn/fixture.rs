//! What tests of this layer begin with.

use super::{Limits, Pager, Volume};
use crate::log::{Log, LogStart};
use holdall_core::superblock::Superblock;
use holdall_core::{Lsn, PageNo};
use holdall_io::Disk;
use std::sync::Arc;

/// A volume of pages of `page_size` bytes on `disk`, with nothing in it.
pub(super) fn volume(disk: Arc<dyn Disk>, page_size: usize) -> Volume {
    let superblock = Superblock {
        store_id: [7; 16],
        incarnation: 0,
        epoch: 1,
        page_size: page_size as u32,
        space_pages: 64,
        sequence: 1,
        replay: Lsn(0),
        in_place: Lsn(0),
        log_bytes: 65536,
        log_required: false,
        holes: false,
        unique_ceiling: 1,
        volume_pages: 0,
        spaces: 0,
        root: PageNo(1),
        marks: false,
        stamp: None,
    };
    Volume::new(disk, superblock, None)
}

/// A pager over such a volume, without a log file.
pub(super) fn pager(disk: Arc<dyn Disk>, page_size: usize) -> Pager {
    let (store_id, start) = ([7; 16], Lsn(0));
    let log = Log::new(LogStart { store_id, epoch: 1, start, capacity: 64 << 10, checkpoint: 1 });
    let limits = Limits {
        cache_bytes: 1 << 20,
        dirty_pages: 16,
        old_version_bytes: 1 << 20,
        transaction_pages: 64,
        checksum_bytes: 1 << 20,
        log_data_bytes: 1 << 16,
        map_reads: false,
        direct_reads: false,
    };
    Pager::new(volume(disk, page_size), log, limits)
}
