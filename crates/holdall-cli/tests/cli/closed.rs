//! Standard streams that are closed, or open the wrong way: a command that needs one refuses
//! before anything happens.

use std::fs;

use crate::support::{Home, shell};

fn with_object() -> Home {
    let home = Home::new();
    assert_eq!(home.feed(&["put", "s", "k"], b"important").code, 0);
    home
}

#[test]
fn a_closed_input_is_not_an_empty_one() {
    let home = with_object();
    home.file("names", "k\n");
    for line in [
        "holdall put s k <&-",
        "holdall put s k - <&-",
        "holdall put s k /dev/stdin <&-",
        "holdall put s k /dev/fd/0 <&-",
        "holdall put s k /proc/self/fd/0 <&-",
        "holdall put new k <&-",
        "holdall append s k <&-",
        "holdall insert s k --at 0 <&-",
        "holdall replace s k --at 0 <&-",
        "holdall rm s --from - <&-",
        "holdall rm s --from - -0 <&-",
        "holdall rm s --from /dev/stdin <&-",
    ] {
        let run = shell(&home, line);
        run.failed(1, if line.contains("fd") || line.contains("stdin") { "Bad" } else { "closed" });
        assert_eq!(home.ok(&["get", "s", "k"]), b"important", "{line}");
    }
    assert!(!home.path("new").exists());
    // What needs no input asks for none, and an empty one stays one.
    assert_eq!(shell(&home, "holdall put s other names <&- && holdall ls s <&-").code, 0);
    assert_eq!(shell(&home, "holdall put s k < /dev/null && holdall put s e <> /dev/null").code, 0);
    assert_eq!(home.ok(&["get", "s", "k"]), b"");
}

#[test]
fn what_cannot_be_said_is_not_done() {
    let home = with_object();
    home.file("names", "k\n");
    home.file("tree/a", "a");
    let before = fs::read(home.path("s")).unwrap();
    let commands = [
        "get s k",
        "get s k -o -",
        "ls s",
        "ls s -0",
        "ls s --json",
        "stat s",
        "frag s",
        "verify s",
        "inspect s volume",
        "put s k names",
        "put new k names",
        "put s k names --json",
        "append s k names",
        "truncate s k 0",
        "delete-range s k --range 0:1",
        "cp s k l",
        "rm s k --json",
        "rm s --prefix k",
        "rm s --from names",
        "import s tree",
        "import new tree",
        "export s out",
        "defrag s",
        "compact s",
        "--help",
        "--version",
        "put --help",
    ];
    for command in commands {
        for redirect in [">&-", "1< names"] {
            let run = shell(&home, &format!("holdall {command} {redirect}"));
            run.failed(1, "standard output is closed");
        }
    }
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        shell(&home, &format!("holdall get s k -o {name} >&-")).failed(1, "Bad file descriptor");
    }
    assert_eq!(shell(&home, "holdall get s k -o /dev/stderr 2>&-").code, 1);
    assert!(fs::read(home.path("s")).unwrap() == before);
    assert!(!home.path("new").exists() && !home.path("out").exists());
    // What says nothing does its work, and what is to be thrown away is.
    assert_eq!(shell(&home, "holdall get s k -o copy >&- && holdall mv s k l >&-").code, 0);
    assert_eq!(shell(&home, "holdall create t >&- && holdall rm s l >&-").code, 0);
    assert_eq!(shell(&home, "holdall put s n names <> /dev/null 1<> /dev/null").code, 0);
    assert_eq!(fs::read(home.path("copy")).unwrap(), b"important");
    assert_eq!(home.ok(&["ls", "s"]), b"n\n");
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    for args in ["--help", "--version", "put --help", "help"] {
        let run = shell(&home, &format!("holdall {args} > /dev/full"));
        run.failed(6, "standard output");
        assert_eq!(shell(&home, &format!("holdall {args} | head -c 0")).code, 0);
    }
}
