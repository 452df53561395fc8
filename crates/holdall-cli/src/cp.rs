//! `holdall cp`: copies one object to another name, with its attributes.

use std::ffi::OsString;

use holdall_control::Change;

use crate::at::StoreAt;
use crate::failure::{Failure, Outcome};
use crate::wait::Waiting;
use crate::{name, output};

/// Copy an object to another name, in place of the object of that name if there is one
///
/// The two share their segments: a copy takes no time and no space for the bytes of a large
/// object, and an edit of one does not show in the other.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// Name or OID of the object
    from: OsString,
    /// Name of the copy
    to: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

/// Copies in one transaction; prints the copy's OID, in a bucket its version.
pub fn run(args: &Args) -> Outcome {
    args.at.check(true, &[&args.from, &args.to])?;
    if let Some(oid) = name::as_oid(&args.to) {
        return Err(Failure::new(format!("{oid} is an OID"), "give a name"));
    }
    let to = name::bytes(&args.to);
    name::check(to)?;
    let mut changes = args.at.existing(&args.waiting)?;
    let change = Change::Copy { from: name::key(&args.from).into(), to: to.into() };
    let id = changes.change(args.collection.as_deref(), change)?.stored()?;
    let done = format!("the copy is stored as {id}");
    changes.close(&done)?;
    let said = output::say(format_args!("{id}"));
    output::after(&done, said)
}
