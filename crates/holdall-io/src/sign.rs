//! How far the log of an open store is durable, for processes that read the store meanwhile.
//!
//! Owns: [`Sign`]. The position is the place of a locked byte, far behind the end of every file.
//! So it costs no write, who may only read the file can look at it, and it is gone with the process
//! that set it. A lock belongs to the open file, so that others of the process are not in its way.
//! On systems without such locks, and where a file system refuses them, nobody sees a position.

use std::fs::File;

use parking_lot::Mutex;

use crate::record_lock::{self, Held, Kind, Owner};

/// Positions are below.
const END: u64 = 1 << 62;

/// The position that an open file shows.
#[derive(Debug, Default)]
pub(crate) struct Sign(Mutex<Option<u64>>);

impl Sign {
    /// Shows `position`, or with `None` nothing any more. Meanwhile others see this or the one
    /// before. If the system refuses it, the one before stays. Cost: two system calls.
    pub(crate) fn show(&self, file: &File, position: Option<u64>) {
        let mut shown = self.0.lock();
        let position = position.filter(|at| *at < END - 1);
        let set = |kind, at| record_lock::set(file, Owner::OpenFile, kind, at + 1, 1);
        if *shown == position || position.is_some_and(|at| !set(Kind::Write, at)) {
            return;
        }
        if let Some(before) = std::mem::replace(&mut *shown, position) {
            set(Kind::None, before);
        }
    }
}

/// The position that another open file shows. Cost: a system call.
pub(crate) fn shown(file: &File) -> Option<u64> {
    let held = record_lock::find(file, Owner::OpenFile, Kind::Read, 1, END);
    // A file system may show a lock of the whole file here, or that of another program.
    held.filter(|Held { len, start, .. }| *len == 1 && *start > 0).map(|held| held.start - 1)
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;

    #[test]
    fn others_see_the_last_position_until_the_file_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let (writer, sign) = (File::create(&path).unwrap(), Sign::default());
        let reader = File::open(&path).unwrap();
        writer.lock().unwrap();
        assert_eq!(shown(&reader), None);
        for at in [0, 4096, 8192, 1 << 40] {
            sign.show(&writer, Some(at));
            sign.show(&writer, Some(at));
            assert_eq!(shown(&reader), Some(at));
        }
        assert_eq!(shown(&writer), None, "its own is none of another's");
        sign.show(&writer, Some(END));
        assert_eq!(shown(&reader), None, "no place for it");
        sign.show(&writer, Some(4096));
        // Another descriptor of the process's takes nothing with it.
        drop(File::open(&path).unwrap());
        assert_eq!(shown(&reader), Some(4096));
        drop(writer);
        assert_eq!(shown(&reader), None);
    }
}
