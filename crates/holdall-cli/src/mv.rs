//! `holdall mv`: renames an object; its OID stays.

use std::ffi::OsString;

use holdall_control::{Change, Name};

use crate::at::StoreAt;
use crate::failure::{Failure, Outcome};
use crate::wait::Waiting;
use crate::{name, open};

/// Rename an object; an object that has the new name already is left alone
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
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
    args.at.check(true, &[&args.from, &args.to])?;
    if let Some(oid) = name::as_oid(&args.to) {
        return Err(Failure::new(format!("{oid} is an OID"), "give a new name"));
    }
    let mut changes = args.at.existing(&args.waiting)?;
    let collection = args.collection.as_deref();
    let from = match changes.store() {
        None => name::bytes(&args.from).to_vec(),
        Some(store) => {
            let reader = open::reader(store, collection)?;
            name::resolve(&args.from, |oid| Ok(reader.metadata(oid)?.name))?
        }
    };
    let change = Change::Rename { from: Name(from), to: name::bytes(&args.to).into() };
    changes.change(collection, change)?;
    changes.close("the object is renamed")
}
