//! stub
use anyhow::Result;
use clap::Args;
use holdall_bench::cli;
use std::process::ExitCode;
/// x
#[derive(Debug, Clone, Args)]
pub struct HttpKill {}
/// x
pub fn run(_: &cli::Common, _: &HttpKill) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
