//! The command line: arguments, messages, exit codes.
//!
//! Exit codes: 0 all done, 1 something failed, 2 wrong usage. Results go to standard output,
//! each failure as one line to standard error. A claim that fails is a result, not a failure.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind};
use serde_json::json;

use crate::experiment::Experiment;
use crate::paper::Library;
use crate::perform::{FAILED, Wish, all, complain, perform};
use crate::price::Price;
use crate::report::Parameters;
use crate::version;

const USAGE: u8 = 2;

/// Repeats the experiments of the papers Holdall stands on and writes a report.
#[derive(Parser)]
#[command(name = "holdall-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the figures.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Runs the figures named.
    Figure {
        /// As `list` names them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        options: Options,
    },
    /// Runs every figure of a paper.
    Paper {
        /// Which one, by its first author.
        paper: String,
        #[command(flatten)]
        options: Options,
    },
    /// Runs every figure.
    All {
        #[command(flatten)]
        options: Options,
        /// Keep the claims in DIR/<date>-<commit>-lab/claims.json once every figure is there.
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}

#[derive(Args)]
struct Options {
    /// Smaller and rougher: for a first look, and for CI.
    #[arg(long)]
    quick: bool,
    /// Of every random draw; equal seeds give equal figures.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Where figures and report are written.
    #[arg(long, default_value = "target/lab", value_name = "DIR")]
    out: PathBuf,
    /// The disk of today: microseconds of an access and MB/s, instead of measuring them in DIR;
    /// quick runs take 52,1200.
    #[arg(long, value_name = "SEEK_US,MB_PER_S")]
    disk: Option<Price>,
    /// Print results as JSON.
    #[arg(long)]
    json: bool,
    /// Run again what is already there.
    #[arg(long)]
    force: bool,
    /// How often what is timed is repeated; 3 by default, 1 in a quick run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: Option<u32>,
    /// Experiments at once; what is timed has the machine for itself even so.
    #[arg(long, default_value_t = 1, value_name = "N",
          value_parser = clap::value_parser!(u8).range(1..=2))]
    jobs: u8,
}

impl Options {
    fn wish(self) -> Wish {
        let repetitions = self.repeat.or(Some(if self.quick { 1 } else { 3 }));
        Wish {
            parameters: Parameters {
                quick: self.quick,
                seed: self.seed,
                version: version::of_program(),
                repetitions,
                disk: self.disk.or(self.quick.then_some(Price::QUICK)),
            },
            dir: self.out,
            json: self.json,
            force: self.force,
            jobs: usize::from(self.jobs),
            into: None,
        }
    }
}

/// The arguments; a paper must be one of the library's.
fn parse(library: &Library, args: Vec<OsString>) -> Result<Cli, clap::Error> {
    let names = PossibleValuesParser::new(library.papers.iter().map(|p| p.name));
    let command = Cli::command()
        .mut_subcommand("paper", |paper| paper.mut_arg("paper", |arg| arg.value_parser(names)));
    Cli::from_arg_matches(&command.try_get_matches_from(args)?)
}

/// Does what `args` (the program's name first) ask for with `experiments` of `library`; gives
/// the exit code.
pub fn run(
    args: Vec<OsString>,
    library: &Library,
    experiments: &[Box<dyn Experiment>],
    out: &mut (dyn Write + Send),
    err: &mut (dyn Write + Send),
) -> u8 {
    let command = match parse(library, args) {
        Ok(cli) => cli.command,
        Err(error) => return usage(&error, out, err),
    };
    let ended = match command {
        Command::List { json } => list(library, experiments, json, out),
        Command::Figure { ids, options } => match named(experiments, &ids) {
            Ok(chosen) => perform(library, experiments, chosen, options.wish(), out, err),
            Err(message) => {
                complain(err, &message);
                return USAGE;
            }
        },
        Command::Paper { paper, options } => {
            let own = |id| library.of(id).is_some_and(|p| p.name == paper);
            let chosen = all(experiments).filter(|e| own(e.id())).collect();
            perform(library, experiments, chosen, options.wish(), out, err)
        }
        Command::All { options, into } => {
            let wish = Wish { into, ..options.wish() };
            perform(library, experiments, all(experiments).collect(), wish, out, err)
        }
    };
    match ended {
        Ok(code) => code,
        // The reader of the output has seen enough and has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => FAILED,
        Err(error) => {
            complain(err, &format!("cannot write the results: {error}"));
            FAILED
        }
    }
}

/// Help as it is; an error as one line.
fn usage(error: &clap::Error, out: &mut (dyn Write + Send), err: &mut (dyn Write + Send)) -> u8 {
    let text = error.render().to_string();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = out.write_all(text.as_bytes());
            return 0;
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = err.write_all(text.as_bytes());
            return USAGE;
        }
        _ => {}
    }
    let lines = text.lines().map(str::trim).take_while(|l| !l.starts_with("Usage:"));
    let kept = lines.filter(|l| !l.is_empty() && !l.starts_with("For more information"));
    let message = kept.collect::<Vec<_>>().join(" ");
    complain(err, &format!("{} (--help says more)", message.trim_start_matches("error: ")));
    USAGE
}

fn list(
    library: &Library,
    experiments: &[Box<dyn Experiment>],
    json: bool,
    out: &mut (dyn Write + Send),
) -> io::Result<u8> {
    if json {
        let citation = |id| library.of(id).map(|p| p.citation);
        let row = |e: &dyn Experiment| json!({"id": e.id(), "paper": citation(e.id()), "title": e.title()});
        let rows: Vec<_> = all(experiments).map(row).collect();
        writeln!(out, "{:#}", json!(rows))?;
        return Ok(0);
    }
    let width = all(experiments).map(|e| e.id().len()).max().unwrap_or(0);
    for experiment in all(experiments) {
        writeln!(out, "{:width$}  {}", experiment.id(), experiment.title())?;
    }
    Ok(0)
}

/// The experiments called `ids`, each once; else what to say.
fn named<'e>(
    experiments: &'e [Box<dyn Experiment>],
    ids: &[String],
) -> Result<Vec<&'e dyn Experiment>, String> {
    let mut seen = HashSet::new();
    let mut chosen = Vec::new();
    for id in ids.iter().filter(|id| seen.insert(id.as_str())) {
        match all(experiments).find(|e| e.id() == id) {
            Some(experiment) => chosen.push(experiment),
            None => {
                let near = nearest(id, all(experiments).map(|e| e.id()));
                let near = match near.is_empty() {
                    true => String::new(),
                    false => format!("nearest: {}; ", near.join(", ")),
                };
                let id = id.escape_debug();
                return Err(format!("unknown figure '{id}' ({near}`list` shows all)"));
            }
        }
    }
    Ok(chosen)
}

/// The three names that take the fewest changes of a letter to become `id`.
fn nearest<'n>(id: &str, names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut ranked: Vec<(usize, &str)> = names.map(|name| (distance(id, name), name)).collect();
    ranked.sort_unstable();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Insertions, deletions and replacements between two words (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(nearest("bilris-5", ["mcauliffe-14", "biliris-5"].into_iter())[0], "biliris-5");
    }
}
