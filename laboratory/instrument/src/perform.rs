//! Carries out a command that runs experiments, and reports how it went: lines as they end, then
//! the claims as a table or everything as JSON.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde_json::json;

use crate::experiment::Experiment;
use crate::paper::Library;
use crate::price::DiskPrice;
use crate::report::claims::{self, Count, same, source, source_name, whole};
use crate::report::{self, Origin, Parameters, Record, record, terminal};
use crate::run::{self, Plan, Status};

/// Something failed.
pub(crate) const FAILED: u8 = 1;

/// What the user wants of a run.
pub(crate) struct Wish {
    pub(crate) parameters: Parameters,
    /// Where everything is written; made if it is missing.
    pub(crate) dir: PathBuf,
    /// Results as JSON.
    pub(crate) json: bool,
    /// Run again what is already there.
    pub(crate) force: bool,
    /// Experiments at once.
    pub(crate) jobs: usize,
    /// Below which folder the claims are kept.
    pub(crate) into: Option<PathBuf>,
}

/// Runs `chosen` of `experiments`, reports how each ended and what came out; gives the exit code.
pub(crate) fn perform(
    library: &Library,
    experiments: &[Box<dyn Experiment>],
    chosen: Vec<&dyn Experiment>,
    wish: Wish,
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> io::Result<u8> {
    if let Err(error) = record::prepare(&wish.dir) {
        complain(err, &format!("{error:#}"));
        return Ok(FAILED);
    }
    let plan = Plan {
        library,
        experiments: chosen,
        order: all(experiments).map(|e| e.id()).collect(),
        price: match wish.parameters.disk {
            Some(price) => DiskPrice::given(price, "given, not measured"),
            None => DiskPrice::of(&wish.dir),
        },
        origin: Origin::now(&wish.dir),
        parameters: wish.parameters,
        dir: wish.dir,
        force: wish.force,
        jobs: wish.jobs,
    };
    let (statuses, told) = {
        let streams = Mutex::new((&mut *out, &mut *err, Ok(())));
        let ended = |id: &str, status: &Status| {
            let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
            let (out, err, told) = &mut *streams;
            match status {
                Status::Failed(why) => complain(*err, &format!("{id} failed: {why}")),
                _ if wish.json || told.is_err() => {}
                _ => *told = tell(*out, id, status),
            }
        };
        let statuses = run::run(&plan, &ended);
        (statuses, streams.into_inner().unwrap_or_else(PoisonError::into_inner).2)
    };
    told?;
    let report = match report::write(library, &plan.dir, &plan.order) {
        Ok(path) => path,
        Err(error) => {
            complain(err, &format!("{error:#}"));
            return Ok(FAILED);
        }
    };
    let ids = plan.experiments.iter().map(|e| e.id());
    let ended: Vec<(&str, &Status)> = ids.zip(&statuses).collect();
    if wish.json {
        writeln!(out, "{:#}", results(library, &ended, &report.display().to_string()))?;
    } else {
        summary(library, out, &statuses)?;
        writeln!(out, "report: {}", report.display())?;
    }
    let failed: Vec<&str> = ended.iter().filter(|e| e.1.record().is_none()).map(|e| e.0).collect();
    if !failed.is_empty() {
        complain(err, &format!("not finished: {}", failed.join(", ")));
        return Ok(FAILED);
    }
    let Some(into) = wish.into else { return Ok(0) };
    let records: Vec<Record> = statuses.iter().filter_map(Status::record).cloned().collect();
    match report::publish(library, &records, &into) {
        Ok(folder) if !wish.json => writeln!(out, "claims: {}", folder.display())?,
        Ok(_) => {}
        Err(error) => {
            complain(err, &format!("{error:#}"));
            return Ok(FAILED);
        }
    }
    Ok(0)
}

/// All of them, borrowed.
pub(crate) fn all(experiments: &[Box<dyn Experiment>]) -> impl Iterator<Item = &dyn Experiment> {
    experiments.iter().map(AsRef::as_ref)
}

/// Says what went wrong.
pub(crate) fn complain(err: &mut (dyn Write + Send), message: &str) {
    // Nowhere to report a failed write of a message to.
    let _ = writeln!(err, "holdall-lab: {message}");
}

fn tell(out: &mut (dyn Write + Send), id: &str, status: &Status) -> io::Result<()> {
    match status {
        Status::Ran(record) => {
            let words = Count::of(&record.outcome.claims).words();
            writeln!(out, "{id}: done in {:.1} s, {words}", record.seconds)
        }
        Status::Kept(_) => writeln!(out, "{id}: already done, kept (--force runs it again)"),
        Status::Failed(_) => Ok(()),
    }
}

fn summary(library: &Library, out: &mut (dyn Write + Send), statuses: &[Status]) -> io::Result<()> {
    let records = || statuses.iter().filter_map(Status::record);
    let claims = || records().flat_map(|r| &r.outcome.claims);
    let table = terminal::table(claims());
    if !table.is_empty() {
        write!(out, "\n{table}\n")?;
    }
    for from in claims::sources(library) {
        let rows = || {
            let rows = records().flat_map(|r| r.outcome.claims.iter().map(move |c| (r, c)));
            rows.filter(|(r, c)| same(source(library, r, c), from)).map(|(_, c)| c)
        };
        let ran = from.is_some_and(|paper| records().any(|r| r.paper == paper.name));
        if ran || rows().next().is_some() {
            let numbers = match whole(rows()) {
                (hold, all) if from.is_some() && all > 0 => {
                    format!("; by their numbers, {hold} of {all} hold in every row")
                }
                _ => String::new(),
            };
            let words = Count::of(rows()).words();
            writeln!(out, "{}: {words}{numbers}", source_name(from))?;
        }
    }
    Ok(())
}

fn results(library: &Library, ended: &[(&str, &Status)], report: &str) -> serde_json::Value {
    let one = |(id, status): &(&str, &Status)| match status {
        Status::Failed(why) => json!({"id": id, "status": "failed", "error": why}),
        Status::Ran(record) | Status::Kept(record) => json!({
            "id": id,
            "status": if matches!(status, Status::Ran(_)) { "ran" } else { "kept" },
            "paper": library.named(&record.paper).map(|p| p.citation),
            "parameters": record.parameters,
            "seconds": record.seconds,
            "claims": record.outcome.claims,
        }),
    };
    json!({"report": report, "results": ended.iter().map(one).collect::<Vec<_>>()})
}
