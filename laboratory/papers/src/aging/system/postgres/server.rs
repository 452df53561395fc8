//! A `PostgreSQL` server of the experiment's own, from the distribution's package.
//!
//! Owns: its process, which ends when a [`Server`] is dropped and also when this process is
//! killed. It listens on a Unix socket in its directory and nowhere else. Run by root it is
//! started as the user `postgres`, because it refuses root.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::{Client, Config, NoTls};
use rustix::process::{Pid, Signal, kill_process};

use super::super::super::volume::{output, program};

/// The name of the tablespace, and of large objects' database.
pub(super) const NAME: &str = "aging";
/// How long it may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the system allows for the path of a socket, less its name.
const SOCKET_PATH: usize = 85;

/// A running server.
pub struct Server {
    child: Child,
    dir: PathBuf,
    /// User and group that it runs as, if it is not ours.
    user: Option<(u32, u32)>,
}

/// Where the distribution puts the newest version's programs.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    found.sort();
    found.pop().map(|(_, bin)| bin)
}

/// The user `postgres`, needed only by root.
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
    /// Makes a cluster in `scratch` and starts its server.
    pub fn start(scratch: &Path) -> Result<Self> {
        let bin =
            programs().context("PostgreSQL is not installed (/usr/lib/postgresql is empty)")?;
        let user = user()?;
        // The other user must be able to walk to its directory.
        fs::set_permissions(scratch, fs::Permissions::from_mode(0o711))?;
        let dir = scratch.join("pg");
        give(&dir, user)?;
        ensure!(dir.as_os_str().len() <= SOCKET_PATH, "the path {} is too long", dir.display());
        let data = dir.join("data");
        let as_user = |command: &mut Command| {
            if let Some((uid, gid)) = user {
                command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
                command.arg("--clear-groups");
            }
            command.current_dir(&dir);
        };
        let mut command = program("setpriv");
        as_user(&mut command);
        command.arg(bin.join("initdb")).arg("-D").arg(&data);
        command.args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]);
        output(&mut command, "initdb")?;
        let mut command = program("setpriv");
        as_user(&mut command);
        command.arg("--pdeathsig=TERM").arg(bin.join("postgres")).arg("-D").arg(&data);
        command.arg("-k").arg(&dir);
        // The cache is as small as the others'; VACUUM runs when the adapter says.
        for setting in ["listen_addresses=", "shared_buffers=16MB", "autovacuum=off"] {
            command.args(["-c", setting]);
        }
        let log = fs::File::create(dir.join("server.log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = Self { child: command.spawn().context("cannot run setpriv")?, dir, user };
        let started = Instant::now();
        while let Err(error) = server.connect("postgres") {
            if started.elapsed() > PATIENCE {
                let log = fs::read_to_string(server.dir.join("server.log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or_default().to_owned();
                return Err(error.context(format!("PostgreSQL does not start: {last}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Connects to a database.
    pub(super) fn connect(&self, database: &str) -> Result<Client> {
        let mut config = Config::new();
        config.host_path(&self.dir).user("postgres").dbname(database);
        Ok(config.connect(NoTls)?)
    }

    /// Makes `dir` a directory of the server's user.
    pub(super) fn give(&self, dir: &Path) -> Result<()> {
        give(dir, self.user)
    }

    /// Drops tables, database and tablespace of a volume, before it is unmounted.
    pub fn forget(&self) -> Result<()> {
        let mut client = self.connect("postgres")?;
        client.batch_execute("DROP TABLE IF EXISTS objects")?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)"))?;
        client.batch_execute(&format!("DROP TABLESPACE IF EXISTS {NAME}"))?;
        // Files that the checkpointer has open would keep the volume mounted.
        client.batch_execute("CHECKPOINT")?;
        Ok(client.close()?)
    }
}

/// Makes `dir`, owned by `user`.
fn give(dir: &Path, user: Option<(u32, u32)>) -> Result<()> {
    fs::create_dir_all(dir)?;
    if let Some((uid, gid)) = user {
        std::os::unix::fs::chown(dir, Some(uid), Some(gid))?;
    }
    Ok(fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?)
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its fast shutdown; connections that are open are cut.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::INT));
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
