//! A writable layer in memory above a storage that is only read: [`OverlayStorage`].
//!
//! Owns the changes, in granules of 4 KiB. Used to open a store read-only that was not closed
//! cleanly: recovery writes into the overlay, the files stay as they are. What is written as it
//! lies below takes no memory. Invariants: no call
//! changes the base; bytes of the base at or past `visible` are never shown (they were cut off).
//! Threads: a read-write lock per disk; writes hold it while they read the base.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::bounds::{check_len, read_end, write_end};
use crate::granules::Granules;
use crate::{Disk, FileId, Near, Storage};

const GRANULE: usize = 4096;

/// A disk that keeps all changes in memory, above a base (or nothing) that it only reads.
///
/// Nobody else may change the base meanwhile. `grow` reserves no memory.
pub struct OverlayDisk {
    base: Option<Arc<dyn Disk>>,
    state: RwLock<OverlayState>,
}

struct OverlayState {
    len: u64,
    /// How many bytes of the base still show where no granule covers them.
    visible: u64,
    granules: Granules,
}

impl OverlayDisk {
    /// A layer above `base`.
    ///
    /// # Errors
    /// Those of asking the base for its length.
    pub fn new(base: Arc<dyn Disk>) -> io::Result<Self> {
        let len = base.len()?;
        Ok(Self::with(Some(base), len))
    }

    /// A disk above nothing.
    fn empty() -> Self {
        Self::with(None, 0)
    }

    fn with(base: Option<Arc<dyn Disk>>, len: u64) -> Self {
        let granules = Granules::new(GRANULE);
        Self { base, state: RwLock::new(OverlayState { len, visible: len, granules }) }
    }

    /// The base, if it alone shows these bytes: none was written over or cut off.
    fn below(&self, offset: u64, len: u64) -> Option<&dyn Disk> {
        let base = self.base.as_deref()?;
        let end = offset.checked_add(len)?;
        let state = self.state.read();
        (end <= state.visible && !state.granules.any(offset..end)).then_some(base)
    }

    /// Fills `buf` with what the base shows at `offset`.
    fn read_base(&self, visible: u64, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let shown = visible.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (from_base, beyond) = buf.split_at_mut(shown);
        beyond.fill(0);
        match &self.base {
            Some(base) if shown > 0 => base.read_at(offset, from_base),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for OverlayDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state.read();
        f.debug_struct("OverlayDisk")
            .field("base", &self.base)
            .field("len", &state.len)
            .field("changed", &state.granules.stored())
            .finish()
    }
}

impl Disk for OverlayDisk {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let state = self.state.read();
        read_end(offset, buf.len(), state.len)?;
        // Neighbouring granules that are not stored are read from the base in one call.
        let mut missing = 0..0;
        for piece in state.granules.pieces(offset, buf.len()) {
            if let Some(bytes) = state.granules.get(piece.index) {
                let at = offset + missing.start as u64;
                self.read_base(state.visible, at, &mut buf[missing])?;
                missing = piece.outside.end..piece.outside.end;
                buf[piece.outside].copy_from_slice(&bytes[piece.inside]);
            } else {
                missing.end = piece.outside.end;
            }
        }
        self.read_base(state.visible, offset + missing.start as u64, &mut buf[missing])
    }

    fn read_resident(&self, offset: u64, buf: &mut [u8], sums: &mut [u32]) -> bool {
        let below = self.below(offset, buf.len() as u64);
        below.is_some_and(|base| base.read_resident(offset, buf, sums))
    }

    fn approach(&self, offset: u64, len: usize) {
        if let Some(base) = &self.base {
            base.approach(offset, len);
        }
    }

    fn read_near(&self, offset: u64, buf: &mut [u8], near: Near) -> io::Result<()> {
        match self.below(offset, buf.len() as u64) {
            Some(base) => base.read_near(offset, buf, near),
            None => self.read_at(offset, buf),
        }
    }

    fn read_bulk(&self, offset: u64, parts: &mut [&mut [u8]], sums: &mut [u32]) -> bool {
        let len = parts.iter().map(|part| part.len() as u64).sum();
        self.below(offset, len).is_some_and(|base| base.read_bulk(offset, parts, sums))
    }

    fn reads_bulk(&self, offset: u64, len: u64) -> bool {
        self.below(offset, len).is_some_and(|base| base.reads_bulk(offset, len))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = write_end(offset, bytes.len())?;
        let mut state = self.state.write();
        for piece in state.granules.pieces(offset, bytes.len()) {
            if state.granules.get(piece.index).is_none() {
                // The granule's other bytes come from below; stored only once they are read,
                // and only if it differs: recovery writes much that is there already.
                let mut below = [0; GRANULE];
                let read = self.read_base(state.visible, piece.index * GRANULE as u64, &mut below);
                // What cannot be read below may be written over whole.
                if read.is_err() && piece.inside.len() < GRANULE {
                    return read;
                }
                if read.is_ok() && below[piece.inside.clone()] == bytes[piece.outside.clone()] {
                    continue;
                }
                state.granules.get_or_zeros(piece.index).copy_from_slice(&below);
            }
            let target = &mut state.granules.get_or_zeros(piece.index)[piece.inside];
            target.copy_from_slice(&bytes[piece.outside]);
        }
        state.len = state.len.max(end);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn file_id(&self) -> io::Result<Option<FileId>> {
        self.base.as_ref().map_or(Ok(None), |base| base.file_id())
    }

    fn metadata(&self) -> io::Result<Option<std::fs::Metadata>> {
        self.base.as_ref().map_or(Ok(None), |base| base.metadata())
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
            state.visible = state.visible.min(len);
            state.granules.cut(len);
        }
        Ok(())
    }

    fn can_punch(&self) -> bool {
        self.base.as_ref().is_some_and(|base| base.can_punch())
    }

    /// Bytes of the changes in memory.
    fn allocated(&self) -> io::Result<u64> {
        // What a user asks is how much the file takes; what lies above is in memory.
        self.base.as_ref().map_or(Ok(0), |base| base.allocated())
    }

    fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.base.as_ref().map_or(Ok(false), |base| base.read_hint(offset, len))
    }
}

/// A storage that keeps all changes in memory, above one that it only reads.
#[derive(Debug)]
pub struct OverlayStorage {
    base: Arc<dyn Storage>,
    volume: Arc<OverlayDisk>,
    log: Mutex<Log>,
}

/// What is known of the log.
#[derive(Debug)]
enum Log {
    /// Nobody has asked yet: as it is below.
    Below,
    /// As it is here.
    Here(Option<Arc<OverlayDisk>>),
}

impl OverlayStorage {
    /// A layer above `base`, which nobody may change meanwhile.
    ///
    /// # Errors
    /// Those of asking the base for the volume's length.
    pub fn new(base: Arc<dyn Storage>) -> io::Result<Self> {
        let volume = Arc::new(OverlayDisk::new(base.volume())?);
        Ok(Self { base, volume, log: Mutex::new(Log::Below) })
    }

    /// Bytes of changes held in memory, both files together.
    #[must_use]
    pub fn changed(&self) -> u64 {
        let log = match &*self.log.lock() {
            Log::Here(Some(log)) => log.state.read().granules.stored(),
            _ => 0,
        };
        self.volume.state.read().granules.stored() + log
    }
}

impl Storage for OverlayStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        let mut log = self.log.lock();
        if let Log::Below = *log {
            let below = self.base.open_log()?;
            *log = Log::Here(below.map(OverlayDisk::new).transpose()?.map(Arc::new));
        }
        match &*log {
            Log::Here(Some(disk)) => Ok(Some(disk.clone())),
            _ => Ok(None),
        }
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        if self.open_log()?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let disk = Arc::new(OverlayDisk::empty());
        *self.log.lock() = Log::Here(Some(disk.clone()));
        Ok(disk)
    }

    fn remove_log(&self, _log: &dyn Disk) -> io::Result<()> {
        *self.log.lock() = Log::Here(None);
        Ok(())
    }

    fn is_log_place(&self, dir: FileId, name: &OsStr) -> io::Result<bool> {
        self.base.is_log_place(dir, name)
    }

    fn log_id(&self) -> io::Result<Option<FileId>> {
        self.base.log_id()
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn open_sums(&self, _create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        self.base.open_sums(false)
    }

    fn name(&self) -> String {
        self.base.name()
    }

    fn now(&self) -> Duration {
        self.base.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDisk, MemoryStorage};

    #[test]
    fn the_base_is_never_changed() {
        let before = (vec![1; 10_000], Some(vec![2; 5000]));
        let base = Arc::new(MemoryStorage::from_bytes(before.0.clone(), before.1.clone()));
        let overlay = OverlayStorage::new(base.clone()).unwrap();
        let volume = overlay.volume();
        volume.write_at(4090, &[7; 10]).unwrap();
        volume.truncate(4095).unwrap();
        volume.grow(20_000).unwrap();
        let log = overlay.open_log().unwrap().unwrap();
        log.write_at(4999, &[8; 2]).unwrap();
        assert_eq!(log.len().unwrap(), 5001);
        assert_eq!(overlay.changed(), 3 * GRANULE as u64 - GRANULE as u64);
        let mut buf = vec![9; 20_000];
        volume.read_at(0, &mut buf).unwrap();
        assert_eq!(buf[4089..4096], [1, 7, 7, 7, 7, 7, 0]);
        assert!(buf[4095..].iter().all(|&b| b == 0), "bytes cut off must not come back");
        overlay.remove_log(&*log).unwrap();
        assert!(overlay.open_log().unwrap().is_none());
        assert_eq!(overlay.create_log().unwrap().len().unwrap(), 0);
        assert_eq!(base.snapshot(), before);
    }

    #[test]
    fn what_is_there_already_takes_no_memory() {
        let base = Arc::new(MemoryStorage::from_bytes(vec![1; 9000], None));
        let overlay = OverlayStorage::new(base).unwrap();
        let volume = overlay.volume();
        volume.write_at(100, &[1; 8900]).unwrap();
        volume.write_at(9000, &[0; 50_000]).unwrap();
        assert_eq!((overlay.changed(), volume.len().unwrap()), (0, 59_000));
        // What was changed and changes back is still above.
        for byte in [2, 1] {
            volume.write_at(5000, &[byte]).unwrap();
            let mut found = [0];
            volume.read_at(5000, &mut found).unwrap();
            assert_eq!((found, overlay.changed()), ([byte], GRANULE as u64));
        }
    }

    /// A disk all of which is in the page cache, and new.
    #[derive(Debug)]
    struct Resident(crate::MemoryDisk);

    impl Disk for Resident {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.0.read_at(offset, buf)
        }
        fn read_resident(&self, offset: u64, buf: &mut [u8], _sums: &mut [u32]) -> bool {
            self.0.read_at(offset, buf).is_ok()
        }
        fn read_bulk(&self, offset: u64, parts: &mut [&mut [u8]], _sums: &mut [u32]) -> bool {
            parts.iter_mut().all(|part| self.0.read_at(offset, part).is_ok())
        }
        fn reads_bulk(&self, _offset: u64, _len: u64) -> bool {
            true
        }
        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.0.write_at(offset, bytes)
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }
        fn grow(&self, len: u64) -> io::Result<()> {
            self.0.grow(len)
        }
        fn truncate(&self, len: u64) -> io::Result<()> {
            self.0.truncate(len)
        }
        fn allocated(&self) -> io::Result<u64> {
            self.0.allocated()
        }
    }

    #[test]
    fn fast_reads_go_below_where_nothing_lies_above() {
        let base = crate::MemoryDisk::from_bytes(vec![1; 5 * GRANULE]);
        let overlay = OverlayDisk::new(Arc::new(Resident(base))).unwrap();
        let size = GRANULE as u64;
        overlay.write_at(2 * size + 5, &[9]).unwrap();
        overlay.truncate(4 * size).unwrap();
        overlay.grow(5 * size).unwrap();
        let fast = |from: u64, len: usize| {
            let (mut a, mut b) = (vec![0; len], vec![0; len]);
            let (resident, bulk) = (
                overlay.read_resident(from, &mut a, &mut []),
                overlay.read_bulk(from, &mut [&mut b], &mut []),
            );
            assert_eq!((resident, bulk), (bulk, overlay.reads_bulk(from, len as u64)));
            let mut near = vec![0; len];
            overlay.read_near(from, &mut near, Near::Few).unwrap();
            let mut slow = vec![7; len];
            overlay.read_at(from, &mut slow).unwrap();
            assert_eq!(near, slow);
            assert!(!resident || (a == slow && b == slow));
            resident
        };
        assert!(fast(0, 2 * GRANULE) && fast(3 * size, GRANULE), "the base's alone");
        assert!(!fast(size, GRANULE + 1) && !fast(2 * size + 5, 1), "a granule is above");
        assert!(!fast(4 * size, 1) && !fast(4 * size - 1, 2), "was cut off");
        assert!(!overlay.read_resident(u64::MAX, &mut [0; 2], &mut []));
    }

    #[test]
    fn removing_before_looking_hides_the_log_below() {
        let base = Arc::new(MemoryStorage::from_bytes(Vec::new(), Some(vec![2; 50])));
        let overlay = OverlayStorage::new(base).unwrap();
        overlay.remove_log(&MemoryDisk::new()).unwrap();
        assert!(overlay.open_log().unwrap().is_none());
    }
}
