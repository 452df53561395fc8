//! `holdall cp`: copies one object to another name, with its attributes.

use std::ffi::OsString;
use std::path::PathBuf;

use holdall_control::Change;

use crate::failure::{Failure, Outcome};
use crate::wait::Waiting;
use crate::{name, open, output, writer};

/// Copy an object to another name, in place of the object of that name if there is one
///
/// The two share their segments: a copy takes no time and no space for the bytes of a large
/// object, and an edit of one does not show in the other.
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
    #[command(flatten)]
    waiting: Waiting,
}

/// Copies in one transaction; prints the copy's OID.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.store, true)?;
    if let Some(oid) = name::as_oid(&args.to) {
        return Err(Failure::new(format!("{oid} is an OID"), "give a name"));
    }
    let to = name::bytes(&args.to);
    name::check(to)?;
    let mut writer = writer::existing(&args.store, &args.waiting)?;
    let change = Change::Copy { from: name::key(&args.from).into(), to: to.into() };
    let written = writer.change(args.collection.as_deref(), change)?;
    let oid = written.oid.map(|oid| oid.to_string()).unwrap_or_default();
    let done = format!("the copy is stored as {oid}");
    writer.close(&done)?;
    let said = output::say(format_args!("{oid}"));
    output::after(&done, said)
}
