//! Runs contests as the command line says, and reports and publishes what came of them.

use crate::options::{Common, Select};
use crate::stores;
use anyhow::{Result, bail, ensure};
use holdall_instrument::contest::{self, BARE, Contest, Keep, Outcome, Plan, is_named, is_ours};
use holdall_instrument::folder::{Folder, PLOTS, RESULTS, TABLES};
use holdall_instrument::{ratios, system, version};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Workloads in which the picture shows what space the speed costs.
pub(crate) const WITH_SPACE: [&str; 3] = ["w4", "w6", "w10"];

/// What a run says of itself before its tables.
struct Head {
    machine: String,
    cold: &'static str,
}

/// Runs the contests, prints them, and publishes them if a folder is asked for.
pub(crate) fn contests(
    common: &Common,
    select: &Select,
    contests: &[Box<dyn Contest + '_>],
) -> Result<ExitCode> {
    let rounds = common.rounds.unwrap_or(if common.quick { 1 } else { 3 });
    ensure!(rounds > 0, "at least one round is needed");
    check_names(&select.only, contests)?;
    let folder = folder(common, contests, select, rounds)?;
    let here = system::machine(&common.dir);
    let keep = |dir: &Path| Keep::new(dir, &here, select.seed, common.quick);
    let kept = folder.as_ref().map(Folder::state).or(select.keep.as_deref());
    let work = folder.as_ref().map(Folder::work);
    let plan = Plan {
        dir: work.as_deref().unwrap_or(&common.dir),
        quick: common.quick,
        rounds,
        only: &select.only,
        seed: select.seed,
        keep: kept.map(keep).transpose()?,
        probe: !(common.quick || select.no_probe),
    };
    let mut machine = system::describe(&common.dir);
    if cfg!(debug_assertions) {
        machine.push_str("; a debug build, whose figures mean nothing");
    }
    let head = Head { machine, cold: system::drop_caches(&common.dir, &[])? };
    let plots = folder.as_ref().map(|f| f.path().join(PLOTS)).or_else(|| select.plots.clone());
    let mut run = Run {
        plan,
        contests,
        head,
        folder,
        json: common.json,
        all: Vec::new(),
        text: String::new(),
    };
    run.begin()?;
    let (mut failed, mut whole) = (false, true);
    for contest in contests {
        let outcome = run.plan.run(&**contest)?;
        failed |= failed_here(&outcome);
        whole &= outcome.whole;
        if let Some(dir) = &plots {
            for file in contest::draw(&outcome, dir)? {
                eprintln!("  drew {}", file.display());
            }
        }
        run.tell(&outcome)?;
    }
    run.end(whole)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether Holdall, plain files or the bare machine failed: then something is wrong with this
/// program, not with a peer's limits.
fn failed_here(outcome: &Outcome) -> bool {
    let own = stores::own();
    let ours = |name: &str| name == BARE || is_ours(name) || own.iter().any(|m| m.name() == name);
    outcome.errors().iter().any(|(store, _)| ours(store))
}

/// # Errors
/// A word that is in the name of no contestant.
fn check_names(only: &[String], contests: &[Box<dyn Contest + '_>]) -> Result<()> {
    let mut names: Vec<_> = contests.iter().flat_map(|c| c.contestants()).collect();
    names.sort_unstable();
    names.dedup();
    for word in only {
        if !names.iter().any(|name| is_named(name, word)) {
            bail!("no store {word:?}; there are {}", names.join(", "));
        }
    }
    Ok(())
}

/// The folder, if one is asked for: the same program with the same options goes on in it.
fn folder(
    common: &Common,
    contests: &[Box<dyn Contest + '_>],
    select: &Select,
    rounds: usize,
) -> Result<Option<Folder>> {
    let Some(into) = &select.into else { return Ok(None) };
    let ids: Vec<_> = contests.iter().map(|c| (c.id(), c.arguments())).collect();
    let program = version::of_program();
    let (only, seed, probe) = (&select.only, select.seed, !select.no_probe);
    let options = format!("{program} {ids:?} {only:?} {seed} {rounds} {} {probe}", common.quick);
    Folder::begin(into, &common.dir, &options).map(Some)
}

/// A run as the arguments describe it.
struct Run<'a> {
    plan: Plan<'a>,
    contests: &'a [Box<dyn Contest + 'a>],
    head: Head,
    folder: Option<Folder>,
    json: bool,
    /// Workloads as JSON.
    all: Vec<Value>,
    /// All of the tables.
    text: String,
}

impl Run<'_> {
    fn begin(&mut self) -> Result<()> {
        let text = self.head();
        self.print(&format!("{text}\n\n"))
    }

    /// Prints as figures come: a full run takes hours.
    fn tell(&mut self, outcome: &Outcome) -> Result<()> {
        self.all.push(contest::json(outcome));
        self.print(&format!("{}\n", contest::tables(outcome)))?;
        self.publish(false)
    }

    fn end(&mut self, whole: bool) -> Result<()> {
        let settings = self.settings();
        self.print(&settings)?;
        if self.json {
            writeln!(std::io::stdout(), "{:#}", self.report(true))?;
        }
        self.publish(true)?;
        let Some(folder) = &self.folder else { return Ok(()) };
        ratios::draw(&[folder.path()], folder.path(), &WITH_SPACE)?;
        if whole {
            folder.complete()?;
        } else {
            eprintln!("A store's process died; the same command runs its part again.");
        }
        eprintln!("Results are in {}", folder.path().display());
        Ok(())
    }

    fn print(&mut self, text: &str) -> Result<()> {
        self.text.push_str(text);
        if self.json {
            return Ok(());
        }
        Ok(write!(std::io::stdout(), "{text}")?)
    }

    fn publish(&self, complete: bool) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let name = &folder.begun().name;
        folder.write(TABLES, &format!("# Results of {name}\n\n{}", self.text))?;
        folder.write(RESULTS, &format!("{}\n", self.report(complete)))
    }

    fn report(&self, complete: bool) -> Value {
        let begun = self.folder.as_ref().map(Folder::begun);
        let plan = &self.plan;
        json!({
            "date": begun.map(|b| &b.date),
            "begun": begun.map_or(0, |b| b.seconds),
            "commit": begun.map(|b| &b.commit),
            "complete": complete,
            "machine": self.head.machine,
            "cold": self.head.cold,
            "quick": plan.quick,
            "rounds": plan.rounds,
            "seed": plan.seed,
            "probed": plan.probe,
            "settings": self.settings(),
            "workloads": self.all,
        })
    }

    /// Versions and settings of those who take part, each once.
    fn settings(&self) -> String {
        let mut lines = Vec::new();
        for contest in self.contests {
            let takes_part = self.plan.contestants(&**contest);
            let of = contest.settings().into_iter().filter(|(name, _)| takes_part.contains(name));
            for line in of.map(|(name, text)| format!("- **{name}**: {text}\n")) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        if lines.is_empty() { String::new() } else { format!("## Settings\n\n{}", lines.concat()) }
    }

    fn head(&self) -> String {
        let Head { machine, cold } = &self.head;
        let plan = &self.plan;
        let size = if plan.quick { "small sizes (--quick); " } else { "" };
        let probed = if plan.probe { "" } else { " The machine was not probed for other work." };
        format!(
            "{machine}; {size}rounds: {}, seed {}; cold: {cold}. Median (least–most) of the \
             rounds; ratios are taken within each round.{probed}",
            plan.rounds, plan.seed
        )
    }
}
