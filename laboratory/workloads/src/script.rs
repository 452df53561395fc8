//! Comparisons whose contestants a Python script drives: WebDAV servers, Python packages.
//!
//! Owns: [`Script`]. The script does one contestant's part of one round, `SCRIPT DIR --contestant
//! NAME [--quick]`, and prints each row's figure as a line of JSON as it is done. Turns, medians
//! and ratios are the instrument's.

use crate::options::Programs;
use anyhow::{Context as _, Result, ensure};
use holdall_instrument::contest::{Contest, Ctx, Figure, Goal};
use holdall_instrument::system;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// One comparison by a script.
pub struct What {
    id: &'static str,
    title: &'static str,
    remark: &'static str,
    contestants: &'static [&'static str],
    /// Below this crate.
    script: &'static str,
}

/// WebDAV servers.
pub const WEBDAV: What = What {
    id: "webdav",
    title: "WebDAV servers",
    remark: "Each server alone on the same disk; `wrk` makes the load of many clients. Only \
             Holdall's puts are durable when they are answered: the others do not sync.",
    contestants: &["Holdall", "Apache mod_dav", "rclone"],
    script: "scripts/webdav.py",
};

/// Python packages.
pub const PYTHON: What = What {
    id: "python",
    title: "Python packages",
    remark: "Each package is used as its documentation advises; what is written is on the disk \
             when the clock stops.",
    contestants: &[
        "Holdall",
        "py-lmdb",
        "sqlite3",
        "files",
        "h5py",
        "zip",
        "tar in order",
        "LocalStore",
        "ZipStore",
        "Rust",
    ],
    script: "scripts/python",
};

/// Such a comparison with the programs that take part.
pub struct Script {
    /// Which.
    pub what: &'static What,
    /// The interpreter, and the program `holdall`.
    pub programs: Programs,
}

impl Contest for Script {
    fn id(&self) -> &'static str {
        self.what.id
    }

    fn title(&self, _ctx: &Ctx) -> String {
        self.what.title.into()
    }

    fn remark(&self) -> &'static str {
        self.what.remark
    }

    fn contestants(&self) -> Vec<&'static str> {
        self.what.contestants.to_vec()
    }

    fn arguments(&self) -> Vec<OsString> {
        self.programs.arguments()
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let mut command = Command::new(&self.programs.python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(self.what.script));
        command.arg(&ctx.dir).args(["--contestant", contestant]);
        if let Some(holdall) = &self.programs.server {
            command.arg("--holdall").arg(holdall);
        }
        if ctx.quick {
            command.arg("--quick");
        }
        // What the one before left to be written is not this one's.
        system::sync_all(&ctx.dir)?;
        rows(&mut command, out)
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        Vec::new()
    }
}

/// The figures that the script prints, also those before it fails.
fn rows(command: &mut Command, out: &mut Vec<Figure>) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|e| anyhow::anyhow!("starting {command:?}: {e}"))?;
    let (printed, mut said) = (child.stdout.take(), child.stderr.take());
    let complaint = std::thread::spawn(move || {
        let mut text = String::new();
        said.as_mut().map(|said| said.read_to_string(&mut text)).transpose().map(|_| text)
    });
    let read = || -> Result<()> {
        for line in BufReader::new(printed.context("the script has no output")?).lines() {
            let line = line?;
            out.push(serde_json::from_str(&line).with_context(|| format!("no figure: {line}"))?);
        }
        Ok(())
    };
    if let Err(error) = read() {
        // Else it goes on beside the next contestant.
        child.kill()?;
        child.wait()?;
        return Err(error);
    }
    let status = child.wait()?;
    let complaint = complaint.join().ok().and_then(Result::ok).unwrap_or_default();
    let last = complaint.lines().last().unwrap_or_default();
    ensure!(status.success(), "the script ended with {status}: {last}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> (Vec<Figure>, Option<String>) {
        let mut out = Vec::new();
        let result = rows(Command::new("sh").args(["-c", text]), &mut out);
        (out, result.err().map(|e| e.to_string()))
    }

    #[test]
    fn rows_before_a_failure_are_kept() {
        let row = r#"echo '{"row":"get","unit":"PerSecond","value":2.5}'"#;
        let (rows, error) = shell(row);
        assert_eq!((rows.len(), error), (1, None));
        assert_eq!((rows[0].row.as_str(), rows[0].value), ("get", 2.5));
        let (rows, error) = shell(&format!("{row}; echo reason >&2; exit 3"));
        assert_eq!(rows.len(), 1);
        assert!(error.is_some_and(|e| e.ends_with("3: reason")));
        assert!(shell("echo nonsense").1.is_some_and(|e| e.contains("no figure: nonsense")));
    }
}
