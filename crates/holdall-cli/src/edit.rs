//! `holdall insert`, `delete-range`, `replace`, `append`, `truncate`: change a part of an
//! object; of the rest only a few pages beside that part are copied.
//!
//! Each is one transaction. A regular file's bytes are streamed; other input, whose length is
//! not known, is held in memory first.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdall_control::{Change, Object};

use crate::at::{Changes, StoreAt};
use crate::failure::{Failure, Outcome};
use crate::get::{Span, parse_range};
use crate::input::Input;
use crate::wait::Waiting;
use crate::writer::Rest;
use crate::{name, output};

/// What all edits share.
#[derive(clap::Args)]
struct EditPlace {
    #[command(flatten)]
    at: StoreAt,
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
    splice(&args.place, args.file.as_deref(), |_| (Some(args.at), 0))
}

/// Deletes in one transaction.
pub fn delete_range(args: &DeleteRange) -> Outcome {
    let Span { start, end } = args.range;
    change(&args.place, |object| Change::DeleteRange { object, start, end })
}

/// Overwrites in one transaction.
pub fn replace(args: &Replace) -> Outcome {
    splice(&args.place, args.file.as_deref(), |length| (Some(args.at), length))
}

/// Appends in one transaction.
pub fn append(args: &Append) -> Outcome {
    splice(&args.place, args.file.as_deref(), |_| (None, 0))
}

/// Cuts or lengthens in one transaction.
pub fn truncate(args: &Truncate) -> Outcome {
    let length = args.length;
    change(&args.place, |object| Change::SetLen { object, length })
}

/// Puts the bytes of a file in place of as many as follow from their number.
fn splice(
    place: &EditPlace,
    file: Option<&Path>,
    to: impl FnOnce(u64) -> (Option<u64>, u64),
) -> Outcome {
    let bytes = Bytes::open(file, place)?;
    let changes = place.at.existing(&place.waiting)?;
    bytes.refuse_own(&changes)?;
    let (object, length) = (name::key(&place.name).into(), bytes.len());
    let (start, replaced) = to(length);
    let change = Change::Splice { object, start, replaced, length };
    match bytes {
        Bytes::File(input, _) => run(changes, place, change, Rest::of(*input, 0)),
        Bytes::Memory(bytes) => run(changes, place, change, io::Cursor::new(bytes)),
    }
}

/// Opens the store and changes an object.
fn change(place: &EditPlace, change: impl FnOnce(Object) -> Change) -> Outcome {
    place.at.check(true, &[&place.name])?;
    let changes = place.at.existing(&place.waiting)?;
    run(changes, place, change(name::key(&place.name).into()), io::empty())
}

/// Makes one edit and prints the object's new size.
fn run(
    mut changes: Changes<'_>,
    place: &EditPlace,
    change: Change,
    data: impl Read + Send + 'static,
) -> Outcome {
    let written = changes.change_with(place.collection.as_deref(), change, data)?;
    changes.close("the object is changed")?;
    let said = output::say(format_args!("{} bytes", written.size.unwrap_or_default()));
    output::after("the object is changed", said)
}

/// The bytes to put in.
enum Bytes {
    File(Box<Input>, u64),
    Memory(Vec<u8>),
}

impl Bytes {
    fn open(file: Option<&Path>, place: &EditPlace) -> Outcome<Self> {
        place.at.check(true, &[&place.name])?;
        let mut input = Input::open(file, place.at.path(), "give a file")?;
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

    fn refuse_own(&self, changes: &Changes<'_>) -> Outcome {
        match (self, changes.store()) {
            (Self::File(input, _), Some(store)) => input.refuse_own(store),
            _ => Ok(()),
        }
    }
}
