//! Fresh volumes of one size: a file system in an image that is mounted, or a directory.
//!
//! Owns: the image, the loop device and the mount, which go when a [`Volume`] is dropped. A
//! process that was killed leaves them; the next volume that is made takes them down first.
//! Runs the system's own tools; nothing here needs them but the mounted kind.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

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
    /// As `mount` calls it; what makes one, with nothing reserved and nothing left to be set up in
    /// the background; the smallest volume that its maker accepts, in bytes.
    pub(super) fn facts(self) -> (&'static str, &'static str, &'static [&'static str], u64) {
        let ext4 = &["-q", "-F", "-m0", "-b4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        match self {
            Self::Ext4 => ("ext4", "mkfs.ext4", ext4, 16 << 20),
            Self::Xfs => ("xfs", "mkfs.xfs", &["-q", "-f"], 300 << 20),
            Self::Btrfs => ("btrfs", "mkfs.btrfs", &["-q", "-f", "--mixed"], 128 << 20),
        }
    }
}

/// A program by name, also of those that only root has on its path.
pub(super) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Runs `name` and waits; what it printed, or what it complained of.
pub(super) fn tool(name: &str, args: &[&dyn AsRef<OsStr>]) -> Result<String> {
    output(program(name).args(args.iter().map(|arg| arg.as_ref())), name)
}

/// Runs `command`, called `name`, and waits.
pub(super) fn output(command: &mut Command, name: &str) -> Result<String> {
    let out = command.output().with_context(|| format!("cannot run {name}, not installed?"))?;
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
    pub fn mounted(scratch: &Path, system: FileSystem, bytes: u64) -> Result<Self> {
        let (kind, maker, options, least) = system.facts();
        ensure!(bytes >= least, "{kind} takes {} MiB and more", least >> 20);
        take_down_left_over()?;
        let name = format!("{PREFIX}{}-", std::process::id());
        let number = (0..).find(|n| !scratch.join(format!("{name}{n}")).exists()).unwrap_or(0);
        let dir = scratch.join(format!("{name}{number}"));
        let image = scratch.join(format!("{name}{number}.img"));
        fs::create_dir_all(&dir)?;
        // From here on dropping it cleans up.
        let mut volume = Self { dir, image: Some(image.clone()), device: None, bytes };
        File::create(&image)?.set_len(bytes)?;
        output(program(maker).args(options).arg(&image), maker)?;
        let device = tool("losetup", &[&"--find", &"--show", &"--direct-io=on", &image])?;
        volume.device = Some(device.clone());
        tool("mount", &[&"-t", &kind, &"-o", &"noatime", &device, &volume.dir])?;
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
    pub fn directory(scratch: &Path, bytes: u64) -> Result<Self> {
        let number = (0..).find(|n| !scratch.join(format!("volume-{n}")).exists()).unwrap_or(0);
        let dir = scratch.join(format!("volume-{number}"));
        fs::create_dir_all(&dir)?;
        Ok(Self { dir, image: None, device: None, bytes })
    }

    /// Where stores are put.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The image, if one is mounted.
    pub fn image(&self) -> Option<&Path> {
        self.image.as_deref()
    }

    /// Bytes that it can hold, when it was fresh.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Brings everything to the disk, and reports the image which blocks are free, so that what
    /// was freed is not found in it.
    pub fn settle(&self) -> Result<()> {
        rustix::fs::syncfs(File::open(&self.dir)?)?;
        if self.image.is_some() {
            tool("fstrim", &[&self.dir])?;
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
    let _ = tool("umount", &[&dir]).or_else(|_| tool("umount", &[&"-l", &dir]));
    let _ = tool("losetup", &[&"-d", &device]);
}

/// Takes down what processes of this program left that are no more: loop devices, mounted or
/// not, known by the names of their images. One thread at a time: to a second one an image whose
/// device is gone would seem taken down while the first still removes it.
fn take_down_left_over() -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Needs root and loop devices; elsewhere there is nothing to take down.
    #[test]
    fn what_a_killed_run_left_is_taken_down() {
        let scratch = tempfile::tempdir().unwrap();
        let behind = |image: &Path| tool("losetup", &[&"--associated", &image]).unwrap_or_default();
        // The kernel frees a device that somebody looks at (udev does) when they close it.
        let pause = |_| std::thread::sleep(std::time::Duration::from_millis(100));
        let free = |image: &Path| (0..100).map(pause).any(|()| behind(image).is_empty());
        // Of a process that cannot be, and of this one.
        let names = [4_194_999, std::process::id()].map(|pid| format!("{PREFIX}{pid}-77"));
        let [dead, own] = names.map(|name| scratch.path().join(name));
        for dir in [&dead, &own] {
            let image = dir.with_extension("img");
            fs::create_dir(dir).unwrap();
            File::create(&image).unwrap().set_len(16 << 20).unwrap();
            let Ok(device) = tool("losetup", &[&"--find", &"--show", &image]) else { return };
            tool("mkfs.ext4", &[&"-q", &image]).unwrap();
            tool("mount", &[&device, dir]).unwrap();
        }
        take_down_left_over().unwrap();
        let (image, kept) = (dead.with_extension("img"), own.with_extension("img"));
        assert!(!dead.exists() && !image.exists() && free(&image), "{}", behind(&image));
        let device = behind(&kept).split(':').next().unwrap().to_owned();
        assert!(own.join("lost+found").exists() && !device.is_empty());
        take_down(&own, &device);
        assert!(!own.join("lost+found").exists() && free(&kept));
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
