//! What a terminal gets and a pipe does not: colours and progress bars.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::support::Home;

/// Both ends of a new terminal: the user's and the program's.
fn terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    fcntl_setfd(&user, FdFlags::CLOEXEC).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = rustix::fs::open(ptsname(&user, Vec::new()).unwrap(), flags, Mode::empty());
    (user.into(), program.unwrap().into())
}

/// The command on a terminal of this kind, and what the terminal gets.
fn on_terminal(home: &Home, args: &[&str], term: &str, no_color: bool) -> (Command, File) {
    let (user, program) = terminal();
    let mut command = home.command(args);
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(variable);
    }
    command.env("TERM", term).stdin(program.try_clone().unwrap());
    command.stdout(program.try_clone().unwrap()).stderr(program);
    if no_color {
        command.env("NO_COLOR", "1");
    }
    (command, user)
}

/// All that a terminal shows of a run to its end.
fn shown(home: &Home, args: &[&str], term: &str, no_color: bool) -> String {
    let (mut command, user) = on_terminal(home, args, term, no_color);
    let mut child = command.spawn().unwrap();
    // Its ends of the terminal close with it: then reading ends.
    drop(command);
    let text = rest(BufReader::new(user));
    child.wait().unwrap();
    text
}

/// What is left to read; the end of a terminal is an error of reading.
fn rest(mut from: BufReader<File>) -> String {
    let mut bytes = Vec::new();
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the text switches a colour or style on or off: ESC [ numbers m.
fn is_styled(text: &str) -> bool {
    text.split("\x1b[").skip(1).any(|after| {
        after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    })
}

/// Commands with help, a wrong command line, an error, progress, results.
const COMMANDS: [&[&str]; 6] = [
    &["--help"],
    &["import", "--help"],
    &["get", "s"],
    &["get", "none", "x"],
    &["import", "s", "tree"],
    &["verify", "s"],
];

#[test]
fn colours_are_for_terminals_and_for_those_who_want_them() {
    let home = Home::new();
    home.file("tree/file", "x");
    home.ok(&["import", "s", "tree"]);
    assert!(is_styled(&shown(&home, &["--help"], "xterm", false)), "help has styles to leave out");
    assert!(is_styled("a\x1b[1;32mb") && is_styled("\x1b[m") && !is_styled("\x1b[2Km\r\x1b[1A"));
    for args in COMMANDS {
        for (term, no_color) in [("xterm", true), ("xterm-256color", true), ("dumb", false)] {
            let text = shown(&home, args, term, no_color);
            assert!(!text.is_empty() && !is_styled(&text), "{args:?} on {term}: {text:?}");
        }
    }
}

#[test]
fn a_pipe_gets_text_alone() {
    let home = Home::new();
    home.file("tree/file", "x");
    for args in COMMANDS {
        let mut command = home.command(args);
        let run = command.env("TERM", "xterm-256color").env_remove("NO_COLOR").output().unwrap();
        let all = [run.stdout, run.stderr].concat();
        assert!(!all.is_empty() && !all.iter().any(|b| matches!(b, 0x1b | b'\r')), "{args:?}");
    }
}

/// What a terminal shows of an import that is held up for longer than a line of progress
/// takes: the names of links fill the terminal, which is read only then.
fn slow_import(term: &str, no_color: bool) -> String {
    let home = Home::new();
    home.file("tree/z", "last in the walk");
    let long = "l".repeat(240);
    for i in 0..1000 {
        symlink("z", home.path(&format!("tree/{i:04}{long}"))).unwrap();
    }
    let (mut command, user) =
        on_terminal(&home, &["import", "s", "tree", "--verbose"], term, no_color);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut user = BufReader::new(user);
    let mut first = Vec::new();
    while !String::from_utf8_lossy(&first).contains("skipped: 0000") {
        assert!(user.read_until(b'\n', &mut first).unwrap() > 0);
    }
    thread::sleep(Duration::from_millis(5100));
    let text = String::from_utf8_lossy(&first).into_owned() + &rest(user);
    assert!(child.wait().unwrap().success() && text.contains("imported 1 files"), "{text}");
    text
}

#[test]
fn progress_is_a_bar_where_one_can_be_drawn_and_lines_elsewhere() {
    let bar = thread::spawn(|| slow_import("xterm", true));
    let lines = slow_import("dumb", false);
    assert!(lines.contains("holdall: 1 files, 0 MB, 0.0 MB/s"), "{lines}");
    assert!(!lines.contains('\x1b'), "{lines}");
    let bar = bar.join().unwrap();
    assert!(bar.contains("\x1b[2K") && !bar.contains("holdall: 1 files"), "{bar}");
    assert!(!is_styled(&bar), "{bar}");
}
