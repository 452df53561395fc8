//! The queue alone: order, neighbours in one call, failures, and with and without its thread.

use super::*;
use crate::txn::fixture;
use holdall_core::Error;
use holdall_io::{Disk, MemoryDisk};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};

const SIZE: usize = 4096;

/// Notes the calls that write; may fail, may wait before each.
#[derive(Debug)]
struct Watched {
    disk: MemoryDisk,
    calls: Mutex<Vec<(u64, usize)>>,
    fails: AtomicBool,
    gate: Mutex<Option<Receiver<()>>>,
}

impl Disk for Watched {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.disk.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some(gate) = &*self.gate.lock() {
            gate.recv().unwrap();
        }
        if self.fails.load(SeqCst) {
            return Err(io::Error::other("on purpose"));
        }
        self.calls.lock().push((offset / SIZE as u64, bytes.len() / SIZE));
        self.disk.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.disk.grow(len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.disk.truncate(len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.disk.allocated()
    }
}

fn volume() -> (Arc<Watched>, Volume) {
    let disk = Arc::new(Watched {
        disk: MemoryDisk::from_bytes(vec![0; 600 * SIZE]),
        calls: Mutex::default(),
        fails: AtomicBool::new(false),
        gate: Mutex::default(),
    });
    (disk.clone(), fixture::volume(disk, SIZE))
}

fn page(byte: u8) -> NewBytes {
    NewBytes::Page(vec![byte; SIZE].into())
}

fn batch(pieces: impl IntoIterator<Item = (u64, NewBytes)>) -> Batch {
    let mut batch = Batch::default();
    pieces.into_iter().for_each(|(no, piece)| batch.push(PageNo(no), piece));
    batch
}

fn byte_at(disk: &Watched, page: u64) -> u8 {
    let mut byte = [0];
    disk.read_at(page * SIZE as u64, &mut byte).unwrap();
    byte[0]
}

/// Runs `f` with a writing thread if `helper`, which is there when `f` begins.
fn with_thread(behind: &WriteBehind, volume: &Volume, helper: bool, f: impl FnOnce()) {
    std::thread::scope(|scope| {
        if helper {
            scope.spawn(|| behind.run(volume));
            while !behind.state.lock().helper {
                std::thread::yield_now();
            }
        }
        f();
        behind.end();
    });
}

#[test]
fn pieces_are_written_one_by_one_in_order() {
    let (disk, volume) = volume();
    let behind = WriteBehind::default();
    let data = NewBytes::Data(vec![9; 3 * SIZE]);
    let pieces = [(12, page(2)), (13, data), (11, page(1)), (40, page(4)), (16, page(3))];
    assert!(batch([]).is_empty());
    behind.send(&volume, batch(pieces));
    behind.finish(&volume, Batch::default()).unwrap();
    assert_eq!(*disk.calls.lock(), [(11, 1), (12, 1), (13, 3), (16, 1), (40, 1)]);
    assert_eq!([10, 11, 12, 13, 15, 16, 17].map(|no| byte_at(&disk, no)), [0, 1, 2, 9, 9, 3, 0]);
}

#[test]
fn what_is_handed_over_later_ends_on_top() {
    for helper in [false, true] {
        let (disk, volume) = volume();
        let behind = WriteBehind::default();
        with_thread(&behind, &volume, helper, || {
            for round in 1..=3 * MOST_WAITING as u64 {
                behind.send(&volume, batch([(5, page(round as u8)), (7, page(round as u8))]));
                behind.send(&volume, batch([(5, page((round as u8) ^ 1))]));
            }
            behind.finish(&volume, batch([(7, page(77))])).unwrap();
            assert_eq!([5, 7].map(|no| byte_at(&disk, no)), [(3 * MOST_WAITING as u8) ^ 1, 77]);
        });
        assert_eq!(disk.calls.lock().len(), 9 * MOST_WAITING + 1);
    }
}

#[test]
fn a_failure_is_told_once_to_the_transaction_it_is_of() {
    for helper in [false, true] {
        let (disk, volume) = volume();
        let behind = WriteBehind::default();
        with_thread(&behind, &volume, helper, || {
            disk.fails.store(true, SeqCst);
            behind.send(&volume, batch([(5, page(1))]));
            let failed = behind.finish(&volume, Batch::default());
            assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
            disk.fails.store(false, SeqCst);
            behind.finish(&volume, batch([(5, page(2))])).unwrap();
            disk.fails.store(true, SeqCst);
            behind.send(&volume, batch([(6, page(1))]));
            behind.abandon();
            disk.fails.store(false, SeqCst);
            behind.finish(&volume, Batch::default()).unwrap();
        });
        assert_eq!(byte_at(&disk, 5), 2);
    }
}

#[test]
fn nothing_is_under_way_after_a_transaction_was_abandoned() {
    let (disk, volume) = volume();
    let behind = WriteBehind::default();
    let (open, gate): (Sender<()>, _) = channel();
    *disk.gate.lock() = Some(gate);
    with_thread(&behind, &volume, true, || {
        (0..5).for_each(|no| behind.send(&volume, batch([(no, page(1))])));
        while !behind.state.lock().busy {
            std::thread::yield_now();
        }
        let opener = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            open.send(()).unwrap();
        });
        behind.abandon();
        assert_eq!(disk.calls.lock().len(), 1, "the one under way was waited for");
        opener.join().unwrap();
        *disk.gate.lock() = None;
        behind.finish(&volume, batch([(9, page(3))])).unwrap();
        assert_eq!(*disk.calls.lock(), [(0, 1), (9, 1)]);
    });
}
