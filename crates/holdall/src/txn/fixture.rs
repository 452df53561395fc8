//! What tests of this layer begin with.

use super::Volume;
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
    };
    Volume::new(disk, superblock, None)
}
