//! Running experiments: which still have to run, up to two at once, each with its progress.
//!
//! Threads: each job takes the next experiment from a shared counter. Records and the report
//! are written by the job that ran the experiment; the report under a lock. An experiment that
//! fails or panics ends with its own status and hinders no other.

use std::io::{IsTerminal, stderr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::claim::finish;
use crate::contest::redact;
use crate::experiment::{Experiment, Outcome, Settings};
use crate::paper::Library;
use crate::parts::PartFiles;
use crate::picture::number::NO_VALUE;
use crate::price::DiskPrice;
use crate::report::{self, Origin, Parameters, Record};

/// What to run, and how.
pub struct Plan<'e> {
    /// Whose experiments they are.
    pub library: &'e Library,
    /// In the order in which they begin.
    pub experiments: Vec<&'e dyn Experiment>,
    /// Names of all there are, in the report's order.
    pub order: Vec<&'e str>,
    /// For each of them.
    pub parameters: Parameters,
    /// The disk of today.
    pub price: DiskPrice,
    /// When, where and of what it is run.
    pub origin: Origin,
    /// Where everything is written; must exist.
    pub dir: PathBuf,
    /// Run again what is there already.
    pub force: bool,
    /// At once.
    pub jobs: usize,
}

impl Plan<'_> {
    fn parameters_of(&self, experiment: &dyn Experiment) -> Parameters {
        let needs = experiment.needs();
        Parameters {
            disk: self.parameters.disk.filter(|_| needs.price),
            repetitions: self.parameters.repetitions.filter(|_| needs.alone),
            ..self.parameters.clone()
        }
    }
}

/// How an experiment ended.
#[derive(Debug)]
pub enum Status {
    /// It ran; its files are written.
    Ran(Record),
    /// A run with these parameters was there.
    Kept(Record),
    /// Why it did not end, in one line. What was there before is as it was.
    Failed(String),
}

impl Status {
    /// The record, but for a failure.
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        match self {
            Self::Ran(record) | Self::Kept(record) => Some(record),
            Self::Failed(_) => None,
        }
    }
}

/// Runs `plan` and reports `ended` of each experiment when it ends; the result is in the plan's
/// order. The report is written after each, so that a run that is broken off has one.
pub fn run(plan: &Plan<'_>, ended: &(dyn Fn(&str, &Status) + Sync)) -> Vec<Status> {
    let bars = MultiProgress::new();
    let done: Mutex<Vec<(usize, Status)>> = Mutex::new(Vec::new());
    let all = || plan.experiments.iter().enumerate();
    let alone: Vec<_> = all().filter(|(_, e)| e.needs().alone).collect();
    let shared: Vec<_> = all().filter(|(_, e)| !e.needs().alone).collect();
    let work = |list: &[(usize, &&dyn Experiment)], next: &AtomicUsize| {
        while let Some(&(at, experiment)) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut status = one(plan, *experiment, &bars);
            // A job that panicked while it held the lock left whole statuses in the list.
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(status, Status::Ran(_))
                && let Err(error) = report::write(plan.library, &plan.dir, &plan.order)
            {
                status = Status::Failed(format!("{error:#}"));
            }
            bars.suspend(|| ended(experiment.id(), &status));
            done.push((at, status));
        }
    };
    let first = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (work, shared, next) = (&work, &shared, &first);
        for _ in 1..plan.jobs {
            scope.spawn(move || work(shared, next));
        }
        work(shared, next);
    });
    // What is timed has the machine for itself.
    work(&alone, &AtomicUsize::new(0));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, status)| status).collect()
}

fn one(plan: &Plan<'_>, experiment: &dyn Experiment, bars: &MultiProgress) -> Status {
    let kept = || -> Result<Option<Record>> {
        let found = Record::read(&plan.dir, experiment.id());
        let wanted = plan.parameters_of(experiment);
        let Some(record) = found.filter(|r| !plan.force && r.parameters == wanted) else {
            return Ok(None);
        };
        if !record.is_complete(&plan.dir) {
            record.write_drawings(&plan.dir)?;
        }
        Ok(Some(record))
    };
    let ended = match kept() {
        Ok(Some(record)) => return Status::Kept(record),
        Ok(None) => fresh(plan, experiment, bars),
        Err(error) => Err(error),
    };
    match ended {
        Ok(record) => Status::Ran(record),
        // One line, whatever the causes say.
        Err(error) => {
            Status::Failed(format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" "))
        }
    }
}

fn fresh(plan: &Plan<'_>, experiment: &dyn Experiment, bars: &MultiProgress) -> Result<Record> {
    let bar = stderr().is_terminal().then(|| bars.add(progress_bar(experiment.id())));
    let progress = |done: u64, total: u64| {
        if let Some(bar) = &bar {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let Parameters { quick, seed, repetitions, .. } = plan.parameters;
    let parts = PartFiles {
        dir: plan.dir.join("parts"),
        version: plan.parameters.version.clone(),
        afresh: plan.force,
    };
    let settings = Settings {
        quick,
        seed,
        repetitions: repetitions.unwrap_or(1),
        price: &plan.price,
        parts: &parts,
        dir: &plan.dir,
        progress: &progress,
    };
    let started = Instant::now();
    // Nothing of ours is changed by an experiment, so a panic leaves nothing half done.
    let ended = catch_unwind(AssertUnwindSafe(|| experiment.run(&settings)));
    let seconds = started.elapsed().as_secs_f64();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let outcome = ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(anyhow!("an internal error: {}", text.unwrap_or("unknown")))
    })?;
    let mut outcome = presentable(finish(outcome, quick), &plan.dir);
    for panel in outcome.panels.iter_mut().filter(|panel| panel.caption.is_empty()) {
        panel.caption = (plan.library.caption)(experiment.id(), &panel.id).unwrap_or_default();
    }
    let paper = plan.library.of(experiment.id()).map_or("", |p| p.name);
    let parameters = plan.parameters_of(experiment);
    let record = Record::new(experiment, paper, parameters, plan.origin.clone(), seconds, outcome);
    record.write(&plan.dir)?;
    Ok(record)
}

/// What was found, without the machine's paths, since results are published, and without the
/// signs of numbers that are none.
fn presentable(mut outcome: Outcome, dir: &Path) -> Outcome {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let clean = |text: &mut String| *text = valued(&redact::paths(text, &dir));
    for claim in &mut outcome.claims {
        clean(&mut claim.ours);
        clean(&mut claim.explanation);
    }
    outcome.notes.iter_mut().for_each(clean);
    outcome.tables.iter_mut().flat_map(|t| t.rows.iter_mut().flatten()).for_each(clean);
    outcome
}

/// `text` with [`NO_VALUE`] for each number that is infinite or none.
fn valued(text: &str) -> String {
    let word = |word: &str| {
        let plain = word.trim_matches(|c: char| !c.is_ascii_alphabetic());
        match plain {
            "inf" | "NaN" => word.trim_start_matches(['-', '+']).replace(plain, NO_VALUE),
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn progress_bar(id: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg:20} {bar:30} {percent:>3} %, {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(id.to_string());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

#[cfg(test)]
mod tests {
    use super::valued;

    #[test]
    fn numbers_that_are_none_are_not_shown_as_such() {
        assert_eq!(valued("inf"), "no value");
        assert_eq!(
            valued("A -inf, B (NaN)  %; information"),
            "A no value, B (no value)  %; information"
        );
    }
}
