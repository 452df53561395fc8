//! `holdall insert`, `delete-range`, `replace`, `append`, `truncate`: change a part of an
//! object; of the rest only a few pages beside that part are copied.
//!
//! Each is one transaction. A file's bytes are streamed; standard input, whose length is not
//! known, is held in memory first.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use holdall::{Key, Result, WriteTx};

use crate::failure::{Failure, Outcome};
use crate::get::{Span, parse_range};
use crate::{name, open, output};

/// What all edits share.
#[derive(clap::Args)]
struct Place {
    /// The store's file
    store: PathBuf,
    /// Name or OID of the object
    name: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
}

/// Insert bytes before byte N; what was there moves up
#[derive(clap::Args)]
pub struct Insert {
    #[command(flatten)]
    place: Place,
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
    place: Place,
    /// The range, B not included; either side may be left out
    #[arg(long, value_name = "A:B", value_parser = parse_range)]
    range: Span,
}

/// Overwrite bytes from byte N on; the object's size stays
#[derive(clap::Args)]
pub struct Replace {
    #[command(flatten)]
    place: Place,
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
    place: Place,
    /// The bytes; standard input if absent or "-"
    file: Option<PathBuf>,
}

/// Cut an object to a length, or make it longer with zeros
#[derive(clap::Args)]
pub struct Truncate {
    #[command(flatten)]
    place: Place,
    /// The new size in bytes
    length: u64,
}

/// Inserts in one transaction.
pub fn insert(args: &Insert) -> Outcome {
    let mut input = Input::open(args.file.as_deref())?;
    let at = args.at;
    change(&args.place, |tx, key, _| input.splice(tx, key, at..at))
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
    let mut input = Input::open(args.file.as_deref())?;
    let end = args.at.saturating_add(input.len());
    change(&args.place, |tx, key, _| input.splice(tx, key, args.at..end))
}

/// Appends in one transaction.
pub fn append(args: &Append) -> Outcome {
    let mut input = Input::open(args.file.as_deref())?;
    change(&args.place, |tx, key, size| input.splice(tx, key, size..size))
}

/// Cuts or lengthens in one transaction.
pub fn truncate(args: &Truncate) -> Outcome {
    change(&args.place, |tx, key, _| tx.set_len(key, args.length))
}

/// Runs one edit and prints the object's new size.
fn change(place: &Place, edit: impl FnOnce(&mut WriteTx, Key<'_>, u64) -> Result<u64>) -> Outcome {
    let store = open::existing(&place.store)?;
    let size = store.write(|tx| {
        let mut tx = open::target(tx, place.collection.as_deref())?;
        let key = name::key(&place.name);
        let size = tx.metadata(&key)?.size;
        edit(&mut tx, key, size)
    })?;
    store.close()?;
    output::say(format_args!("{size} bytes"))
}

/// The bytes to put in.
enum Input {
    File(File, u64),
    Memory(Vec<u8>),
}

impl Input {
    fn open(file: Option<&Path>) -> Outcome<Self> {
        let Some(path) = file.filter(|path| *path != Path::new("-")) else {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|e| Failure::file("read", Path::new("standard input"), &e))?;
            return Ok(Self::Memory(bytes));
        };
        let mut file = File::open(path).map_err(|e| Failure::file("open", path, &e))?;
        let data = file.metadata().map_err(|e| Failure::file("look at", path, &e))?;
        if data.is_dir() {
            return Err(Failure::told(format!("{} is a directory", path.display()), "give a file"));
        }
        if data.is_file() {
            return Ok(Self::File(file, data.len()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| Failure::file("read", path, &e))?;
        Ok(Self::Memory(bytes))
    }

    fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    fn splice(&mut self, tx: &mut WriteTx, key: Key<'_>, range: Range<u64>) -> Result<u64> {
        match self {
            Self::File(file, len) => tx.splice_from(key, range, file, *len),
            Self::Memory(bytes) => tx.splice(key, range, bytes),
        }
    }
}
