//! Small file systems of many kinds, made in a file and mounted.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A kind of file system, and how it is made.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// Type and options of `mkfs`.
    pub mkfs: &'static [&'static str],
    pub megabytes: u64,
    /// Whether it writes what changes to a new place.
    pub copies: bool,
    /// Whether it does not, by `chattr +C` on the directory.
    pub in_place: bool,
}

/// Nothing is kept for root.
pub const EXT4: Kind = Kind {
    name: "ext4",
    mkfs: &["ext4", "-F", "-q", "-m", "0"],
    megabytes: 64,
    copies: false,
    in_place: false,
};
pub const EXT3: Kind = Kind {
    name: "ext3",
    mkfs: &["ext3", "-F", "-q", "-m", "0"],
    megabytes: 64,
    copies: false,
    in_place: false,
};
pub const EXT2: Kind = Kind {
    name: "ext2",
    mkfs: &["ext2", "-F", "-q", "-m", "0"],
    megabytes: 64,
    copies: false,
    in_place: false,
};
/// Sixteen inodes.
pub const FEW_INODES: Kind = Kind {
    name: "ext4 with few inodes",
    mkfs: &["ext4", "-F", "-q", "-m", "0", "-N", "16"],
    megabytes: 64,
    copies: false,
    in_place: false,
};
pub const XFS: Kind = Kind {
    name: "xfs",
    mkfs: &["xfs", "-q", "-f"],
    megabytes: 300,
    copies: false,
    in_place: false,
};
pub const BTRFS: Kind = Kind {
    name: "btrfs",
    mkfs: &["btrfs", "-q", "-f"],
    megabytes: 256,
    copies: true,
    in_place: false,
};

pub const BTRFS_IN_PLACE: Kind = Kind { name: "btrfs, chattr +C", in_place: true, ..BTRFS };

/// A mounted file system, gone at the end.
#[derive(Debug)]
pub struct SmallDisk {
    dir: tempfile::TempDir,
    mounted: PathBuf,
    loops: Option<String>,
}

/// What a command says, if it succeeds.
fn run(command: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(command).args(args).stdin(Stdio::null()).output();
    match output {
        Ok(out) if out.status.success() => {
            Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
        }
        Ok(out) => Err(format!("{command}: {}", String::from_utf8_lossy(&out.stderr).trim())),
        Err(e) => Err(format!("{command}: {e}")),
    }
}

impl SmallDisk {
    /// `None`, with a line that says what is missing, if it cannot be made or mounted here.
    pub fn mount(kind: Kind) -> Option<Self> {
        let made = Self::try_mount(kind);
        made.inspect_err(|why| println!("skipped: {}: {why}", kind.name)).ok()
    }

    fn try_mount(kind: Kind) -> Result<Self, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let (image, mounted) = (dir.path().join("image"), dir.path().join("mounted"));
        fs::create_dir(&mounted).map_err(|e| e.to_string())?;
        let file = File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(kind.megabytes << 20).map_err(|e| e.to_string())?;
        let mut args = kind.mkfs[1..].to_vec();
        args.push(image.to_str().ok_or("a path that is no text")?);
        run(&format!("mkfs.{}", kind.mkfs[0]), &args)?;
        let mut disk = Self { dir, mounted, loops: None };
        let device = run("losetup", &["--find", "--show", args[args.len() - 1]])?;
        disk.loops = Some(device.clone());
        let at = disk.mounted.to_str().ok_or("a path that is no text")?;
        run("mount", &["-t", kind.mkfs[0], &device, at])?;
        if kind.in_place {
            run("chattr", &["+C", at])?;
        }
        Ok(disk)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.mounted.join(name)
    }

    /// Bytes and inodes that are free.
    pub fn free(&self) -> (u64, u64) {
        let at = self.mounted.to_str().unwrap();
        let text = run("stat", &["-f", "-c", "%a %S %d", at]).unwrap();
        let n: Vec<u64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
        (n[0] * n[1], n[2])
    }

    /// Takes room with a file until about `left` bytes are free.
    pub fn ballast(&self, left: u64) {
        let bytes = self.free().0.saturating_sub(left);
        append(&self.path("ballast"), bytes, 1 << 20);
        sync(&self.mounted);
    }

    /// Takes all room there is: until no byte can be written.
    pub fn fill(&self, name: &str) {
        let path = self.path(name);
        for _ in 0..3 {
            for size in [1 << 20, 64 << 10, 4096, 1] {
                append(&path, u64::MAX, size);
            }
            sync(&self.mounted);
        }
    }
}

/// Appends pieces of `size` bytes until there are `most` or no more fits.
fn append(path: &Path, most: u64, size: usize) {
    let Ok(mut file) = File::options().create(true).append(true).open(path) else { return };
    let piece = vec![0x5A; size];
    let mut done = 0;
    while done + size as u64 <= most && file.write_all(&piece).is_ok() {
        done += size as u64;
    }
}

fn sync(path: &Path) {
    // A full file system may refuse even this; what it wrote then stays as it is.
    drop(run("sync", &["--file-system", path.to_str().unwrap()]));
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let at = self.mounted.to_str().unwrap_or_default().to_owned();
        drop(run("umount", &[&at]));
        if let Some(device) = &self.loops {
            drop(run("losetup", &["--detach", device]));
        }
        // The directory goes with its handle.
        let _ = self.dir.path();
    }
}
