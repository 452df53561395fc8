//! Stores files that do not fit in memory.
//!
//! Owns no state. Invariant: what was not read to its end, or changed meanwhile, does not become
//! an object.

use std::fs::File;
use std::io::{self, Read};
use std::time::Duration;

use holdall::{ObjectsMut, PutOptions, Result, Store, Target};

use super::feed::Incoming;
use super::source::{self, ATTEMPTS, CHANGES, Content, Opened};
use crate::files::{self, CopyError};

/// What was stored, or why the file could not be read.
type Stored = std::result::Result<Done, String>;

/// A file that was stored.
#[derive(Debug, PartialEq, Eq)]
pub struct Done {
    /// Its bytes.
    pub size: u64,
    /// As [`super::source::Source::young`].
    pub young: Option<Duration>,
}

/// Opens the file that is to be stored; why that cannot be, if it cannot.
fn open(store: &Store, file: &Incoming) -> Result<std::result::Result<Opened, String>> {
    let opened = match Opened::open(&file.place) {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error.to_string())),
    };
    // Put in its place since it was looked at.
    if opened.is_own(store).map_err(files::store_error)? {
        return Ok(Err("it is a file of the store itself".to_owned()));
    }
    Ok(Ok(opened))
}

/// Whether the file is as it was when it was opened: why not, if not.
fn check(opened: &Opened) -> std::result::Result<(), String> {
    match opened.is_unchanged() {
        Ok(true) => Ok(()),
        Ok(false) => Err(CHANGES.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Stores a file in a transaction with others.
pub fn store(
    store: &Store,
    tx: &mut ObjectsMut,
    file: &Incoming,
    moved: &mut dyn FnMut(u64),
) -> Result<Stored> {
    for _ in 0..ATTEMPTS {
        let mut opened = match open(store, file)? {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        let size = opened.data.len();
        let attributes = opened.attributes(&file.place);
        let options = PutOptions { expected_size: Some(size), attributes, ..PutOptions::default() };
        let mut writer = tx.writer(Target::Name(file.name.clone()), options)?;
        match files::copy(&mut opened.file, &mut writer, size, moved) {
            Ok(_) => {}
            Err(CopyError::Read(error)) => return Ok(Err(error.to_string())),
            Err(CopyError::Write(error)) => return Err(files::store_error(error)),
        }
        match check(&opened) {
            Ok(()) => {
                let size = writer.len();
                writer.finish()?;
                return Ok(Ok(Done { size, young: opened.young() }));
            }
            Err(why) if why == CHANGES => {}
            Err(why) => return Ok(Err(why)),
        }
    }
    Ok(Err(CHANGES.to_owned()))
}

/// Stores a file with its holes; if it cannot be read, the transaction is to be given up.
pub fn store_sparse(
    store: &Store,
    tx: &mut ObjectsMut,
    file: &Incoming,
    moved: &mut dyn FnMut(u64),
) -> Result<Stored> {
    let opened = match open(store, file)? {
        Ok(opened) => opened,
        Err(why) => return Ok(Err(why)),
    };
    let hints = source::hints(matches!(file.source.content, Content::StreamedSparse(true)));
    let options = PutOptions { hints, ..PutOptions::default() };
    let oid = tx.put_with(&file.name, &[], &options)?;
    let mut at = 0;
    loop {
        let data = match opened.next_data(at) {
            Ok(Some(data)) => data,
            Ok(None) => break,
            Err(error) => return Ok(Err(error.to_string())),
        };
        tx.set_len(oid, data.start)?;
        let mut stretch = match Stretch::new(&opened.file, data.start, moved) {
            Ok(stretch) => stretch,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let spliced =
            tx.splice_from(oid, data.start..data.start, &mut stretch, data.end - data.start);
        match (spliced, stretch.failed) {
            (Ok(_), _) => {}
            (Err(_), Some(why)) => return Ok(Err(why)),
            (Err(error), None) => return Err(error),
        }
        at = data.end;
    }
    tx.set_len(oid, opened.data.len())?;
    // Only now: a change of the bytes drops their time.
    tx.set_attributes(oid, &opened.attributes(&file.place))?;
    Ok(check(&opened).map(|()| Done { size: opened.data.len(), young: opened.young() }))
}

/// Reads on in a file, and keeps what went wrong.
struct Stretch<'f> {
    file: &'f File,
    moved: &'f mut dyn FnMut(u64),
    failed: Option<String>,
}

impl<'f> Stretch<'f> {
    fn new(file: &'f File, start: u64, moved: &'f mut dyn FnMut(u64)) -> io::Result<Self> {
        rustix::fs::seek(file, rustix::fs::SeekFrom::Start(start))?;
        Ok(Self { file, moved, failed: None })
    }
}

impl Read for Stretch<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.file.read(buffer) {
            Ok(0) if !buffer.is_empty() => {
                // Cut since it was looked at.
                self.failed = Some(CHANGES.to_owned());
                Ok(0)
            }
            Ok(n) => {
                (self.moved)(n as u64);
                Ok(n)
            }
            Err(error) => {
                self.failed = Some(error.to_string());
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::source::Source;
    use crate::import::walk::Place;
    use std::io::Write;

    fn incoming(path: &std::path::Path) -> Incoming {
        let root = files::open_directory(path.parent().unwrap()).unwrap().into();
        let place = Place { root, below: path.file_name().unwrap().into(), dirs: None };
        let opened = Opened::open(&place).unwrap();
        let attributes = opened.attributes(&place);
        let size = opened.data.len();
        let source = Source { content: Content::Streamed, size, attributes, young: None };
        Incoming { name: b"a".into(), place, source, replaces: false, is_quiet: false }
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_read_again_and_then_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        for (changes, sparse) in [(1, false), (1_000_000, false), (1_000_000, true)] {
            std::fs::write(&path, vec![7; 5 << 20]).unwrap();
            let file = incoming(&path);
            let target = Store::in_memory().unwrap();
            let mut left = changes;
            let mut change = |_| {
                if left > 0 {
                    left -= 1;
                    let mut file = File::options().append(true).open(&path).unwrap();
                    file.write_all(b"more").unwrap();
                }
            };
            let mut tx = target.begin_write().unwrap();
            let put = if sparse { store_sparse } else { store };
            let stored = put(&target, &mut tx, &file, &mut change).unwrap();
            if changes > 1 {
                assert_eq!(stored, Err(CHANGES.to_owned()));
            } else {
                assert_eq!(stored.map(|done| done.size), Ok((5 << 20) + 4));
            }
            if !sparse {
                tx.commit().unwrap();
                let found = target.read().unwrap().get("a").unwrap();
                assert!(found == (changes == 1).then(|| std::fs::read(&path).unwrap()));
            }
        }
    }
}
