//! A chain of two backups whose streams were changed by somebody who can compute checksums, and what
//! is restored from them.

use super::Input;
use holdall::{Backup, BackupPart, Options, Store, restore_on};
use holdall_core::backup_stream::{FRAME_BYTES, Frame, HEAD_BYTES};
use holdall_core::checksum::crc;
use holdall_core::page;
use holdall_io::{Disk, MemoryStorage, Storage};
use std::io::{self, Cursor, ErrorKind};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

const PAGE: usize = 4096;
/// A volume becomes no longer.
const MOST_BYTES: u64 = 64 << 20;

fn options() -> Options {
    let options = Options::default().background(false).page_size(PAGE).cache_bytes(1 << 20);
    options.tuning(|t| t.space_pages(256).store_id([7; 16]))
}

/// The streams of a whole backup and an increment.
fn base() -> &'static [Vec<u8>; 2] {
    static BASE: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    BASE.get_or_init(|| {
        let mut store = options().create_on(Arc::new(MemoryStorage::new())).unwrap();
        store.write(|tx| tx.put("a", &[1; 40_000])).unwrap();
        let take = |store: &mut Store, backup: Backup| {
            let mut bytes = Vec::new();
            let go_on = &mut |_| ControlFlow::Continue(());
            let id = backup.to_stream(store, &mut bytes, go_on).unwrap().id.unwrap();
            (bytes, id)
        };
        let (whole, id) = take(&mut store, Backup::new());
        store.write(|tx| tx.put("b", b"small")).unwrap();
        let (more, _) = take(&mut store, Backup::new().base(id));
        [whole, more]
    })
}

/// Changes a stream, and makes its checksums right again.
fn edit(stream: &mut Vec<u8>, input: &mut Input<'_>) {
    let (how, wanted) = (input.u8(), usize::from(input.u8()));
    if how % 8 == 0 {
        stream.truncate(usize::from(input.u16()) % (stream.len() + 1));
        return;
    }
    let (mut at, mut frame) = (HEAD_BYTES, 0);
    if how % 8 == 1 {
        input.edit(&mut stream[..HEAD_BYTES], 8, 3);
        let sum = crc(&stream[..HEAD_BYTES - 4]);
        stream[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&sum.to_le_bytes());
        return;
    }
    while at + FRAME_BYTES < stream.len() {
        let head: &[u8; FRAME_BYTES] = stream[at..at + FRAME_BYTES].try_into().unwrap();
        let len = Frame::decode(head, PAGE).unwrap().body_bytes(PAGE);
        let (body, end) = (at + FRAME_BYTES, at + FRAME_BYTES + len);
        if frame == wanted % 40 || end >= stream.len() {
            if how % 8 == 2 {
                input.edit(&mut stream[at..body], 0, 3);
            } else {
                let page = len / PAGE;
                let start = body + if page > 0 { usize::from(input.u8()) % page * PAGE } else { 0 };
                let bytes = &mut stream[start..end.min(start + PAGE)];
                input.edit(bytes, 0, 4);
                if bytes.len() == PAGE && how % 2 == 0 {
                    let lsn = page::lsn(bytes);
                    page::seal(bytes, lsn);
                }
            }
            let sum = crc(&stream[body..end]);
            stream[at + 16..at + 20].copy_from_slice(&sum.to_le_bytes());
            let own = crc(&stream[at..at + 28]);
            stream[at + 28..at + 32].copy_from_slice(&own.to_le_bytes());
            return;
        }
        (at, frame) = (end, frame + 1);
    }
}

/// A disk that is full soon.
#[derive(Debug)]
struct Small(Arc<dyn Disk>);

impl Disk for Small {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= MOST_BYTES) {
            true => self.0.write_at(offset, bytes),
            false => Err(ErrorKind::StorageFull.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        if len > MOST_BYTES { Err(ErrorKind::StorageFull.into()) } else { self.0.grow(len) }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.0.allocated()
    }
}

/// Restores changed backups: an error, or a store that is opened, verified and read.
pub fn restored_store(data: &[u8]) {
    let mut input = Input(data);
    let mut streams = base().clone();
    for _ in 0..1 + input.u8() % 3 {
        let which = usize::from(input.u8() % 2);
        if streams[which] == base()[which] {
            edit(&mut streams[which], &mut input);
        }
    }
    let storage = Arc::new(MemoryStorage::new());
    let part =
        |bytes: &Vec<u8>| BackupPart::Stream(Box::new(Cursor::new(bytes.clone())), "a part".into());
    let disk = Small(storage.volume());
    if restore_on(&disk, streams.iter().map(part)).is_err() {
        return;
    }
    let Ok(store) = options().open_read_only_on(storage) else { return };
    let sound = store.verify().is_ok_and(|report| report.is_sound());
    for name in ["a", "b"] {
        let found = store.get(name);
        assert!(found.is_ok() || !sound, "{found:?} of a store found sound");
    }
}
