//! File systems of other kinds, mounted for one test.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use crate::support::Home;

/// A mounted file system in a file, unmounted at the end; the device that stands for the file.
pub struct Mounted(pub PathBuf, Option<String>);

pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

impl Mounted {
    /// `None`, with a line, if that is not possible.
    pub fn new(home: &Home, mkfs: &[&str]) -> Option<Self> {
        let (image, path) = (home.path("image"), home.path("disk"));
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        fs::create_dir_all(&path).unwrap();
        let made = mkfs
            .split_first()
            .is_some_and(|(program, args)| succeeds(Command::new(program).args(args).arg(&image)));
        if !made || !succeeds(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&path)) {
            println!("skipped: making and mounting {mkfs:?}");
            return None;
        }
        Some(Self(path, None))
    }

    /// exFAT in a program of its own, which gives each name a number of its own.
    pub fn exfat(home: &Home) -> Option<Self> {
        let (image, path) = (home.path("image"), home.path("disk"));
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let found = Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok()?;
        let device = String::from_utf8(found.stdout).ok()?.trim().to_owned();
        let mounted = Self(path.clone(), Some(device.clone()));
        if succeeds(Command::new("mkfs.exfat").arg(&device))
            && succeeds(Command::new("mount.exfat-fuse").arg(&device).arg(&path))
        {
            return Some(mounted);
        }
        println!("skipped: making and mounting exFAT");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
        if let Some(device) = &self.1 {
            let _ = Command::new("losetup").args(["-d", device]).output();
        }
    }
}
