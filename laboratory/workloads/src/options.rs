//! Options that commands share. Owns nothing.

use crate::product;
use anyhow::{Context as _, Result};
use clap::Args;
use std::ffi::OsString;
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
    /// Rounds of each comparison [default: 3, with --quick 1; s3-kill: 50, with --quick 5]
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

/// Programs that take part in comparisons of servers and of Python packages.
#[derive(Debug, Clone, Default, Args)]
pub struct Programs {
    /// The program `holdall` [default: the one that Cargo builds of this checkout]
    #[arg(long, value_name = "PATH")]
    pub(crate) server: Option<PathBuf>,
    /// The program `minio`
    #[arg(long, value_name = "PATH")]
    pub(crate) minio: Option<PathBuf>,
    /// The program `versitygw`, run with its POSIX backend
    #[arg(long, value_name = "PATH")]
    pub(crate) versitygw: Option<PathBuf>,
    /// The program `s3fs`
    #[arg(long, value_name = "PATH")]
    pub(crate) s3fs: Option<PathBuf>,
    /// The program `rclone`
    #[arg(long, value_name = "PATH")]
    pub(crate) rclone: Option<PathBuf>,
    /// The program `juicefs`
    #[arg(long, value_name = "PATH")]
    pub(crate) juicefs: Option<PathBuf>,
    /// The interpreter that has the packages to compare
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,
}

impl Programs {
    /// The same with absolute paths; `holdall` is built if none is named.
    ///
    /// # Errors
    /// A path that is not there; a build that fails.
    pub(crate) fn found(&self) -> Result<Self> {
        let whole = |path: &PathBuf| {
            path.canonicalize().with_context(|| format!("looking for {}", path.display()))
        };
        let server = match &self.server {
            Some(path) => whole(path)?,
            None => product::command(true)?,
        };
        Ok(Self {
            server: Some(server),
            minio: self.minio.as_ref().map(whole).transpose()?,
            versitygw: self.versitygw.as_ref().map(whole).transpose()?,
            s3fs: self.s3fs.as_ref().map(whole).transpose()?,
            rclone: self.rclone.as_ref().map(whole).transpose()?,
            juicefs: self.juicefs.as_ref().map(whole).transpose()?,
            python: self.python.clone(),
        })
    }

    /// As the command line says them again to the process of a part.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let named = [
            ("--server", self.server.as_ref()),
            ("--minio", self.minio.as_ref()),
            ("--versitygw", self.versitygw.as_ref()),
            ("--s3fs", self.s3fs.as_ref()),
            ("--rclone", self.rclone.as_ref()),
            ("--juicefs", self.juicefs.as_ref()),
            ("--python", Some(&self.python)),
        ];
        let said = named.into_iter().filter_map(|(name, path)| Some((name, path?)));
        said.flat_map(|(name, path)| [name.into(), path.into()]).collect()
    }
}
