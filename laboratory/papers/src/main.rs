//! `holdall-lab`: runs the experiments and writes the report.

use std::io::{stderr, stdout};
use std::process::ExitCode;

use holdall_instrument::cli;

fn main() -> ExitCode {
    // A panic of an experiment is caught and reported as its failure; where it came from is
    // said in one line here.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|l| format!("{}:{}", l.file(), l.line()));
        eprintln!("holdall-lab: internal error at {}", place.unwrap_or_default());
    }));
    let library = &holdall_lab::papers::LIBRARY;
    let args = std::env::args_os().collect();
    let code = cli::run(args, library, &library.experiments(), &mut stdout(), &mut stderr());
    ExitCode::from(code)
}
