//! Fresh volumes of one size: a file system in an image that is mounted, or a directory.
//!
//! Owns: the image, the loop device and the mount, which go when a [`Volume`] is dropped. A
//! process that was killed leaves them; the next volume that is made takes them down first.
//! Runs the system's own tools; nothing here needs them but the mounted kind.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// What a mount point of ours is called, before the process and a number.
const PREFIX: &str = "holdall-aging-";

/// A file system in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// Extents and delayed allocation.
    Ext4,
    /// Allocation groups with B+-trees of free extents.
    Xfs,
    /// Copy on write.
    Btrfs,
}

impl FileSystem {
    /// As `mount` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// What makes one: nothing reserved, and nothing left to be set up in the background.
    fn maker(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Ext4 => (
                "mkfs.ext4",
                &["-q", "-F", "-m0", "-b4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
            ),
            Self::Xfs => ("mkfs.xfs", &["-q", "-f"]),
            Self::Btrfs => ("mkfs.btrfs", &["-q", "-f", "--mixed"]),
        }
    }

    /// The smallest volume that its maker accepts, in bytes.
    #[must_use]
    pub fn least_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 16 << 20,
            Self::Xfs => 300 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    /// What this machine lacks to mount one; nothing where all is there.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !root {
            return Some("mounting needs root".into());
        }
        let tools = [self.maker().0, "losetup", "mount", "umount", "fstrim", "filefrag"];
        let missing: Vec<&str> = tools.into_iter().filter(|tool| !has_tool(tool)).collect();
        if !missing.is_empty() {
            return Some(format!("{} missing", missing.join(", ")));
        }
        (!Path::new("/dev/loop-control").exists()).then(|| "there are no loop devices".into())
    }
}

/// Whether a program of this name is on the path.
pub(super) fn has_tool(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|dir| dir.join(name).is_file())
}

/// Runs `name` and waits; its message is in the error.
pub(super) fn tool(name: &str, change: impl FnOnce(&mut Command)) -> Result<String> {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    change(&mut command);
    let out = command.output().with_context(|| format!("cannot run {name}"))?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{name}: {} ({})", error.trim(), out.status);
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// A fresh volume; dropped it is gone.
pub struct Volume {
    /// Where stores are put.
    dir: PathBuf,
    /// The mounted image.
    image: Option<PathBuf>,
    device: Option<String>,
    bytes: u64,
}

impl Volume {
    /// A file system of `bytes` bytes in an image under `scratch`, mounted there. Its loop
    /// device reads and writes past the page cache, so that bytes are cached once.
    ///
    /// # Errors
    /// A tool fails; what it said.
    pub fn mounted(scratch: &Path, system: FileSystem, bytes: u64) -> Result<Self> {
        if let Some(missing) = system.missing() {
            bail!("{missing}");
        }
        take_down_left_over()?;
        let name = format!("{PREFIX}{}-", std::process::id());
        let number = (0..).find(|n| !scratch.join(format!("{name}{n}")).exists()).unwrap_or(0);
        let dir = scratch.join(format!("{name}{number}"));
        let image = scratch.join(format!("{name}{number}.img"));
        fs::create_dir_all(&dir)?;
        // From here on dropping it cleans up.
        let mut volume = Self { dir, image: Some(image.clone()), device: None, bytes };
        File::create(&image)?.set_len(bytes)?;
        let (maker, options) = system.maker();
        tool(maker, |c| {
            c.args(options).arg(&image);
        })?;
        let device = tool("losetup", |c| {
            c.args(["--find", "--show", "--direct-io=on"]).arg(&image);
        })?;
        volume.device = Some(device.clone());
        tool("mount", |c| {
            c.args(["-t", system.name(), "-o", "noatime", &device]).arg(&volume.dir);
        })?;
        let lost = volume.dir.join("lost+found");
        if lost.exists() {
            fs::remove_dir(lost)?;
        }
        let room = rustix::fs::statvfs(&volume.dir)?;
        volume.bytes = room.f_bavail * room.f_frsize;
        Ok(volume)
    }

    /// A directory under `scratch` that is to be used as if it held `bytes`: nothing but the
    /// workload keeps to it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn directory(scratch: &Path, bytes: u64) -> Result<Self> {
        let number = (0..).find(|n| !scratch.join(format!("volume-{n}")).exists()).unwrap_or(0);
        let dir = scratch.join(format!("volume-{number}"));
        fs::create_dir_all(&dir)?;
        Ok(Self { dir, image: None, device: None, bytes })
    }

    /// Where stores are put.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The image, where one is mounted.
    #[must_use]
    pub fn image(&self) -> Option<&Path> {
        self.image.as_deref()
    }

    /// Bytes that it can hold, when it was fresh.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Brings everything to the disk, and tells the image which blocks are free, so that what
    /// was freed is not found in it.
    ///
    /// # Errors
    /// The disk or `fstrim` fails.
    pub fn settle(&self) -> Result<()> {
        rustix::fs::syncfs(File::open(&self.dir)?)?;
        if self.image.is_some() {
            tool("fstrim", |c| {
                c.arg(&self.dir);
            })?;
        }
        Ok(())
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            // A failure here is met again by the next volume, which takes down what is left.
            take_down(&self.dir, device);
        }
        if let Some(image) = &self.image {
            let _ = fs::remove_file(image);
            // Not below it: the mount may still stand.
            let _ = fs::remove_dir(&self.dir);
        } else {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Unmounts `dir`, at once or when the last file there is closed, and frees its loop device.
fn take_down(dir: &Path, device: &str) {
    let unmount = |lazy: &[&str]| {
        tool("umount", |c| {
            c.args(lazy).arg(dir);
        })
    };
    let _ = unmount(&[]).or_else(|_| unmount(&["-l"]));
    let _ = tool("losetup", |c| {
        c.args(["-d", device]);
    });
}

/// Takes down what processes of this program left that are no more: loop devices, mounted or
/// not, known by the names of their images.
fn take_down_left_over() -> Result<()> {
    for entry in fs::read_dir("/sys/block").context("reading /sys/block")?.flatten() {
        let Ok(image) = fs::read_to_string(entry.path().join("loop/backing_file")) else {
            continue;
        };
        let image = image.trim_end().trim_end_matches(" (deleted)");
        let runs = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        if owner(image).is_some_and(|pid| !runs(pid)) {
            let dir = Path::new(image).with_extension("");
            take_down(&dir, &format!("/dev/{}", entry.file_name().to_string_lossy()));
            let _ = fs::remove_file(image);
            let _ = fs::remove_dir(&dir);
        }
    }
    Ok(())
}

/// The process that made the image, if it is one of ours.
fn owner(image: &str) -> Option<u32> {
    let rest = image.rsplit('/').next()?.strip_prefix(PREFIX)?.strip_suffix(".img")?;
    rest.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_tell_whose_they_are() {
        assert_eq!(owner("/w/x/holdall-aging-17-0.img"), Some(17));
        assert_eq!(owner("/w/x/holdall-aging-x-0.img"), None);
        assert_eq!(owner("/w/holdall-aging-17-0.img/other"), None);
        assert_eq!(owner("/w/x/disk.img"), None);
    }

    #[test]
    fn a_volume_is_gone_when_dropped() {
        let scratch = tempfile::tempdir().unwrap();
        let one = Volume::directory(scratch.path(), 1 << 20).unwrap();
        let two = Volume::directory(scratch.path(), 1 << 20).unwrap();
        assert_ne!(one.dir(), two.dir());
        fs::write(one.dir().join("a"), b"a").unwrap();
        one.settle().unwrap();
        drop((one, two));
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    }
}
