//! Servers under measurement: started, asked until they answer, stopped.
//!
//! Each is a child process on a port of 127.0.0.1 with a fresh directory. Their settings are those
//! they have by themselves, beside what [`Program::command`] says.

use super::client::Client;
use super::content::Content;
use super::sign::{ACCESS_KEY, BUCKET, REGION, SECRET_KEY};
use anyhow::{Context as _, Result, bail};
use holdall_instrument::contest::BARE;
use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to its first answer, and to its end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Kinds of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This program's own minimal handler: the limit of the machine.
    Bare,
    /// `holdall serve`.
    Holdall,
    /// MinIO with one directory.
    Minio,
    /// versitygw with its POSIX backend.
    Versitygw,
}

impl Kind {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bare => BARE,
            Kind::Holdall => "Holdall",
            Kind::Minio => "MinIO",
            Kind::Versitygw => "versitygw",
        }
    }

    /// What the table says of its settings.
    pub fn settings(self) -> &'static str {
        match self {
            Kind::Bare => "hyper; MD5, one file for each object, fdatasync before the answer",
            Kind::Holdall => "no options",
            Kind::Minio => "one directory; console and look for updates off",
            Kind::Versitygw => "posix; keep-alive on, as all others have it; no log of requests",
        }
    }
}

/// A server's program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Which.
    pub kind: Kind,
    /// Where it lies.
    pub path: PathBuf,
    /// Whether versitygw keeps a log of its requests, [`Program::LOG`] in the directory.
    pub is_logged: bool,
}

impl Program {
    /// A line for each request.
    pub const LOG: &str = "requests.log";

    /// This program itself, as the bare handler.
    ///
    /// # Errors
    /// A path that the system does not tell.
    pub fn bare() -> Result<Self> {
        Ok(Self { kind: Kind::Bare, path: std::env::current_exe()?, is_logged: false })
    }

    /// What the program says of its version, in one line.
    pub fn version(&self) -> Option<String> {
        let out = Command::new(&self.path).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        text.lines().next().map(|line| line.trim().to_owned())
    }

    /// The process for directory `dir`.
    fn command(&self, dir: &Path, address: SocketAddr) -> Command {
        let mut command = Command::new(&self.path);
        let address = address.to_string();
        match self.kind {
            Kind::Bare => command.args(["bare-server", "--listen", &address]).arg(dir),
            Kind::Holdall => command
                .args(["serve", "--listen", &address, "--json"])
                .arg(dir.join("store"))
                .env("HOLDALL_ACCESS_KEY", ACCESS_KEY)
                .env("HOLDALL_SECRET_KEY", SECRET_KEY),
            Kind::Minio => command
                .args(["server", "--quiet", "--address", &address, "--certs-dir"])
                .arg(dir.join("certs"))
                .arg(dir.join("data"))
                .env("MINIO_ROOT_USER", ACCESS_KEY)
                .env("MINIO_ROOT_PASSWORD", SECRET_KEY)
                .env("MINIO_REGION", REGION)
                .env("MINIO_BROWSER", "off")
                .env("MINIO_UPDATE", "off")
                // Else it refuses a directory on the machine's root file system.
                .env("MINIO_CI_CD", "1"),
            Kind::Versitygw => command
                .args(["--port", &address, "--region", REGION, "--keep-alive", "--quiet"])
                .args(["--access", ACCESS_KEY, "--secret", SECRET_KEY]),
        };
        if self.is_logged {
            command.arg("--access-log").arg(dir.join(Self::LOG));
        }
        if self.kind == Kind::Versitygw {
            command.arg("posix").arg(dir.join("data"));
        }
        command
    }

    /// Starts it on `dir`, which is made if it is missing; what it says goes to a file beside.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(&self, dir: &Path) -> Result<Server> {
        std::fs::create_dir_all(dir.join("data"))?;
        let log = dir.with_extension("log");
        let out = File::options().create(true).append(true).open(&log)?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = self.command(dir, address);
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let begun = Instant::now();
        let child = command.spawn();
        let child = child.with_context(|| format!("starting {}", self.path.display()))?;
        Ok(Server { kind: self.kind, address, child, log, begun })
    }

    /// As [`Program::start`]; returns when it answers and has the bucket.
    ///
    /// # Errors
    /// Those of the system; a server that does not answer.
    pub async fn serve(&self, dir: &Path) -> Result<Server> {
        let mut server = self.start(dir)?;
        server.answers("/", None).await?;
        let mut client = Client::new(server.address)?;
        let bucket = format!("/{BUCKET}");
        let line = client.signer.line(rusty_s3::Method::Put, &bucket, &[])?;
        let (answer, text) = client.text(Method::PUT, line, Content::none()).await?;
        // It is there after a restart.
        if !answer.status.is_success() && answer.status != http::StatusCode::CONFLICT {
            bail!("{} makes no bucket: {} {text}", self.kind.name(), answer.status);
        }
        Ok(server)
    }
}

/// A running server; killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// Which.
    pub kind: Kind,
    /// Where it listens.
    pub address: SocketAddr,
    child: Child,
    log: PathBuf,
    begun: Instant,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for `path` until that is answered with success and, if they are given, with these
    /// bytes. Returns the time since the start.
    ///
    /// # Errors
    /// A server that ended or does not answer in time.
    pub async fn answers(&mut self, path: &str, content: Option<&Content>) -> Result<Duration> {
        let mut client = Client::new(self.address)?;
        let mut last = "nothing listens".to_owned();
        while self.begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", self.kind.name(), self.said());
            }
            let line = client.signer.line(rusty_s3::Method::Get, path, &[])?;
            let mut same = true;
            let check = |at, bytes: &[u8]| {
                same &= content.is_none_or(|c| c.has(at, bytes));
                Ok(())
            };
            match client.send(Method::GET, line, Content::none(), check).await {
                Ok(a) if a.status.is_success() => {
                    if !same || content.is_some_and(|c| c.len() != a.len) {
                        bail!("{} answers {path} with other bytes", self.kind.name());
                    }
                    return Ok(self.begun.elapsed());
                }
                Ok(answer) => last = answer.status.to_string(),
                Err(e) => last = e.to_string(),
            }
            tokio::time::sleep(Duration::from_micros(500)).await;
        }
        bail!("{} does not answer within {PATIENCE:?}: {last}; {}", self.kind.name(), self.said())
    }

    /// The end of its output.
    pub fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        // Fails if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end and waits for that.
    ///
    /// # Errors
    /// A server that does not end in time; it is killed then.
    pub fn stop(mut self) -> Result<()> {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
        let asked = Instant::now();
        while asked.elapsed() < PATIENCE {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("{} does not stop within {PATIENCE:?}: {}", self.kind.name(), self.said())
    }
}
