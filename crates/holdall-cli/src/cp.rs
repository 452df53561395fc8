//! `holdall cp`: copies one object to another name, with its attributes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use holdall::{Target, WriterOptions};

use crate::failure::{Failure, Outcome};
use crate::{files, name, open, output};

/// Copy an object to another name, in place of the object of that name if there is one
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Name or OID of the object
    from: OsString,
    /// Name of the copy
    to: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
}

/// Copies in one transaction; prints the copy's OID.
pub fn run(args: &Args) -> Outcome {
    if let Some(oid) = name::as_oid(&args.to) {
        return Err(Failure::told(format!("{oid} is an OID"), "give a name"));
    }
    let to = name::bytes(&args.to);
    name::check(to)?;
    let store = open::existing(&args.store)?;
    let reader = open::reader(&store, args.collection.as_deref())?;
    let key = name::key(&args.from);
    let (mut from, data) = (reader.open(key)?, reader.metadata(key)?);
    let oid = store.write(|tx| {
        let tx = open::target(tx, args.collection.as_deref())?;
        let options = WriterOptions {
            expected_size: Some(data.size),
            attributes: data.attributes.clone(),
            near: Some(data.oid),
        };
        let mut writer = tx.writer(Target::Name(to.to_vec()), options)?;
        io::copy(&mut from, &mut writer).map_err(files::store_error)?;
        writer.finish()
    })?;
    drop((from, reader));
    store.close()?;
    output::say(format_args!("{oid}"))
}
