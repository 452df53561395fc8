//! `holdall backups`: what backups a place in a bucket has.

use std::path::PathBuf;

use serde_json::json;

use crate::bucket::Reach;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Out};
use crate::time;

/// List the backups of a place in a bucket
#[derive(clap::Args)]
pub struct Args {
    /// `s3://BUCKET/PREFIX`
    place: PathBuf,
    /// Print one JSON object for each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Lists them, the oldest first.
pub fn run(args: &Args) -> Outcome {
    let place = args.reach.place(&args.place)?.ok_or_else(|| {
        let what = format!("{} is no place in a bucket", args.place.display());
        Failure::new(what, "write s3://BUCKET/PREFIX")
    })?;
    let mut out = Out::new();
    for listed in place.list()? {
        let base = listed.base.map(|base| base.to_string());
        if args.json {
            let value = json!({ "id": listed.id.to_string(), "base": base, "time": listed.time });
            out.line(format_args!("{}", output::json_text(&value)))?;
            continue;
        }
        let date = time::date(i128::from(listed.time) * 1_000_000);
        let what = base.map_or_else(|| "whole".to_owned(), |base| format!("since {base}"));
        out.line(format_args!("{date}  {}  {what}", listed.id))?;
    }
    out.finish()
}
