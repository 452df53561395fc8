//! A `PostgreSQL` server of an experiment's own, from the distribution's package.
//!
//! Owns: its process, which ends when a [`Server`] is dropped and also when this process is
//! killed. It listens on a Unix socket in its directory and nowhere else. Run by root it is
//! started as the user `postgres`, because it refuses root. Threads: none.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};

/// How long it may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the system allows for the path of a socket, less its name.
const SOCKET_PATH: usize = 85;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    dir: PathBuf,
    /// User and group that it runs as, if it is not ours.
    user: Option<(u32, u32)>,
}

/// Where the distribution puts the newest version's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let found = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        bin.join("initdb").exists().then_some((version, bin))
    });
    found.max().map(|(_, bin)| bin)
}

/// The user `postgres` and its group, needed only by root.
fn user() -> Result<Option<(u32, u32)>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut ids = line.context("there is no user postgres")?.split(':').skip(2);
    let mut id = || -> Option<u32> { ids.next()?.parse().ok() };
    Ok(id().zip(id()))
}

impl Server {
    /// Makes a cluster in `scratch` and starts its server with `settings`, each `NAME=VALUE`.
    ///
    /// # Errors
    /// It is not installed, or does not start.
    pub fn start(scratch: &Path, settings: &[&str]) -> Result<Self> {
        let bin =
            programs().context("PostgreSQL is not installed (/usr/lib/postgresql is empty)")?;
        let user = user()?;
        // The other user must be able to walk to its directory.
        fs::set_permissions(scratch, fs::Permissions::from_mode(0o711))?;
        let dir = scratch.join("pg");
        give(&dir, user)?;
        ensure!(dir.as_os_str().len() <= SOCKET_PATH, "the path {} is too long", dir.display());
        let command = |name: &str| {
            let mut command = Command::new("setpriv");
            if let Some((uid, gid)) = user {
                command.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
                command.arg("--clear-groups");
            }
            command.current_dir(&dir).arg("--pdeathsig=TERM").arg(bin.join(name));
            command.arg("-D").arg(dir.join("data"));
            command
        };
        let mut init = command("initdb");
        init.args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]);
        let out = init.output().context("cannot run setpriv")?;
        ensure!(out.status.success(), "initdb: {}", String::from_utf8_lossy(&out.stderr).trim());
        let log = fs::File::create(dir.join("server.log"))?;
        let mut server = command("postgres");
        server.arg("-k").arg(&dir).args(["-c", "listen_addresses="]);
        for setting in settings {
            server.args(["-c", setting]);
        }
        let child = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        let server = Self { child, dir, user };
        let started = Instant::now();
        while let Err(error) = server.connect("postgres") {
            if started.elapsed() > PATIENCE {
                let log = fs::read_to_string(server.dir.join("server.log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default().to_owned();
                return Err(error.context(format!("PostgreSQL does not start: {last}")));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Connects to a database; `postgres` is always there.
    ///
    /// # Errors
    /// The server does not answer, or has no such database.
    pub fn connect(&self, database: &str) -> Result<Client> {
        let mut config = Config::new();
        config.host_path(&self.dir).user("postgres").dbname(database);
        Ok(config.connect(NoTls)?)
    }

    /// Makes `dir` a directory of the server's user.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn give(&self, dir: &Path) -> Result<()> {
        give(dir, self.user)
    }
}

/// Makes `dir`, owned by `user`.
fn give(dir: &Path, user: Option<(u32, u32)>) -> Result<()> {
    fs::create_dir_all(dir)?;
    if let Some((uid, gid)) = user {
        chown(dir, Some(uid), Some(gid))?;
    }
    Ok(fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its fast shutdown; connections that are open are cut.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::INT));
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
