//! `holdall put`: stores one object from a file or standard input.
//!
//! The first 4 MiB are read before the store is opened, so that waiting for slow input
//! keeps nobody else out; what is longer is streamed.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::SystemTime;

use holdall::{Attributes, Error, ObjectsMut, Oid, PutOptions, Result, Store, Target};
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::files::{self, CopyError, IN_MEMORY};
use crate::input::Input;
use crate::wait::Waiting;
use crate::{name, open, output, time};

/// Store an object, new or in place of the one of that name, and print its OID
#[derive(clap::Args)]
pub struct Args {
    /// The store's file, made if it is missing
    store: PathBuf,
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
    open::check(&args.store, false)?;
    if name::as_oid(&args.name).is_none() {
        name::check(name::bytes(&args.name))?;
    }
    name::check_collection(args.collection.as_deref())?;
    let hint = "give a file, or use `holdall import`";
    let mut source = Source::from_input(Input::open(args.file.as_deref(), &args.store, hint)?);
    source.read_head()?;
    let store = open::or_create(&args.store, &args.waiting)?;
    let outcome = store_object(args, &store, &mut source);
    let done = |oid| format!("the object is stored as {oid}");
    let (name, oid, size) = store.end(outcome, |(_, oid, _)| done(*oid))?;
    let said = if args.json {
        let mut object = Map::new();
        name::to_json(&mut object, "name", &name);
        object.insert("oid".into(), oid.to_string().into());
        object.insert("size".into(), size.into());
        output::json(&Value::Object(object))
    } else {
        output::say(format_args!("{oid}"))
    };
    output::after(&done(oid), said)
}

fn store_object(args: &Args, store: &Store, source: &mut Source) -> Outcome<(Vec<u8>, Oid, u64)> {
    source.input.refuse_own(store)?;
    let collection = args.collection.as_deref();
    let name =
        name::resolve(&args.name, |oid| Ok(open::reader(store, collection)?.metadata(oid)?.name))?;
    let (oid, size) = store.write(|tx| source.store(&mut *open::target(tx, collection)?, &name))?;
    Ok((name, oid, size))
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

    /// Puts the object; gives its OID and size.
    fn store(&mut self, tx: &mut ObjectsMut, name: &[u8]) -> Result<(Oid, u64)> {
        let head = self.head.len() as u64;
        if head < IN_MEMORY {
            return Ok((
                tx.put_with(
                    name,
                    &self.head,
                    &PutOptions::with_attributes(self.attributes.clone()),
                )?,
                head,
            ));
        }
        let expected_size = self.input.left.filter(|size| *size >= head);
        let attributes = self.attributes.clone();
        let options = PutOptions { expected_size, attributes, ..PutOptions::default() };
        let mut writer = tx.writer(Target::Name(name.to_vec()), options)?;
        let mut from = io::Cursor::new(&self.head).chain(&mut self.input.file);
        let label = self.input.label.display().to_string();
        let unread = |e| Error::io(format!("read {label}"), e);
        // A file that grows as fast as it is read has an end all the same.
        let limit = expected_size.unwrap_or(u64::MAX);
        let size =
            files::copy(&mut from, &mut writer, limit, &mut |_| ()).map_err(|e| match e {
                CopyError::Read(e) => unread(e),
                CopyError::Write(e) => files::store_error(e),
            })?;
        self.input.refuse_changed().map_err(unread)?;
        Ok((writer.finish()?, size))
    }
}
