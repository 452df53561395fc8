//! File systems over a bucket: mounted, used as files, mounted anew before they read.
//!
//! Owns: [`Mount`], which is taken off when it is dropped.

use super::Place;
use super::peers::{Peer, Raw};
use crate::http::{ACCESS_KEY, BUCKET, REGION, SECRET_KEY};
use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How long a mount may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// `s3fs`, no cache on disk.
    S3fs,
    /// `rclone mount`, with the cache of writes that inserts need.
    Rclone,
    /// JuiceFS with SQLite for its metadata, no cache of reads on disk.
    Juicefs,
}

impl System {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::S3fs => "s3fs",
            Self::Rclone => "rclone mount",
            Self::Juicefs => "JuiceFS",
        }
    }
}

/// A mounted file system.
pub struct Mount {
    system: System,
    place: Place,
    at: PathBuf,
    /// Shows whether an object came into the bucket.
    raw: Raw,
    child: Mutex<Option<Child>>,
}

impl Mount {
    /// Mounts it.
    pub fn new(system: System, place: Place) -> Result<Self> {
        let at = place.dir.join("mounted");
        fs::create_dir(&at)?;
        let raw = Raw::new(&place)?;
        let mount = Self { system, place, at, raw, child: Mutex::default() };
        if system == System::Juicefs {
            let made = mount
                .command(&["--quiet", "format", "--storage", "s3"])
                .arg("--bucket")
                .arg(format!("{}/{BUCKET}", mount.place.endpoint))
                .args(["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY])
                .arg(mount.metadata())
                .arg("files")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            ensure!(made.success(), "juicefs format fails");
        }
        mount.mount()?;
        Ok(mount)
    }

    fn metadata(&self) -> String {
        format!("sqlite3://{}", self.place.dir.join("juicefs.db").display())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.place.program);
        command.args(args).env("AWS_ACCESS_KEY_ID", ACCESS_KEY);
        command.env("AWS_SECRET_ACCESS_KEY", SECRET_KEY).env("AWSACCESSKEYID", ACCESS_KEY);
        command.env("AWSSECRETACCESSKEY", SECRET_KEY).env("AWS_REGION", REGION);
        command
    }

    fn mount(&self) -> Result<()> {
        let Place { endpoint, dir, .. } = &self.place;
        let mut command = match self.system {
            System::S3fs => {
                let mut command = self.command(&["-f", BUCKET]);
                command.arg(&self.at).arg("-o");
                command.arg(format!("url={endpoint},use_path_request_style,endpoint={REGION}"));
                command
            }
            System::Rclone => {
                let mut command = self.command(&["mount", "--vfs-cache-mode", "writes"]);
                command.args(["--vfs-write-back", "0s", "--dir-cache-time", "1s", "--cache-dir"]);
                command.arg(dir.join("cache")).arg(format!(":s3:{BUCKET}")).arg(&self.at);
                super::peers::rclone(&mut command, endpoint);
                command
            }
            System::Juicefs => {
                let mut command =
                    self.command(&["--quiet", "mount", "--cache-size", "0", "--no-usage-report"]);
                command
                    .arg("--cache-dir")
                    .arg(dir.join("cache"))
                    .arg(self.metadata())
                    .arg(&self.at);
                command
            }
        };
        let log = File::options().create(true).append(true).open(dir.join("mount.log"))?;
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let child = child.with_context(|| format!("starting {}", self.place.program.display()))?;
        *self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(child);
        let begun = Instant::now();
        while !is_mounted(&self.at)? {
            if begun.elapsed() > PATIENCE {
                let said = fs::read_to_string(dir.join("mount.log")).unwrap_or_default();
                bail!("{} does not mount: {said}", self.system.name());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Returns when the file is in the bucket. `rclone` sends it after it is closed, whatever is synced.
    fn durable(&self, name: &str, file: File) -> Result<()> {
        let len = file.metadata()?.len();
        file.sync_all()?;
        drop(file);
        if self.system == System::Rclone { self.raw.wait_for(name, len) } else { Ok(()) }
    }

    fn unmount(&self) -> Result<()> {
        let done = Command::new("fusermount3").arg("-u").arg(&self.at).status()?;
        ensure!(done.success(), "{} cannot be taken off", self.system.name());
        let child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(mut child) = child {
            child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // It may be off already after an error.
        let _ = self.unmount();
    }
}

fn is_mounted(at: &Path) -> Result<bool> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let at = at.canonicalize()?;
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == at.to_str()))
}

impl Peer for Mount {
    fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        let file = File::create(self.at.join(name))?;
        file.write_all_at(bytes, 0)?;
        self.durable(name, file)
    }

    fn get(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut file = File::open(self.at.join(name))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                n => take(&buffer[..n]),
            }
        }
    }

    /// What a program does to a file: the rest is read, and written behind the new bytes.
    fn insert(&self, name: &str, at: u64, bytes: &Bytes) -> Result<()> {
        let file = File::options().read(true).write(true).open(self.at.join(name))?;
        let len = file.metadata()?.len();
        let mut rest = vec![0; (len - at) as usize];
        file.read_exact_at(&mut rest, at)?;
        file.write_all_at(bytes, at)?;
        file.write_all_at(&rest, at + bytes.len() as u64)?;
        self.durable(name, file)
    }

    fn forget(&self) -> Result<()> {
        self.unmount()?;
        self.mount()
    }

    fn rewrites(&self) -> bool {
        true
    }
}
