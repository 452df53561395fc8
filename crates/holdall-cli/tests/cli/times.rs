//! File systems with coarse clocks or few times, and files that are written while they are read.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use crate::disks::Mounted;
use crate::support::{EndOnDrop, Home};

/// File systems that count in seconds.
fn coarse(test: impl Fn(&Home, &str)) {
    let home = Home::new();
    if let Some(_disk) = Mounted::new(&home, &["mkfs.ext3", "-q", "-F", "-I", "128"]) {
        test(&home, "ext3");
    }
    let home = Home::new();
    fs::create_dir(home.path("disk")).unwrap();
    if let Some(_disk) = Mounted::exfat(&home) {
        test(&home, "exfat");
    }
}

const LEN: usize = 1 << 20;

/// Runs `work` while a file is written from its start again and again, each time with another byte.
fn rewriting(file: &File, work: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        scope.spawn(|| {
            for byte in (1..=250).cycle().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                for at in (0..LEN).step_by(4096) {
                    file.write_all_at(&[byte; 4096], at as u64).unwrap();
                }
            }
        });
        work();
    });
}

#[test]
fn a_file_that_is_rewritten_on_a_coarse_clock_is_named() {
    let test = |home: &Home, tree: &str| {
        let path = home.file(&format!("{tree}/busy"), vec![0; LEN]);
        home.file(&format!("{tree}/quiet"), "quiet");
        let file = File::options().write(true).open(path).unwrap();
        rewriting(&file, || {
            let run = home.run(&["import", "s", tree]);
            assert!(
                run.code == 1 && run.err.contains("not imported: busy: it changes"),
                "{}",
                run.err
            );
            assert!(!run.err.contains("quiet"), "{}", run.err);
        });
        assert_eq!(home.ok(&["get", "s", "quiet"]), b"quiet");
        // When nobody writes any more, all is stored.
        let run = home.run(&["import", "s", tree]);
        assert_eq!(run.code, 0, "{}", run.err);
        let stored = home.ok(&["get", "s", "busy"]);
        assert!(stored == fs::read(home.path(&format!("{tree}/busy"))).unwrap());
    };
    coarse(|home, _| test(home, "disk/tree"));
    test(&Home::new(), "tree");
}

#[test]
fn a_file_that_only_grows_is_no_torn_one() {
    coarse(|home, kind| {
        let path = home.file("disk/tree/log", "begun\n");
        let mut log = File::options().append(true).open(path).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let end = EndOnDrop(&is_over);
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::io::Write::write_all(&mut log, b"line\n").unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let run = home.run(&["import", "s", "disk/tree"]);
            drop(end);
            // It may still grow at the very moment when it is read.
            let is_named = run.err.contains("not imported: log: it changes while it is read");
            assert!(run.code == 0 || is_named, "{kind}: {}", run.err);
            if run.code == 0 {
                let stored = home.ok(&["get", "s", "log"]);
                assert!(stored.starts_with(b"begun\n"), "{kind}");
                assert!(fs::read(home.path("disk/tree/log")).unwrap().starts_with(&stored));
            }
        });
    });
}

#[test]
fn times_are_there_after_an_export_or_named() {
    coarse(|home, kind| {
        let near = UNIX_EPOCH + Duration::from_secs(1_234_567_890);
        let far = UNIX_EPOCH + Duration::from_secs(3_000_000_000);
        for (name, time) in [("near", near), ("far", far)] {
            let path = home.file(&format!("tree/{name}"), name);
            File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
        home.ok(&["import", "s", "tree"]);
        let run = home.run(&["export", "s", "disk/out"]);
        for (name, time) in [("near", near), ("far", far)] {
            let path = home.path("disk/out").join(name);
            assert_eq!(fs::read(&path).unwrap(), name.as_bytes());
            let found = fs::metadata(path).unwrap().modified().unwrap();
            let off = found.duration_since(time).unwrap_or_else(|e| e.duration());
            let says =
                format!("exported all the same: {name}: its time cannot be set: the file system");
            assert_eq!(
                off >= Duration::from_secs(2),
                run.err.contains(&says),
                "{kind} {name}: {}",
                run.err
            );
            assert!(name == "far" || off < Duration::from_secs(2), "{kind}: off by {off:?}");
        }
        if run.err.contains("time cannot be set") {
            assert_eq!(run.code, 1);
        }
    });
}
