//! Directories that are swapped for links while the command is at work, deep trees with few
//! descriptors, and long paths.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::support::{EndOnDrop, HOLDALL, Home, Run, files, sound};

/// Runs `work` while `one` and `other` change places again and again; false if they cannot.
fn swapping(one: &Path, other: &Path, work: impl FnOnce()) -> bool {
    let swap = || renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    if swap().and_then(|()| swap()).is_err() {
        println!("skipped: exchanging two names");
        return false;
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Back at its place after each round.
                swap().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
                swap().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        work();
    });
    true
}

#[test]
fn an_import_stays_inside_while_directories_become_links() {
    let home = Home::new();
    for at in 0..1500 {
        for part in ["d", "d/e"] {
            home.file(&format!("tree/{part}/{at:04}"), "inside");
            home.file(&format!("outside/{part}/{at:04}"), "outside");
        }
    }
    home.file("tree/kept", "inside");
    symlink(home.path("outside/d"), home.path("link")).unwrap();
    for round in 0..4 {
        let mut run = None;
        let is_possible = swapping(&home.path("tree/d"), &home.path("link"), || {
            run = Some(home.run(&["import", "s", "tree", "--force"]));
        });
        let Some(run) = run.filter(|_| is_possible) else { return };
        // Some files may not be found; then that is printed.
        assert!(run.code == 0 || run.err.contains("not imported: d"), "{round}: {}", run.err);
        let store = holdall::Store::open(home.path("s")).unwrap();
        let reader = store.read().unwrap();
        for entry in reader.names("").map(Result::unwrap) {
            let bytes = reader.get(entry.oid).unwrap().unwrap();
            assert!(bytes == b"inside", "{round}: {}", String::from_utf8_lossy(&entry.name));
        }
        store.close().unwrap();
        if run.code == 0 {
            assert_eq!(files(&home.path("tree")).len(), 3001);
        }
    }
    sound(&home, "s");
}

#[test]
fn an_export_stays_inside_while_directories_become_links() {
    let home = Home::new();
    // Deep, so that directories are left, closed and opened again.
    let deep = vec!["d"; 60].join("/");
    for at in 0..300 {
        for name in [format!("d/{at:04}"), format!("{deep}/{at:04}"), format!("d/d/z{at:04}")] {
            home.file(&format!("tree/{name}"), "new");
        }
    }
    home.ok(&["import", "s", "tree"]);
    home.file("outside/kept", "kept");
    fs::create_dir_all(home.path("out/d")).unwrap();
    symlink(home.path("outside"), home.path("link")).unwrap();
    for _ in 0..4 {
        let is_possible = swapping(&home.path("out/d"), &home.path("link"), || {
            let run = home.run(&["export", "s", "out"]);
            // What is not at its place any more is named.
            let is_told = run.err.contains("not exported: d") || run.err.contains("same: d/");
            assert!(run.code == 0 || is_told, "{}", run.err);
        });
        if !is_possible {
            return;
        }
        let found = files(&home.path("outside"));
        assert_eq!(found, [("kept".into(), b"kept".to_vec())]);
    }
}

/// Runs the command with at most `most` open files.
fn limited(home: &Home, most: u32, args: &str) -> Run {
    let script = format!("ulimit -n {most} && exec '{HOLDALL}' {args}");
    let mut command = Command::new("bash");
    Run::of(command.args(["-c", &script]).current_dir(home.path("")).output().unwrap())
}

#[test]
fn deep_trees_need_few_descriptors() {
    let home = Home::new();
    let deep = vec!["d"; 480].join("/");
    let names = [format!("{deep}/file"), format!("{deep}/z"), "d/z".into(), "d/d/d/z".into()];
    for name in &names {
        home.file(&format!("tree/{name}"), name);
    }
    for round in 0..2 {
        for command in ["import s tree --force", "export s out"] {
            let run = limited(&home, 96, command);
            assert_eq!(run.code, 0, "{round} {command}: {}", run.err);
        }
        for name in &names {
            assert_eq!(fs::read(home.path("out").join(name)).unwrap(), name.as_bytes());
        }
    }
}

#[test]
fn paths_of_directories_may_be_as_long_as_the_system_takes() {
    let home = Home::new();
    let part = "p".repeat(200);
    let mut long = home.path("");
    while long.as_os_str().len() < 3800 {
        long.push(&part);
    }
    let room = 4090 - long.as_os_str().len();
    long.push("q".repeat(room.min(250) - 1));
    fs::create_dir_all(&long).unwrap();
    let long = long.to_str().unwrap().to_owned();
    // Behind it there is no room for a name of a file in one path.
    let names = ["in/a long name", "in/b/c/another long name", &format!("{}/f", "n".repeat(200))];
    for name in names {
        let script =
            format!("cd '{long}' && mkdir -p \"$(dirname '{name}')\" && echo '{name}' > '{name}'");
        assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
    }
    let result = home.json(&["import", "s", &long, "--json"]);
    assert_eq!(result["files"], 3, "{result}");
    let again = home.json(&["import", "s", &long, "--checksum", "--json"]);
    assert_eq!((&again["already_there"], &again["failed"]), (&3.into(), &0.into()));
    for name in names {
        let script = format!("cd '{long}' && rm '{name}'");
        assert!(Command::new("bash").args(["-c", &script]).status().unwrap().success());
    }
    for _ in 0..2 {
        home.ok(&["export", "s", &long]);
        home.ok(&["export", "s", "out"]);
        for name in names {
            let script = format!("cd '{long}' && cat '{name}'");
            let found = Command::new("bash").args(["-c", &script]).output().unwrap().stdout;
            assert_eq!(found, format!("{name}\n").into_bytes());
            assert_eq!(fs::read(home.path("out").join(name)).unwrap(), found);
        }
    }
}
