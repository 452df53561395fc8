//! `holdall put`: stores one object from a file or standard input.
//!
//! The first 4 MiB are read before the store is opened, so that waiting for slow input
//! keeps nobody else out; what is longer is streamed.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::SystemTime;

use holdall::Attributes;
use holdall_control::{Change, Name};
use serde_json::{Map, Value};

use crate::at::{Changes, StoreAt};
use crate::done::Id;
use crate::failure::{Failure, Outcome};
use crate::files::{self, IN_MEMORY};
use crate::input::Input;
use crate::wait::Waiting;
use crate::writer::Rest;
use crate::{name, open, output, time};

/// Store an object, new or in place of the one of that name, and print its OID
///
/// A store's file is made if it is missing. In a bucket the object's version is printed.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// Name of the object, or OID of one that has a name
    name: OsString,
    /// The content; standard input if absent or "-"
    file: Option<PathBuf>,
    /// The collection, made if it is missing; "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Stores in one transaction.
pub fn run(args: &Args) -> Outcome {
    args.at.check(false, &[&args.name])?;
    if name::as_oid(&args.name).is_none() {
        name::check(name::bytes(&args.name))?;
    }
    name::check_collection(args.collection.as_deref())?;
    let hint = "give a file, or use `holdall import`";
    let mut source = Source::from_input(Input::open(args.file.as_deref(), args.at.path(), hint)?);
    source.read_head()?;
    let mut changes = args.at.or_create(&args.waiting)?;
    let outcome = store_object(args, &mut changes, source);
    let done = |id: &Id| format!("the object is stored as {id}");
    let (name, id, size) = changes.end(outcome, |(_, id, _)| done(id))?;
    let said = if args.json {
        let mut object = Map::new();
        name::to_json(&mut object, "name", &name);
        object.insert(id.field().into(), id.to_string().into());
        object.insert("size".into(), size.into());
        output::json(&Value::Object(object))
    } else {
        output::say(format_args!("{id}"))
    };
    output::after(&done(&id), said)
}

fn store_object(
    args: &Args,
    changes: &mut Changes<'_>,
    source: Source,
) -> Outcome<(Vec<u8>, Id, u64)> {
    let collection = args.collection.as_deref();
    let name = match changes.store() {
        None => name::bytes(&args.name).to_vec(),
        Some(store) => {
            source.input.refuse_own(store)?;
            name::resolve(&args.name, |oid| {
                Ok(open::reader(store, collection)?.metadata(oid)?.name)
            })?
        }
    };
    let Source { input, attributes, head } = source;
    let read = head.len() as u64;
    if let Changes::File(writer) = changes
        && read >= IN_MEMORY
    {
        writer.listen();
    }
    let size = input.left.filter(|size| *size >= read);
    let attributes = attributes.into_iter().map(|(key, value)| (key, Name(value))).collect();
    let change = Change::Put { name: Name(name.clone()), attributes, size };
    let data = io::Cursor::new(head).chain(Rest::of(input, read));
    let written = changes.change_with(collection, change, data)?;
    let size = written.size.unwrap_or_default();
    Ok((name, written.stored()?, size))
}

/// Where the content comes from.
struct Source {
    input: Input,
    attributes: Attributes,
    head: Vec<u8>,
}

impl Source {
    fn from_input(input: Input) -> Self {
        let mtime = match input.is_stream {
            true => Some(time::to_nanos(SystemTime::now())),
            false => files::mtime(&input.data),
        };
        let mut attributes = Attributes::new();
        if let Some(nanos) = mtime {
            attributes.insert(files::MTIME.into(), nanos.to_string().into_bytes());
        }
        Self { input, attributes, head: Vec::new() }
    }

    fn read_head(&mut self) -> Outcome {
        let head = self.input.file.by_ref().take(IN_MEMORY).read_to_end(&mut self.head);
        let whole = |len: usize| {
            if (len as u64) < IN_MEMORY { self.input.refuse_changed() } else { Ok(()) }
        };
        head.and_then(whole).map_err(|e| Failure::file("read", &self.input.label, &e))?;
        Ok(())
    }
}
