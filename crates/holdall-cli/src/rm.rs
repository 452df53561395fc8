//! `holdall rm`: deletes objects, all of them or none.

use std::ffi::OsString;
use std::path::PathBuf;

use holdall::Error;
use serde_json::{Map, Value, json};

use crate::failure::Outcome;
use crate::{name, open, output};

/// Delete objects; if one of them is missing none is deleted
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Names or OIDs of the objects
    #[arg(required = true, value_name = "NAME")]
    names: Vec<OsString>,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Deletes in one transaction.
pub fn run(args: &Args) -> Outcome {
    let store = open::existing(&args.store)?;
    let collection = args.collection.as_deref();
    // A missing collection is an error here, not one to be made.
    open::reader(&store, collection)?;
    store.write(|tx| {
        let mut tx = open::target(tx, collection)?;
        args.names.iter().try_for_each(|arg| match tx.remove(name::key(arg))? {
            true => Ok(()),
            false => Err(Error::NotFound(format!("object {:?}", arg.to_string_lossy()))),
        })
    })?;
    store.close()?;
    if args.json {
        let names = args.names.iter().map(|arg| {
            let mut object = Map::new();
            name::to_json(&mut object, "name", name::bytes(arg));
            Value::Object(object)
        });
        output::json(
            &json!({ "deleted": args.names.len(), "objects": names.collect::<Vec<_>>() }),
        )?;
    }
    Ok(())
}
