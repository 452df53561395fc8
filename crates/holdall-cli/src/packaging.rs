//! `holdall completions` and `holdall man`: what packagers and shells want of the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::Cli;
use crate::failure::{self, Failure, Outcome};
use crate::name::escape;
use crate::output::Out;

/// Print the script that completes commands and options in a shell
#[derive(clap::Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Print a manual page
#[derive(clap::Args)]
pub struct Man {
    /// The page of this command, as `put` or `inspect page`; without it the page of `holdall`
    command: Vec<String>,
}

/// Prints the script.
pub fn completions(args: &Completions) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holdall", &mut script);
    print(&script)
}

/// Prints the page.
pub fn man(args: &Man) -> Outcome {
    let mut page = Cli::command();
    page.build();
    for name in &args.command {
        let found = page.find_subcommand(name).cloned();
        page = found.ok_or_else(|| unknown(name))?;
    }
    let mut text = Vec::new();
    let version = concat!("holdall ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(page)
        .source(version)
        .render(&mut text)
        .map_err(|e| Failure::stdout(&e))?;
    print(&text)
}

fn unknown(name: &str) -> Failure {
    let what = format!("there is no command {}", escape(name.as_bytes()));
    Failure::Told(what, "see `holdall --help`".into(), failure::USAGE)
}

fn print(bytes: &[u8]) -> Outcome {
    let mut out = Out::new();
    out.bytes(bytes)?;
    out.finish()
}
