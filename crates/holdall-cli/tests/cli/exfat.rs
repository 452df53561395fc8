//! A file system that cannot punch holes: what `stat` promises is what `compact` gives.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, bytes, sound};

/// An exFAT of 100 MB, unmounted at the end.
struct Exfat {
    path: PathBuf,
    device: String,
}

impl Exfat {
    /// `None`, with a message, if the tools or the right to mount are missing.
    fn mount(home: &Home, below: &str) -> Option<Self> {
        let (image, path) = (home.path("image"), home.path(below));
        fs::create_dir(&path).unwrap();
        fs::File::create(&image).unwrap().set_len(100 << 20).unwrap();
        let made = said(Command::new("mkfs.exfat").arg(&image)).is_some();
        let attach = || said(Command::new("losetup").args(["--find", "--show"]).arg(&image));
        let Some(device) = made.then(attach).flatten() else {
            println!("skipped: mkfs.exfat and losetup");
            return None;
        };
        let mounted = ["mount.exfat-fuse", "mount.exfat"]
            .into_iter()
            .any(|mount| said(Command::new(mount).arg(&device).arg(&path)).is_some());
        let disk = Self { path, device };
        if !mounted {
            println!("skipped: mount.exfat-fuse");
            return None;
        }
        Some(disk)
    }
}

impl Drop for Exfat {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).output();
        let _ = Command::new("losetup").args(["--detach", &self.device]).output();
    }
}

/// What a command prints, if it ends well.
fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Compacts, and holds what that gives against what was promised; then nothing more is promised.
fn compacts(home: &Home, store: &str, least: u64) {
    let gains = |home: &Home| -> u64 {
        let report = home.json(&["frag", store, "--json"]);
        let remedies = report["remedies"].as_array().unwrap().clone();
        let compact = remedies.iter().filter(|r| r["action"] == "compact");
        compact.map(|r| r["gain_bytes"].as_u64().unwrap()).sum()
    };
    let (before, promised) = (len(&home.path(store)), gains(home));
    home.ok(&["compact", store]);
    let gave = before - len(&home.path(store));
    assert!(gave >= promised && gave >= least, "{gave} given, {promised} promised, {least} least");
    assert_eq!(gains(home), 0);
    assert!(fs::metadata(home.path(store)).unwrap().blocks() * 512 <= before - gave + (64 << 10));
    sound(home, store);
}

#[test]
fn compact_gives_back_on_exfat_what_is_promised() {
    let home = Home::new();
    let Some(_disk) = Exfat::mount(&home, "disk") else { return };
    for i in 0..5u64 {
        home.file("in", bytes(i, 3_000_000));
        home.ok(&["put", "disk/s", &i.to_string(), "in"]);
    }
    home.ok(&["rm", "disk/s", "0", "1", "2", "3"]);
    compacts(&home, "disk/s", 10_000_000);
    assert!(home.ok(&["get", "disk/s", "4"]) == bytes(4, 3_000_000));
    for i in 0..1500u64 {
        home.file(&format!("tree/{i:04}"), bytes(i, 3000));
    }
    home.ok(&["import", "disk/t", "tree"]);
    let gone = (0..1500).filter(|i| i % 3 != 1).map(|i| format!("{i:04}\n")).collect::<String>();
    assert_eq!(home.feed(&["rm", "disk/t", "--from", "-"], gone.as_bytes()).code, 0);
    compacts(&home, "disk/t", 2_000_000);
    for i in (0..1500u64).filter(|i| i % 3 == 1) {
        assert!(home.ok(&["get", "disk/t", &format!("{i:04}")]) == bytes(i, 3000), "{i}");
    }
}
