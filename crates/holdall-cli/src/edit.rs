//! `holdall insert`, `delete-range`, `replace`, `append`, `truncate`: change a part of an
//! object; of the rest only a few pages beside that part are copied.
//!
//! Each is one transaction. A regular file's bytes are streamed; other input, whose length is
//! not known, is held in memory first.

use std::ffi::OsString;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use holdall::{Error, Key, ObjectsMut, Result, Store};

use crate::failure::{Failure, Outcome};
use crate::get::{Span, parse_range};
use crate::input::Input;
use crate::wait::Waiting;
use crate::{name, open, output};

/// What all edits share.
#[derive(clap::Args)]
struct EditPlace {
    /// The store's file
    store: PathBuf,
    /// Name or OID of the object
    name: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

/// Insert bytes before byte N; what was there moves up
#[derive(clap::Args)]
pub struct Insert {
    #[command(flatten)]
    place: EditPlace,
    /// Where: 0 is the front, the object's size its end
    #[arg(long, value_name = "N")]
    at: u64,
    /// The bytes; standard input if absent or "-"
    file: Option<PathBuf>,
}

/// Delete the bytes A to B; what comes behind moves down
#[derive(clap::Args)]
pub struct DeleteRange {
    #[command(flatten)]
    place: EditPlace,
    /// The range, B not included; either side may be left out
    #[arg(long, value_name = "A:B", value_parser = parse_range)]
    range: Span,
}

/// Overwrite bytes from byte N on; the object's size stays
#[derive(clap::Args)]
pub struct Replace {
    #[command(flatten)]
    place: EditPlace,
    /// Where
    #[arg(long, value_name = "N")]
    at: u64,
    /// The bytes; standard input if absent or "-"
    file: Option<PathBuf>,
}

/// Add bytes at the end
#[derive(clap::Args)]
pub struct Append {
    #[command(flatten)]
    place: EditPlace,
    /// The bytes; standard input if absent or "-"
    file: Option<PathBuf>,
}

/// Cut an object to a length, or make it longer with zeros
#[derive(clap::Args)]
pub struct Truncate {
    #[command(flatten)]
    place: EditPlace,
    /// The new size in bytes
    length: u64,
}

/// Inserts in one transaction.
pub fn insert(args: &Insert) -> Outcome {
    let mut input = Bytes::open(args.file.as_deref(), &args.place)?;
    let at = args.at;
    splice(&args.place, &mut input, |_| at..at)
}

/// Deletes in one transaction.
pub fn delete_range(args: &DeleteRange) -> Outcome {
    let Span { start, end } = args.range;
    change(&args.place, |tx, key, size| {
        tx.delete_range(key, start.unwrap_or(0)..end.unwrap_or(size))
    })
}

/// Overwrites in one transaction.
pub fn replace(args: &Replace) -> Outcome {
    let mut input = Bytes::open(args.file.as_deref(), &args.place)?;
    let end = args.at.saturating_add(input.len());
    splice(&args.place, &mut input, |_| args.at..end)
}

/// Appends in one transaction.
pub fn append(args: &Append) -> Outcome {
    let mut input = Bytes::open(args.file.as_deref(), &args.place)?;
    splice(&args.place, &mut input, |size| size..size)
}

/// Cuts or lengthens in one transaction.
pub fn truncate(args: &Truncate) -> Outcome {
    change(&args.place, |tx, key, _| tx.set_len(key, args.length))
}

/// Puts bytes in place of the range that follows from the object's size.
fn splice(place: &EditPlace, bytes: &mut Bytes, range: impl FnOnce(u64) -> Range<u64>) -> Outcome {
    let store = open::existing(&place.store, &place.waiting)?;
    bytes.refuse_own(&store)?;
    run(store, place, |tx, key, size| bytes.splice(tx, key, range(size)))
}

/// Opens the store and changes an object.
fn change(
    place: &EditPlace,
    edit: impl FnOnce(&mut ObjectsMut, Key<'_>, u64) -> Result<u64>,
) -> Outcome {
    run(open::existing(&place.store, &place.waiting)?, place, edit)
}

/// Runs one edit and prints the object's new size.
fn run(
    store: Store,
    place: &EditPlace,
    edit: impl FnOnce(&mut ObjectsMut, Key<'_>, u64) -> Result<u64>,
) -> Outcome {
    let size = store.write(|tx| {
        let mut tx = open::target(tx, place.collection.as_deref())?;
        let key = name::key(&place.name);
        let size = tx.metadata(&key)?.size;
        edit(&mut tx, key, size)
    })?;
    open::close(store, "the object is changed")?;
    let said = output::say(format_args!("{size} bytes"));
    output::after("the object is changed", said)
}

/// The bytes to put in.
enum Bytes {
    File(Box<Input>, u64),
    Memory(Vec<u8>),
}

impl Bytes {
    fn open(file: Option<&Path>, place: &EditPlace) -> Outcome<Self> {
        open::check(&place.store, true)?;
        let mut input = Input::open(file, &place.store, "give a file")?;
        // Some files of the system have a size of 0 and content all the same.
        if let Some(left) = input.left.filter(|left| *left > 0) {
            return Ok(Self::File(Box::new(input), left));
        }
        let mut bytes = Vec::new();
        let read = input.file.read_to_end(&mut bytes);
        read.map_err(|e| Failure::file("read", &input.label, &e))?;
        Ok(Self::Memory(bytes))
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn refuse_own(&self, store: &Store) -> Outcome {
        match self {
            Self::File(input, _) => input.refuse_own(store),
            Self::Memory(_) => Ok(()),
        }
    }

    fn splice(&mut self, tx: &mut ObjectsMut, key: Key<'_>, range: Range<u64>) -> Result<u64> {
        match self {
            Self::File(input, len) => {
                let size = tx.splice_from(key, range, &mut input.file, *len)?;
                let unread = |e| Error::io(format!("read {}", input.label.display()), e);
                input.refuse_changed().map_err(unread)?;
                Ok(size)
            }
            Self::Memory(bytes) => tx.splice(key, range, bytes),
        }
    }
}
