//! `holdall backup` to a place in a bucket, once or again and again.
//!
//! Owns: [`Closed`], a store that nobody has open: it is opened for changes only to be marked.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use holdall::{BackupSource, Mark, Options, Progress, Reader, Store};
use holdall_bucket::{BackedUp, Base, Bucket, Event, Follow, Followed, Keep, Pruned, Settings};
use holdall_control::Elsewhere;
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome, complain};
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::{stop, time};

/// What was asked for.
pub struct Wanted {
    pub store: PathBuf,
    /// How it is opened if nobody has it open.
    pub options: Options,
    pub verify: bool,
    pub rate: Option<u64>,
    pub keep: Option<Keep>,
    pub json: bool,
}

/// Adds a backup to the place.
pub fn take(
    wanted: &Wanted,
    place: &Bucket,
    increment: bool,
    source: &mut dyn BackupSource,
) -> Outcome {
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let base = if increment { Base::Newest } else { Base::None };
    let settings = Settings { base, verify: wanted.verify, rate: wanted.rate };
    let added = place.back_up(source, settings, &mut |progress: Progress| {
        totals.set(0, progress.total);
        meter.at(0, progress.done);
        if stop::check().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let took = meter.finish();
    let added = match added {
        Err(_) if stop::check().is_err() => return stop::check(),
        added => added?,
    };
    say_added(wanted, &added, Some(took))?;
    if let Some(keep) = &wanted.keep {
        let pruned = place.prune(keep).map_err(|e| Failure::from(e).after("the backup is made"))?;
        say_removed(wanted, &pruned)?;
    }
    Ok(())
}

/// Adds what changed every so often, until the command is ended.
pub fn follow(wanted: &Wanted, place: &Bucket, every: Duration) -> Outcome {
    let Wanted { verify, rate, keep, .. } = *wanted;
    let settings = Follow { every, verify, rate, keep };
    let mut said = Ok(());
    let mut sources = || -> holdall::Result<Followed<Box<dyn BackupSource + Send>>> {
        if let Ok(Some(other)) = Elsewhere::connect(&wanted.store) {
            return Ok(Followed::Shared(Box::new(other)));
        }
        let (path, options) = (wanted.store.clone(), wanted.options.clone());
        Ok(Followed::Alone(Box::new(Closed { path, options })))
    };
    let ended = holdall_bucket::follow(place, settings, &mut sources, &mut |event| {
        let told = match event {
            None => Ok(()),
            Some(Event::Added(added)) => say_added(wanted, &added, None),
            Some(Event::Removed(pruned)) => say_removed(wanted, &pruned),
            Some(Event::Failed(e)) => {
                Failure::from(e).report();
                complain("it is tried again at the next turn");
                Ok(())
            }
        };
        said = told;
        // Being told to end is how it ends.
        match said.is_err() || stop::check().is_err() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    said.and(ended.map_err(Failure::from))
}

fn say_added(wanted: &Wanted, added: &BackedUp, took: Option<Duration>) -> Outcome {
    let listed = &added.listed;
    if wanted.json {
        let mut value = json!({
            "id": listed.id.to_string(),
            "base": listed.base.map(|base| base.to_string()),
            "time": listed.time,
            "in_use_bytes": added.in_use,
            "written_bytes": added.bytes,
            "resumed_bytes": added.resumed,
            "verified": wanted.verify,
        });
        if let (Some(took), Value::Object(map)) = (took, &mut value) {
            map.insert("seconds".into(), json!(took.as_secs_f64()));
        }
        return one_line(&value);
    }
    let mut out = Out::new();
    if took.is_none() {
        out.text(&format!("{}  ", time::date(time::to_nanos(SystemTime::now()))))?;
    }
    let checked = if wanted.verify { ", verified" } else { "" };
    let before = match added.resumed {
        0 => String::new(),
        bytes => format!(", {bytes} of them before"),
    };
    let (id, bytes, all) = (listed.id, added.bytes, added.in_use);
    let since = listed.base.map_or_else(String::new, |base| format!(" since {base}"));
    out.line(format_args!(
        "backup {id}{since}: {bytes} bytes written{before}, of {all} in use{checked}"
    ))?;
    out.finish()
}

fn say_removed(wanted: &Wanted, pruned: &Pruned) -> Outcome {
    if wanted.json {
        let ids: Vec<String> = pruned.backups.iter().map(|gone| gone.id.to_string()).collect();
        return one_line(&json!({ "removed": ids, "removed_bytes": pruned.bytes }));
    }
    let mut out = Out::new();
    let (count, bytes) = (pruned.backups.len(), pruned.bytes);
    out.line(format_args!("{count} backups removed, {bytes} bytes"))?;
    out.finish()
}

fn one_line(value: &Value) -> Outcome {
    let mut out = Out::new();
    out.line(format_args!("{}", output::json_text(value)))?;
    out.finish()
}

/// A store that nobody has open.
struct Closed {
    path: PathBuf,
    options: Options,
}

impl BackupSource for Closed {
    /// The store is open for changes as long as that takes; it is copied by reading alone.
    fn mark(&mut self, forget: &[[u8; 16]]) -> holdall::Result<Option<Mark>> {
        let store = self.options.clone().open(&self.path)?;
        let mark = store.mark_backup(forget)?;
        store.close()?;
        Ok(Some(mark))
    }

    fn state(&mut self) -> holdall::Result<Reader> {
        Store::open_read_only(&self.path)?.read()
    }
}
