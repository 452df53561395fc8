//! Exports that end early: by a signal, a kill, or for lack of room.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::disks::Mounted;
use crate::support::{Home, Run, bytes, files};

/// The number of a process that has ended.
fn dead() -> u32 {
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

#[test]
fn what_an_ended_export_left_is_removed_and_never_stored() {
    let home = Home::new();
    home.file("tree/d/f", "f");
    home.ok(&["import", "s", "tree"]);
    home.ok(&["export", "s", "out"]);
    let (dead, alive) = (dead(), std::process::id());
    let left = [format!(".holdall-{dead}-7.tmp"), format!("d/.holdall-{dead}-8.tmp")];
    let claims = format!("d/.holdall-{dead}-9.tmp/claim");
    let kept = [format!(".holdall-{alive}-1.tmp"), ".holdall-notes".into(), "d/user.tmp".into()];
    for name in left.iter().chain(&kept).chain([&claims]) {
        home.file(&format!("out/{name}"), "left");
    }
    let result = home.json(&["import", "t", "out", "--json"]);
    assert_eq!((&result["files"], &result["skipped_own"]), (&3.into(), &4.into()), "{result}");
    assert_eq!(home.ok(&["ls", "t"]), b".holdall-notes\nd/f\nd/user.tmp\n");
    home.ok(&["export", "s", "out"]);
    let found: Vec<_> = files(&home.path("out")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(found, [&kept[0], &kept[1], "d/f", &kept[2]].map(std::path::PathBuf::from));
    assert!(!home.path(&format!("out/d/.holdall-{dead}-9.tmp")).exists());
    // An object of such a name would be taken for a temporary.
    home.feed(&["put", "s", &left[0]], b"x");
    let run = home.run(&["export", "s", "out"]);
    assert!(run.code == 1 && run.err.contains("temporary"), "{}", run.err);
}

#[test]
fn a_signal_leaves_modes_in_order_and_no_temporaries() {
    let home = Home::new();
    for at in 0..2000 {
        home.file(&format!("tree/d/{at:04}"), bytes(at, 3000));
    }
    home.file("tree/d/big", bytes(1, 30 << 20));
    let set = |name: &str, bits| {
        fs::set_permissions(home.path(name), Permissions::from_mode(bits)).unwrap();
    };
    let mode = |name: &str| fs::metadata(home.path(name)).unwrap().permissions().mode() & 0o777;
    set("tree/d", 0o500);
    home.ok(&["import", "s", "tree"]);
    for round in 0..8u64 {
        let mut command = home.command(&["export", "s", "out"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // At work once it may write into the directory; when the signal comes is left to chance.
        let since = Instant::now();
        while !home.path("out/d").exists() || mode("out/d") == 0o500 {
            if since.elapsed() > Duration::from_secs(5) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(round));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let run = Run::of(child.wait_with_output().unwrap());
        let is_ended = run.code == 143 && run.err.contains("ended by signal 15");
        assert!(is_ended || run.code == 0, "{round} {}: {}", run.code, run.err);
        assert_eq!(mode("out/d"), 0o500, "{round}");
        let mut left = files(&home.path("out"));
        left.retain(|(name, _)| name.to_string_lossy().contains(".holdall"));
        assert!(left.is_empty(), "{round}: {} left", left.len());
        fs::remove_dir_all(home.path("out")).unwrap();
    }
    home.ok(&["export", "s", "out"]);
    assert!(files(&home.path("out")) == files(&home.path("tree")));
}

#[test]
fn what_has_no_room_is_named_and_the_rest_is_exported() {
    let home = Home::new();
    let Some(_disk) = Mounted::new(&home, &["mkfs.ext2", "-q", "-F", "-m", "0"]) else { return };
    home.file("tree/a", "first");
    for name in ["b/large", "m large"] {
        home.file(&format!("tree/{name}"), bytes(2, 90 << 20));
    }
    home.file("tree/d/middle", bytes(3, 5 << 20));
    home.file("tree/z", "last");
    home.ok(&["import", "s", "tree"]);
    let run = home.run(&["export", "s", "disk/out", "--json"]);
    assert_eq!(run.code, 6, "{}", run.err);
    let counts: Value = serde_json::from_slice(&run.out).unwrap();
    for (field, count) in [("files", 3), ("failed", 2), ("without_room", 2), ("not_tried", 0)] {
        assert_eq!(counts[field], count, "{counts}");
    }
    for name in ["b/large", "m large"] {
        assert!(run.err.contains(&format!("not exported: {name}: write ")), "{}", run.err);
        assert!(!home.path("disk/out").join(name).exists());
    }
    for name in ["a", "d/middle", "z"] {
        let (out, tree) = (home.path("disk/out").join(name), home.path("tree").join(name));
        assert!(fs::read(out).unwrap() == fs::read(tree).unwrap(), "{name}");
    }
    // Full for small ones too: it ends, and says how many are left.
    let fill = home.path("disk/fill");
    fs::write(&fill, bytes(4, 80 << 20)).unwrap_err();
    fs::remove_dir_all(home.path("disk/out")).unwrap();
    fs::create_dir(home.path("disk/out")).unwrap();
    let mut fill = fs::File::options().append(true).open(fill).unwrap();
    while std::io::Write::write_all(&mut fill, &[7; 512]).is_ok() {}
    let run = home.run(&["export", "s", "disk/out", "--json"]);
    let counts: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((run.code, &counts["failed"]), (6, &1.into()), "{}", run.err);
    assert_eq!((&counts["files"], &counts["not_tried"]), (&0.into(), &4.into()), "{counts}");
    assert!(run.err.contains("the export ends here, 4 objects were not tried"), "{}", run.err);
}

#[test]
fn a_folding_file_system_needs_room_for_the_files_only() {
    let home = Home::new();
    let clusters = |home: &Home| {
        let vfat = Mounted::new(home, &["mkfs.vfat"]);
        if vfat.is_none() {
            let _ = fs::create_dir(home.path("disk"));
        }
        vfat.or_else(|| Mounted::exfat(home))
    };
    let Some(_disk) = clusters(&home) else { return };
    // Room for a thousand files, not for something more beside each.
    let found = rustix::fs::statvfs(home.path("disk")).unwrap();
    let (count, room) = (1000_u64, found.f_bavail - 1500);
    home.file("disk/fill", vec![7; usize::try_from(room * found.f_frsize).unwrap()]);
    for at in 0..count {
        home.file(&format!("tree/{at:05}"), at.to_string());
    }
    home.ok(&["import", "s", "tree"]);
    for round in 0..2 {
        let run = home.run(&["export", "s", "disk/out", "--json"]);
        let counts: Value = serde_json::from_slice(&run.out).unwrap();
        assert_eq!(
            (&counts["files"], &counts["failed"]),
            (&count.into(), &0.into()),
            "{round}: {}",
            run.err
        );
        let found = files(&home.path("disk/out"));
        assert!(found == files(&home.path("tree")), "{round}");
    }
}
