//! The command `holdall`: reads the command line, runs one subcommand, turns its outcome
//! into an exit code.
//!
//! Owns: the list of subcommands. Each lives in its own file with its arguments and its
//! `run`. Exit codes are in `failure.rs`; `docs/cli.md` is the reference for users.

mod at;
mod backup;
mod backup_bucket;
mod backups;
mod below;
mod bucket;
mod bucket_admin;
mod bucket_changes;
mod checkpoint;
mod copy;
mod cp;
mod create;
mod defrag;
mod dirs;
mod done;
mod edit;
mod export;
mod failure;
mod files;
mod frag;
mod get;
mod import;
mod input;
mod inspect;
mod leftovers;
mod ls;
mod mv;
mod name;
#[cfg(feature = "serve")]
mod notify;
mod open;
mod outlet;
mod output;
mod own;
mod packaging;
mod place;
mod progress;
mod put;
mod replacement;
mod rm;
mod salvage;
#[cfg(feature = "serve")]
mod serve;
mod signals;
mod size;
mod sparse;
mod stat;
mod stop;
mod streams;
mod time;
mod verify;
mod wait;
mod watch;
mod writer;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Outcome;

/// Keep objects of every size in one file, with transactions.
#[derive(Parser)]
#[command(name = "holdall", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Create(create::Args),
    Put(put::Args),
    Get(get::Args),
    Rm(rm::Args),
    Mv(mv::Args),
    Cp(cp::Args),
    Copy(copy::Args),
    Insert(edit::Insert),
    DeleteRange(edit::DeleteRange),
    Replace(edit::Replace),
    Append(edit::Append),
    Truncate(edit::Truncate),
    Ls(ls::Args),
    Stat(stat::Args),
    Frag(frag::Args),
    Import(import::Args),
    Export(export::Args),
    Verify(verify::Args),
    Defrag(defrag::Defrag),
    Compact(defrag::Compact),
    Checkpoint(checkpoint::Args),
    Backup(backup::Args),
    Backups(backups::Args),
    Bucket(bucket_admin::Args),
    Restore(backup::RestoreArgs),
    Salvage(salvage::Args),
    Inspect(inspect::Args),
    #[cfg(feature = "serve")]
    Serve(serve::Args),
    Completions(packaging::Completions),
    Man(packaging::Man),
}

impl Command {
    /// Whether the command says on standard output what came of it. What the server says there is
    /// for convenience.
    fn prints(&self) -> bool {
        match self {
            Self::Create(_) | Self::Mv(_) | Self::Checkpoint(_) => false,
            #[cfg(feature = "serve")]
            Self::Serve(_) => false,
            Self::Get(args) => args.prints(),
            Self::Rm(args) => args.prints(),
            _ => true,
        }
    }
}

fn main() -> ExitCode {
    // No thread is there yet.
    replacement::masked(0);
    signals::survive_limits();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                // It repeats what was given.
                failure::say_usage(&error.render().to_string());
                return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::USAGE));
            }
            // What was asked for: help or the version.
            let printed = || error.print().and_then(|()| io::stdout().flush());
            let printed = || printed().map_err(|e| failure::Failure::stdout(&e));
            return ended(streams::need_output().and_then(|()| printed()));
        }
    };
    let checked = if cli.command.prints() { streams::need_output() } else { Ok(()) };
    ended(checked.and_then(|()| run(&cli.command)))
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::Create(args) => create::run(args),
        Command::Put(args) => put::run(args),
        Command::Get(args) => get::run(args),
        Command::Rm(args) => rm::run(args),
        Command::Mv(args) => mv::run(args),
        Command::Cp(args) => cp::run(args),
        Command::Copy(args) => copy::run(args),
        Command::Insert(args) => edit::insert(args),
        Command::DeleteRange(args) => edit::delete_range(args),
        Command::Replace(args) => edit::replace(args),
        Command::Append(args) => edit::append(args),
        Command::Truncate(args) => edit::truncate(args),
        Command::Ls(args) => ls::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Frag(args) => frag::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Defrag(args) => defrag::defrag(args),
        Command::Compact(args) => defrag::compact(args),
        Command::Checkpoint(args) => checkpoint::run(args),
        Command::Backup(args) => backup::run(args),
        Command::Backups(args) => backups::run(args),
        Command::Bucket(args) => bucket_admin::run(args),
        Command::Restore(args) => backup::restore(args),
        Command::Salvage(args) => salvage::run(args),
        Command::Inspect(args) => inspect::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args),
        Command::Completions(args) => packaging::completions(args),
        Command::Man(args) => packaging::man(args),
    }
}

fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.code())
        }
    }
}
