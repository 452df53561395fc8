//! `holdall mv`: renames an object; its OID stays.

use std::ffi::OsString;
use std::path::PathBuf;

use holdall_control::{Change, Name};

use crate::failure::{Failure, Outcome};
use crate::wait::Waiting;
use crate::{name, open, writer};

/// Rename an object; an object that has the new name already is left alone
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Name or OID of the object
    from: OsString,
    /// The new name
    to: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

/// Renames in one transaction.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.store, true)?;
    if let Some(oid) = name::as_oid(&args.to) {
        return Err(Failure::new(format!("{oid} is an OID"), "give a new name"));
    }
    let mut writer = writer::existing(&args.store, &args.waiting)?;
    let collection = args.collection.as_deref();
    let reader = open::reader(writer.store(), collection)?;
    let from = name::resolve(&args.from, |oid| Ok(reader.metadata(oid)?.name))?;
    drop(reader);
    let change = Change::Rename { from: Name(from), to: name::bytes(&args.to).into() };
    writer.change(collection, change)?;
    writer.close("the object is renamed")
}
