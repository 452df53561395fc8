//! `holdall get`: writes one object, or a range of it, to standard output or a file.

use std::ffi::OsString;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use holdall::{Error, Object};
use holdall_bucket::blocking::BucketStore;

use crate::at::{Place, StoreAt};
use crate::bucket;
use crate::failure::{Failure, Outcome};
use crate::files::{self, CopyError};
use crate::outlet::{Outflow, Outlet};
use crate::{name, open, sparse, stop};

/// Write an object's bytes to standard output or to a file
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// Name or OID of the object
    name: OsString,
    /// From byte A up to, not including, byte B; without A from the start, without B to the end
    #[arg(long, value_name = "A:B", value_parser = parse_range)]
    range: Option<Span>,
    /// Write to this file, which is replaced whole or not at all; "-" is standard output
    #[arg(short, long = "output", value_name = "FILE")]
    output: Option<PathBuf>,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
}

/// A byte range as given: either end may be left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Option<u64>,
    pub(crate) end: Option<u64>,
}

pub(crate) fn parse_range(text: &str) -> Result<Span, String> {
    let side = |text: &str| match text {
        "" => Ok(None),
        digits if digits.bytes().all(|b| b.is_ascii_digit()) => {
            digits.parse().map(Some).map_err(|_| format!("{digits} is too large"))
        }
        other => Err(format!("{other:?} is not a number of bytes")),
    };
    let (start, end) = text.split_once(':').ok_or("write A:B, for example 0:100 or 100:")?;
    let span = Span { start: side(start)?, end: side(end)? };
    match (span.start, span.end) {
        (Some(start), Some(end)) if start > end => Err(format!("{start} lies after {end}")),
        _ => Ok(span),
    }
}

impl Args {
    /// Whether the bytes go to standard output.
    pub fn prints(&self) -> bool {
        self.path().is_none()
    }

    /// Where they go otherwise.
    fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }
}

/// A writer's checkpoints may pass the state of an object this long before all of it is read.
const LONG: u64 = 16 << 20;

/// Copies the bytes; a range must lie inside the object.
pub fn run(args: &Args) -> Outcome {
    args.at.check(true, &[&args.name])?;
    let outlet = args.path().map(Outlet::find).transpose()?;
    let path = match args.at.place(args.collection.as_deref())? {
        Place::File(path) => path,
        Place::Bucket(store) => return from_bucket(args, &store, outlet.as_ref()),
    };
    let store = open::read_only(path)?;
    if let Some(outlet) = &outlet {
        outlet.refuse_own(&store)?;
    }
    let mut reader = open::reader(&store, args.collection.as_deref())?;
    let mut object = reader.open(name::key(&args.name))?;
    if object.size() >= LONG
        && let Some(held) = open::hold(path)
    {
        reader = open::reader(&held, args.collection.as_deref())?;
        object = reader.open(name::key(&args.name))?;
    }
    let range = inside(args, object.size())?;
    match outlet {
        None => {
            let mut out = io::stdout().lock();
            copy(object, range, &mut out, Failure::stdout)?;
            out.flush().map_err(|e| Failure::stdout(&e))
        }
        Some(outlet) => {
            let mode = files::stored_mode(&reader.metadata(object.oid())?.attributes);
            to_outlet(object, range, &outlet, mode)
        }
    }
}

/// As [`run`], from a bucket.
fn from_bucket(args: &Args, store: &BucketStore, outlet: Option<&Outlet<'_>>) -> Outcome {
    let name = bucket::text(&args.name)?;
    let object = store.open(name)?.ok_or_else(|| bucket::missing(store, name))?;
    let range = inside(args, object.size())?;
    let Some(outlet) = outlet else {
        let mut out = io::stdout().lock();
        for piece in object.pieces(range)? {
            out.write_all(&piece?).map_err(|e| Failure::stdout(&e))?;
        }
        return out.flush().map_err(|e| Failure::stdout(&e));
    };
    let failed = |e: &io::Error| outlet.failed(e);
    let mut to = outlet.open()?;
    if let Outflow::Stream(file) = &mut to {
        for piece in object.pieces(range)? {
            file.write_all(&piece?).map_err(|e| failed(&e))?;
        }
        return Ok(());
    }
    stop::watch();
    let file = to.file().map_err(|e| failed(&e))?;
    sparse::write_pieces(object.pieces(range)?, file, &mut |_| stop::check_io()).map_err(|e| {
        match e {
            CopyError::Read(e) => Failure::from(files::store_error(e)),
            CopyError::Write(e) => failed(&e),
        }
    })?;
    stop::check()?;
    to.finish(files::stored_mode(&object.info().attributes)).map_err(|e| failed(&e))
}

fn inside(args: &Args, size: u64) -> Outcome<Range<u64>> {
    let span = args.range.unwrap_or(Span { start: None, end: None });
    let range = span.start.unwrap_or(0)..span.end.unwrap_or(size);
    if range.start > range.end || range.end > size {
        let object = name::escape(name::bytes(&args.name));
        return Err(Error::Range { object, start: range.start, end: range.end, size }.into());
    }
    Ok(range)
}

fn copy(
    mut object: Object,
    range: Range<u64>,
    to: &mut impl Write,
    failed: impl Fn(&io::Error) -> Failure,
) -> Outcome {
    object.seek(SeekFrom::Start(range.start)).map_err(files::store_error)?;
    let length = range.end - range.start;
    match files::copy(&mut object.by_ref(), to, length, &mut |_| ()) {
        Ok(_) => Ok(()),
        Err(CopyError::Read(e)) => Err(files::store_error(e).into()),
        Err(CopyError::Write(e)) => Err(failed(&e)),
    }
}

fn to_outlet(object: Object, range: Range<u64>, outlet: &Outlet, mode: Option<u32>) -> Outcome {
    let failed = |e: &io::Error| outlet.failed(e);
    let mut to = outlet.open()?;
    if let Outflow::Stream(file) = &mut to {
        return copy(object, range, file, failed);
    }
    stop::watch();
    let file = to.file().map_err(|e| failed(&e))?;
    sparse::copy(&object, range, file, &mut |_| stop::check_io()).map_err(|e| match e {
        CopyError::Read(e) => Failure::from(files::store_error(e)),
        CopyError::Write(e) => failed(&e),
    })?;
    stop::check()?;
    to.finish(mode).map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_open_ends_and_no_sign() {
        let span = |start, end| Ok(Span { start, end });
        assert_eq!(parse_range("1:5"), span(Some(1), Some(5)));
        assert_eq!(parse_range(":5"), span(None, Some(5)));
        assert_eq!(parse_range("1:"), span(Some(1), None));
        assert_eq!(parse_range(":"), span(None, None));
        for bad in ["", "5", "-1:5", "+1:5", "5:1", "1:2:3", "a:b", "1:99999999999999999999"] {
            assert!(parse_range(bad).is_err(), "{bad}");
        }
    }
}
