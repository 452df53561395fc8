//! The README's first command, `demo.sh`: with nothing but the command, bash and coreutils it
//! shows a kill and a resume on any tree, and says so if it could kill nothing.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::support::{HOLDALL, Home, Run};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo.sh");

/// All that the demo may find on its PATH: a shell, and tools of coreutils.
const TOOLS: [&str; 14] = [
    "bash",
    "comm",
    "dd",
    "dirname",
    "head",
    "ls",
    "mkfifo",
    "mktemp",
    "od",
    "rm",
    "sha256sum",
    "sleep",
    "sort",
    "wc",
];

/// Runs the demo on the directory `tree`; `None` if one of its tools is missing here.
fn demo(home: &Home) -> Option<Run> {
    fs::create_dir(home.path("bin")).unwrap();
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect();
    for tool in TOOLS {
        let Some(found) = folders.iter().map(|f| f.join(tool)).find(|path| path.exists()) else {
            println!("skipped: {tool}");
            return None;
        };
        symlink(found, home.path("bin").join(tool)).unwrap();
    }
    fs::create_dir(home.path("tmp")).unwrap();
    let mut command = Command::new(home.path("bin/bash"));
    command.arg(DEMO).arg(home.path("tree")).env_clear();
    command.env("PATH", home.path("bin")).env("TMPDIR", home.path("tmp")).env("HOLDALL", HOLDALL);
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.code, 0, "{}\n{}", run.text(), run.err);
    assert_eq!(run.err.lines().filter(|l| l.contains("not found")).count(), 0, "{}", run.err);
    assert_eq!(fs::read_dir(home.path("tmp")).unwrap().count(), 0, "it leaves files behind");
    Some(run)
}

#[test]
fn three_small_files_are_killed_at_their_first_batch_and_resumed() {
    let home = Home::new();
    home.file("tree/a", "a");
    home.file("tree/-n b/.hidden", "the longest");
    // A backslash, a line break, blanks at both ends, and a byte that is no UTF-8.
    let odd = std::ffi::OsStr::from_bytes(b" a\\x\n  \xff ");
    fs::write(home.path("tree").join(odd), "odd").unwrap();
    symlink("a", home.path("tree/link")).unwrap();
    let Some(run) = demo(&home) else { return };
    let said = run.text();
    assert!(said.contains("\nkilled when its first batch was durable (3 files)"), "{said}");
    assert!(said.contains("\nimported 0 files") && said.contains("; 3 already there"), "{said}");
    assert!(said.contains("\nname              -n b/.hidden\n"), "{said}");
    assert!(said.contains("\nidentical: 3 files; not stored: 0\n"), "{said}");
    assert!(!said.contains("NOT KILLED"), "{said}");
}

#[test]
fn one_big_file_is_killed_too() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    File::create(home.path("tree/hole")).unwrap().set_len(100 << 20).unwrap();
    home.file("tree/big", vec![7; 100 << 20]);
    let Some(run) = demo(&home) else { return };
    let said = run.text();
    // Half way, or at its first batch if the disk was faster than the demo.
    assert!(said.contains("\nkilled ") && !said.contains("NOT KILLED"), "{said}");
    assert!(said.contains("\nidentical: 2 files; not stored: 0\n"), "{said}");
}

#[test]
fn where_nothing_can_be_stored_the_demo_says_that_it_killed_nothing() {
    let home = Home::new();
    fs::create_dir_all(home.path("tree/empty")).unwrap();
    let Some(run) = demo(&home) else { return };
    let said = run.text();
    assert!(said.contains("\nNOT KILLED: "), "{said}");
    assert!(said.contains("\nno objects\n") && said.contains("\nidentical: 0 files"), "{said}");
}
