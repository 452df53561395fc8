//! `holdall rm`: deletes objects by name, all of them or none, or all below a prefix.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

use holdall::{Entry, Key};
use holdall_control::{Change, Keys, Object};
use serde_json::{Map, Value, json};

use crate::at::{Changes, StoreAt};
use crate::bucket;
use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::input::Input;
use crate::wait::Waiting;
use crate::{bucket_changes, name, open, output};

/// Names below a prefix that one transaction removes.
const NAMES_PER_TRANSACTION: usize = 2000;

/// Delete objects; if one of those named is missing none is deleted
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// Names or OIDs of the objects
    #[arg(required_unless_present_any = ["prefix", "from"], value_name = "NAME")]
    names: Vec<OsString>,
    /// Delete all objects whose names begin with this, in transactions of 2000
    #[arg(long, value_name = "P", conflicts_with_all = ["names", "from"])]
    prefix: Option<OsString>,
    /// Read names from this file, one on a line as `ls` prints them; "-" is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "names")]
    from: Option<PathBuf>,
    /// Names in FILE end with a NUL byte, and are taken as they are
    #[arg(long, short = '0', requires = "from", conflicts_with_all = ["names", "prefix"])]
    null: bool,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    waiting: Waiting,
}

impl Args {
    /// Whether it says what it deleted.
    pub fn prints(&self) -> bool {
        self.json || self.names.is_empty()
    }
}

/// Deletes.
pub fn run(args: &Args) -> Outcome {
    let given: Vec<_> = args.names.iter().chain(&args.prefix).map(AsRef::as_ref).collect();
    args.at.check(true, &given)?;
    let prefix = args.prefix.as_deref().map(name::bytes);
    if prefix == Some(&[]) {
        let hint = "give its beginning, or all names with `holdall ls -0 | holdall rm --from - -0`";
        return Err(Failure::new("an empty prefix is that of every name", hint));
    }
    // All of it before the store is opened: slow input keeps nobody else out.
    let listed = args.from.as_deref().map(|_| listed(args)).transpose()?;
    let mut changes = args.at.existing(&args.waiting)?;
    if let Some(prefix) = prefix {
        let deleted = below(args, &mut changes, prefix)?;
        changes.close(&format!("deleted {deleted} objects"))?;
        return report(args, deleted, None);
    }
    let given = || args.names.iter().map(|arg| (name::bytes(arg), name::key(arg)));
    match &listed {
        Some(names) => remove(args, &mut changes, names.iter().map(Key::from))?,
        None => remove(args, &mut changes, given().map(|(_, key)| key))?,
    }
    changes.close("the objects are deleted")?;
    match listed {
        Some(names) => report(args, names.len(), Some(&names)),
        None => report(
            args,
            args.names.len(),
            Some(&given().map(|(name, _)| name.to_vec()).collect::<Vec<_>>()),
        ),
    }
}

/// The names in the file of `--from`.
fn listed(args: &Args) -> Outcome<Vec<Vec<u8>>> {
    let mut input = Input::open(args.from.as_deref(), args.at.path(), "give a file of names")?;
    let mut bytes = Vec::new();
    let read = input.file.read_to_end(&mut bytes);
    read.map_err(|e| Failure::file("read", &input.label, &e))?;
    let end = if args.null { 0 } else { b'\n' };
    // What follows the last end is a name too, if it is there.
    let bytes = bytes.strip_suffix(&[end]).unwrap_or(&bytes);
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let name = |(at, text): (usize, &[u8])| {
        let failed = |why: &str| {
            let what = format!("{} has no name in line {}: {why}", input.label.display(), at + 1);
            Failure::new(
                what,
                "nothing was deleted; correct it, or end raw names with NUL bytes and use -0",
            )
        };
        let name = if args.null { text.to_vec() } else { name::unescape(text).map_err(failed)? };
        if name.is_empty() { Err(failed("it is empty")) } else { Ok(name) }
    };
    bytes.split(|byte| *byte == end).enumerate().map(name).collect()
}

/// Removes all in one transaction.
fn remove<'k>(
    args: &Args,
    changes: &mut Changes<'_>,
    keys: impl Iterator<Item = Key<'k>>,
) -> Outcome {
    let keys = Keys { keys: keys.map(Object::from).collect(), more: false };
    changes.change(args.collection.as_deref(), Change::Remove(keys)).map(drop)
}

/// Removes the objects whose names begin with `prefix`, and counts them.
fn below(args: &Args, changes: &mut Changes<'_>, prefix: &[u8]) -> Outcome<usize> {
    let deleted = match changes {
        Changes::File(_) => below_in_file(args, changes, prefix)?,
        Changes::Bucket(store) => {
            let prefix = std::str::from_utf8(prefix).map_err(|_| bucket::not_text(prefix))?;
            let store = bucket::in_collection(store, args.collection.as_deref())?;
            bucket_changes::remove_below(&store, prefix)?
        }
    };
    if deleted == 0 {
        let what = format!("not found: names that begin with {}", name::escape(prefix));
        let hint = "see what is there with `holdall ls STORE`";
        return Err(Failure::Told(what, hint.into(), NOT_FOUND));
    }
    Ok(deleted)
}

fn below_in_file(args: &Args, changes: &mut Changes<'_>, prefix: &[u8]) -> Outcome<usize> {
    let store = match changes {
        Changes::File(writer) if !writer.is_other() => writer.store().clone(),
        _ => open::held(args.at.path())?,
    };
    let reader = open::reader(&store, args.collection.as_deref())?;
    drop(store);
    let mut names = reader.names(prefix).map(|item| item.map(|Entry { name, .. }| name));
    let mut deleted = 0;
    loop {
        let so_far = |failure: Failure| match deleted {
            0 => failure,
            deleted => failure.after(&format!("deleted {deleted} objects")),
        };
        let batch = names.by_ref().take(NAMES_PER_TRANSACTION).collect::<Result<Vec<_>, _>>();
        let batch = batch.map_err(|e| so_far(e.into()))?;
        if batch.is_empty() {
            return Ok(deleted);
        }
        remove(args, changes, batch.iter().map(Key::from)).map_err(so_far)?;
        deleted += batch.len();
    }
}

/// Says what was deleted; `names` were given.
fn report(args: &Args, deleted: usize, names: Option<&[Vec<u8>]>) -> Outcome {
    let mut result = json!({ "deleted": deleted });
    if args.json {
        if let Some(names) = names {
            let objects = names.iter().map(|name| {
                let mut object = Map::new();
                name::to_json(&mut object, "name", name);
                Value::Object(object)
            });
            result["objects"] = objects.collect();
        }
        return output::after("the objects are deleted", output::json(&result));
    }
    if args.prints() {
        let said = output::say(format_args!("deleted {deleted} objects"));
        return output::after("the objects are deleted", said);
    }
    Ok(())
}
