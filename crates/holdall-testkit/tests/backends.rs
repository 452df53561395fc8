//! The same random calls to every backend must give the same results.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io;
use std::sync::Arc;

use holdall_io::{Access, Disk, FileStorage, MemoryStorage, Near, OverlayStorage, Storage};
use holdall_testkit::{CostModel, CountedStorage, FaultyStorage, SparseDisk};
use proptest::prelude::*;

const MAX: u64 = 200_000;

#[derive(Clone, Debug)]
enum Op {
    Read(u64, usize),
    Write(u64, usize),
    Grow(u64),
    Truncate(u64),
    Sync,
    CreateLog,
    RemoveLog,
    OpenLog,
    SyncDir,
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => 0..MAX,
        5 => (0..40u64, 0..3u64).prop_map(|(n, d)| (n * 4096 + d).saturating_sub(1)),
        1 => Just(i64::MAX as u64 - 1),
        1 => Just(u64::MAX - 1),
    ]
}

fn len() -> impl Strategy<Value = usize> {
    prop_oneof![0..40usize, 0..20_000usize, Just(4096), Just(70_000)]
}

/// A call, and whether it is for the log.
fn op() -> impl Strategy<Value = (bool, Op)> {
    let op = prop_oneof![
        8 => (offset(), len()).prop_map(|(at, len)| Op::Read(at, len)),
        // Far offsets would make sparse files, which vectors in memory cannot be.
        8 => (0..MAX, len()).prop_map(|(at, len)| Op::Write(at, len)),
        1 => Just(Op::Write(u64::MAX - 1, 5)),
        2 => (0..MAX).prop_map(Op::Grow),
        1 => Just(Op::Grow(u64::MAX)),
        2 => offset().prop_map(Op::Truncate),
        1 => Just(Op::Sync),
        1 => Just(Op::CreateLog),
        1 => Just(Op::RemoveLog),
        1 => Just(Op::OpenLog),
        1 => Just(Op::SyncDir),
    ];
    (any::<bool>(), op)
}

fn bytes(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + salt * 13 + 1) as u8).collect()
}

/// The other ways to read must give the same bytes, or the same kind of error.
fn check_other_reads(disk: &dyn Disk, at: u64, found: &[u8], read: &io::Result<()>) {
    for near in [Near::Few, Near::Many] {
        let mut again = vec![0; found.len()];
        let result = disk.read_near(at, &mut again, near);
        assert_eq!(result.map_err(|e| e.kind()), read.as_ref().map_err(io::Error::kind).copied());
        assert!(read.is_err() || again == found);
    }
}

/// Does a call; gives what can be compared: bytes read, the length, or the kind of the error.
fn apply(disk: &dyn Disk, op: &Op, salt: usize) -> Result<(Vec<u8>, u64), io::ErrorKind> {
    let mut found = Vec::new();
    let done = match *op {
        Op::Read(at, len) => {
            found.resize(len, 0xEE);
            let read = disk.read_at(at, &mut found);
            check_other_reads(disk, at, &found, &read);
            read
        }
        Op::Write(at, len) => disk.write_at(at, &bytes(len, salt)),
        Op::Grow(len) => disk.grow(len),
        Op::Truncate(len) => disk.truncate(len),
        _ => disk.sync(),
    };
    done.and_then(|()| Ok((found, disk.len()?))).map_err(|e| e.kind())
}

/// A storage and the log it has open.
struct Subject {
    storage: Arc<dyn Storage>,
    log: Option<Arc<dyn Disk>>,
}

impl Subject {
    fn apply(&mut self, log: bool, op: &Op, salt: usize) -> Result<(Vec<u8>, u64), io::ErrorKind> {
        match op {
            Op::CreateLog => {
                self.log = Some(self.storage.create_log().map_err(|e| e.kind())?);
            }
            Op::RemoveLog => {
                if let Some(log) = self.storage.open_log().unwrap() {
                    self.storage.remove_log(&*log).unwrap();
                }
            }
            Op::SyncDir => self.storage.sync_dir().unwrap(),
            Op::OpenLog => {
                let log = self.storage.open_log().unwrap();
                let there = u64::from(log.is_some());
                self.log = log.or(self.log.take());
                return Ok((Vec::new(), there));
            }
            _ => {
                let volume = self.storage.volume();
                let disk = if log { self.log.clone().unwrap_or(volume) } else { volume };
                return apply(&*disk, op, salt);
            }
        }
        Ok((Vec::new(), 0))
    }
}

fn subjects(dir: &std::path::Path, before: &[u8], log: &[u8]) -> Vec<Subject> {
    let write = |path: &std::path::Path| {
        std::fs::write(path, before).unwrap();
        std::fs::write(path.with_file_name("volume-log"), log).unwrap();
    };
    let below = dir.join("below");
    std::fs::create_dir(&below).unwrap();
    write(&dir.join("volume"));
    write(&below.join("volume"));
    let memory = || MemoryStorage::from_bytes(before.to_vec(), Some(log.to_vec()));
    let read_only = FileStorage::open(below.join("volume"), Access::ReadOnly).unwrap();
    let storages: Vec<Arc<dyn Storage>> = vec![
        Arc::new(memory()),
        Arc::new(FileStorage::open(dir.join("volume"), Access::ReadWrite).unwrap()),
        Arc::new(OverlayStorage::new(Arc::new(read_only)).unwrap()),
        Arc::new(FaultyStorage::from_bytes(before, Some(log), 1).unwrap()),
        Arc::new(CountedStorage::new(Arc::new(memory()), CostModel::default())),
    ];
    storages.into_iter().map(|storage| Subject { storage, log: None }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_backends_agree(
        ops in prop::collection::vec(op(), 1..60), before in 0..30_000usize, log in 0..9000usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (before, log_before) = (bytes(before, 99), bytes(log, 98));
        let mut subjects = subjects(dir.path(), &before, &log_before);
        for (salt, (log, op)) in ops.iter().enumerate() {
            let results: Vec<_> = subjects.iter_mut().map(|s| s.apply(*log, op, salt)).collect();
            for result in &results {
                prop_assert_eq!(result, &results[0], "{:?}", op);
            }
        }
        for subject in &mut subjects {
            let volume = subject.storage.volume();
            let mut all = vec![0; volume.len().unwrap() as usize];
            volume.read_at(0, &mut all).unwrap();
            let file = std::fs::read(dir.path().join("volume")).unwrap();
            prop_assert!(all == file, "{:?}", subject.storage);
        }
        let below = dir.path().join("below");
        prop_assert!(std::fs::read(below.join("volume")).unwrap() == before);
        prop_assert!(std::fs::read(below.join("volume-log")).unwrap() == log_before);
    }

    #[test]
    fn a_sparse_disk_is_a_disk(ops in prop::collection::vec(op(), 1..60)) {
        let memory = holdall_io::MemoryDisk::new();
        let sparse = SparseDisk::new();
        for (salt, (_, op)) in ops.iter().enumerate() {
            prop_assert_eq!(apply(&memory, op, salt), apply(&sparse, op, salt), "{:?}", op);
        }
    }
}
