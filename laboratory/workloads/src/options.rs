//! Options that commands share. Owns nothing.

use clap::Args;
use std::path::PathBuf;

/// Options of all commands.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Where files are made and removed; on the disk to be measured
    #[arg(long, global = true, default_value = ".")]
    pub dir: PathBuf,
    /// Smaller and shorter; the figures are rougher
    #[arg(long, global = true)]
    pub quick: bool,
    /// Rounds of each comparison [default: 3, with --quick 1; http-kill: 50, with --quick 5]
    #[arg(long, global = true)]
    pub rounds: Option<usize>,
    /// Print JSON instead of Markdown
    #[arg(long, global = true)]
    pub json: bool,
}

/// Options of comparisons.
#[derive(Debug, Clone, Args)]
pub struct Select {
    /// Only stores whose names contain one of these, in any case; the bare machine always is
    #[arg(long, value_delimiter = ',', value_name = "PEER")]
    pub(crate) only: Vec<String>,
    /// All data and choices come from it
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Publish tables, drawings and all figures in a folder of this directory, called by day and
    /// commit; the same command started again goes on where it stopped
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plots", "keep"])]
    pub(crate) into: Option<PathBuf>,
    /// Draw into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Keep each store's results here as they come; what is here is not run again
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Do not check before and after each round whether the machine is quiet; nor does --quick
    #[arg(long)]
    pub(crate) no_probe: bool,
}
