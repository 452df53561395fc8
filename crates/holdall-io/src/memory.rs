//! Disks in memory: [`MemoryDisk`] and [`MemoryStorage`].
//!
//! Own their bytes in one vector per file. Nothing is ever unsynced: `sync` does nothing.
//! Threads: a read-write lock per disk; readers run together.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use crate::bounds::{check_len, full, read_end, write_end};
use crate::{Disk, Storage};

/// A disk whose bytes are one vector in memory.
#[derive(Default)]
pub struct MemoryDisk {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A disk with this content.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes: RwLock::new(bytes) }
    }

    /// A copy of the content.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        self.bytes.read().clone()
    }
}

impl Clone for MemoryDisk {
    fn clone(&self) -> Self {
        Self::from_bytes(self.snapshot())
    }
}

impl std::fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryDisk").field("len", &self.bytes.read().len()).finish()
    }
}

/// Makes `bytes` at least `len` long, with zeros; an allocation that fails is a full disk.
pub(crate) fn extend(bytes: &mut Vec<u8>, len: u64) -> io::Result<()> {
    let wanted = usize::try_from(len).map_err(|_| full(len))?;
    let more = wanted.saturating_sub(bytes.len());
    if more > 0 {
        bytes.try_reserve(more).map_err(|_| full(len))?;
        bytes.resize(wanted, 0);
    }
    Ok(())
}

impl Disk for MemoryDisk {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let bytes = self.bytes.read();
        let end = read_end(offset, buf.len(), bytes.len() as u64)?;
        buf.copy_from_slice(&bytes[offset as usize..end as usize]);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = write_end(offset, data.len())?;
        let mut bytes = self.bytes.write();
        extend(&mut bytes, end)?;
        bytes[offset as usize..end as usize].copy_from_slice(data);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.read().len() as u64)
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        check_len(len)?;
        extend(&mut self.bytes.write(), len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.bytes.write();
        if len < bytes.len() as u64 {
            bytes.truncate(len as usize);
            if bytes.len() < bytes.capacity() / 4 {
                bytes.shrink_to_fit();
            }
        }
        Ok(())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.len()
    }
}

/// A volume and a log in memory.
#[derive(Debug)]
pub struct MemoryStorage {
    volume: Arc<MemoryDisk>,
    log: Mutex<Option<Arc<MemoryDisk>>>,
    sums: Mutex<Option<Arc<MemoryDisk>>>,
    opened: Instant,
}

impl MemoryStorage {
    /// An empty volume without a log.
    #[must_use]
    pub fn new() -> Self {
        Self::from_bytes(Vec::new(), None)
    }

    /// A storage with this content.
    #[must_use]
    pub fn from_bytes(volume: Vec<u8>, log: Option<Vec<u8>>) -> Self {
        let log = log.map(|bytes| Arc::new(MemoryDisk::from_bytes(bytes)));
        Self {
            volume: Arc::new(MemoryDisk::from_bytes(volume)),
            log: Mutex::new(log),
            sums: Mutex::default(),
            opened: Instant::now(),
        }
    }

    /// A copy of the content: the volume, and the log if there is one.
    #[must_use]
    pub fn snapshot(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        (self.volume.snapshot(), self.log.lock().as_ref().map(|log| log.snapshot()))
    }

    /// A deep copy that shares nothing with this storage.
    #[must_use]
    pub fn fork(&self) -> Self {
        let (volume, log) = self.snapshot();
        let sums = self.sums.lock().as_ref().map(|sums| Arc::new(MemoryDisk::clone(sums)));
        Self { sums: Mutex::new(sums), ..Self::from_bytes(volume, log) }
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for MemoryStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        self.volume.clone()
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        Ok(self.log.lock().clone().map(|log| log as Arc<dyn Disk>))
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        let mut log = self.log.lock();
        if log.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(log.insert(Arc::new(MemoryDisk::new())).clone())
    }

    fn remove_log(&self, _log: &dyn Disk) -> io::Result<()> {
        *self.log.lock() = None;
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn open_sums(&self, create: bool) -> io::Result<Option<Arc<dyn Disk>>> {
        let mut sums = self.sums.lock();
        if create && sums.is_none() {
            *sums = Some(Arc::default());
        }
        Ok(sums.clone().map(|sums| sums as Arc<dyn Disk>))
    }

    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn now(&self) -> Duration {
        self.opened.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_shares_nothing() {
        let storage = MemoryStorage::new();
        storage.volume().write_at(2, b"abc").unwrap();
        let log = storage.create_log().unwrap();
        log.write_at(0, b"log").unwrap();
        assert!(storage.open_sums(false).unwrap().is_none());
        let sums = storage.open_sums(true).unwrap().unwrap();
        sums.write_at(0, b"sums").unwrap();
        let fork = storage.fork();
        storage.volume().write_at(2, b"xyz").unwrap();
        storage.remove_log(&*log).unwrap();
        sums.truncate(0).unwrap();
        assert_eq!(storage.open_sums(true).unwrap().unwrap().len().unwrap(), 0);
        assert_eq!(fork.open_sums(false).unwrap().unwrap().len().unwrap(), 4);
        assert_eq!(fork.snapshot(), (b"\0\0abc".to_vec(), Some(b"log".to_vec())));
        assert_eq!(storage.snapshot(), (b"\0\0xyz".to_vec(), None));
    }

    #[test]
    fn a_removed_log_still_works_for_who_holds_it() {
        let storage = MemoryStorage::new();
        let log = storage.create_log().unwrap();
        log.write_at(0, b"old").unwrap();
        storage.remove_log(&*log).unwrap();
        storage.remove_log(&*log).unwrap();
        let new = storage.create_log().unwrap();
        assert_eq!(new.len().unwrap(), 0);
        assert_eq!(log.len().unwrap(), 3);
    }

    #[test]
    fn a_log_that_is_there_is_not_created() {
        let storage = MemoryStorage::from_bytes(Vec::new(), Some(vec![7; 9]));
        let error = storage.create_log().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(storage.open_log().unwrap().unwrap().len().unwrap(), 9);
    }

    #[test]
    fn memory_that_cannot_be_had_is_a_full_disk() {
        let disk = MemoryDisk::new();
        let error = disk.grow(i64::MAX as u64).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.len().unwrap(), 0);
    }
}
