//! `holdall put`: stores one object from a file or standard input.
//!
//! The first 4 MiB are read before the store is opened, so that waiting for slow input
//! keeps nobody else out; what is longer is streamed.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use holdall::{Attributes, Error, Oid, PutOptions, Result, Target, WriteTx};
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::files::{self, CopyError, IN_MEMORY};
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
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Stores in one transaction.
pub fn run(args: &Args) -> Outcome {
    if name::as_oid(&args.name).is_none() {
        name::check(name::bytes(&args.name))?;
    }
    let mut source = Source::open(args.file.as_deref())?;
    source.read_head()?;
    let store = open::or_create(&args.store)?;
    let collection = args.collection.as_deref();
    let name =
        name::resolve(&args.name, |oid| Ok(open::reader(&store, collection)?.metadata(oid)?.name))?;
    let (oid, size) = store.write(|tx| source.store(&mut *open::target(tx, collection)?, &name))?;
    store.close()?;
    if args.json {
        let mut object = Map::new();
        name::to_json(&mut object, "name", &name);
        object.insert("oid".into(), oid.to_string().into());
        object.insert("size".into(), size.into());
        output::json(&Value::Object(object))
    } else {
        output::say(format_args!("{oid}"))
    }
}

/// Where the content comes from.
struct Source {
    from: Box<dyn Read>,
    label: PathBuf,
    size: Option<u64>,
    attributes: Attributes,
    head: Vec<u8>,
}

impl Source {
    fn open(file: Option<&Path>) -> Outcome<Self> {
        let path = file.filter(|path| *path != Path::new("-"));
        let mut attributes = Attributes::new();
        let Some(path) = path else {
            let now = time::to_nanos(SystemTime::now());
            attributes.insert(files::MTIME.into(), now.to_string().into_bytes());
            let label = PathBuf::from("standard input");
            let from = Box::new(io::stdin().lock());
            return Ok(Self { from, label, size: None, attributes, head: Vec::new() });
        };
        let file = File::open(path).map_err(|e| Failure::file("open", path, &e))?;
        let data = file.metadata().map_err(|e| Failure::file("look at", path, &e))?;
        if data.is_dir() {
            let what = format!("{} is a directory", path.display());
            return Err(Failure::told(what, "give a file, or use `holdall import`"));
        }
        if let Some(nanos) = files::mtime(&data) {
            attributes.insert(files::MTIME.into(), nanos.to_string().into_bytes());
        }
        // Only a regular file's size says how much there is to read.
        let size = data.is_file().then_some(data.len());
        Ok(Self { from: Box::new(file), label: path.into(), size, attributes, head: Vec::new() })
    }

    fn read_head(&mut self) -> Outcome {
        self.from
            .by_ref()
            .take(IN_MEMORY)
            .read_to_end(&mut self.head)
            .map_err(|e| Failure::file("read", &self.label, &e))?;
        Ok(())
    }

    /// Puts the object; gives its OID and size.
    fn store(&mut self, tx: &mut WriteTx, name: &[u8]) -> Result<(Oid, u64)> {
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
        let expected_size = self.size.filter(|size| *size >= head);
        let attributes = self.attributes.clone();
        let options = PutOptions { expected_size, attributes, ..PutOptions::default() };
        let mut writer = tx.writer(Target::Name(name.to_vec()), options)?;
        let mut from = io::Cursor::new(&self.head).chain(&mut self.from);
        let size =
            files::copy(&mut from, &mut writer, u64::MAX, &mut |_| ()).map_err(|e| match e {
                CopyError::Read(e) => Error::io(format!("read {}", self.label.display()), e),
                CopyError::Write(e) => files::store_error(e),
            })?;
        Ok((writer.finish()?, size))
    }
}
