//! Paths that lead to descriptors, devices, pipes and links: written to and read from as they
//! are, never replaced.

use std::fs;

use crate::support::{Home, bytes, shell};

/// As `shell`, for a line that ends with 0 and says nothing.
fn done(home: &Home, line: &str) {
    let run = shell(home, line);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{line}");
}

fn with_object() -> Home {
    let home = Home::new();
    assert_eq!(home.feed(&["put", "s", "a"], b"A\n").code, 0);
    std::os::unix::fs::symlink("/dev/stdout", home.path("out")).unwrap();
    std::os::unix::fs::symlink("/dev/fd", home.path("fds")).unwrap();
    home
}

#[test]
fn a_descriptor_named_for_output_is_appended_to() {
    let home = with_object();
    let read = || fs::read_to_string(home.path("f")).unwrap();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "out", "fds/1", "-"] {
        home.file("f", "one\n");
        done(&home, &format!("holdall get s a -o {name} >> f"));
        assert_eq!(read(), "one\nA\n", "{name}");
        // Without appending, what comes next goes behind it all the same.
        done(&home, &format!("{{ echo 1; holdall get s a -o {name}; echo 2; }} > f"));
        assert_eq!(read(), "1\nA\n2\n", "{name}");
        assert_eq!(shell(&home, &format!("holdall get s a -o {name} | cat")).out, b"A\n");
    }
    assert!(home.path("out").is_symlink());
    done(&home, "{ echo 1 >&7; holdall get s a -o /dev/fd/7; echo 2 >&7; } 7> f");
    assert_eq!(read(), "1\nA\n2\n");
    done(&home, "echo 0 > f; holdall get s a -o /proc/self/fd/2 2>> f");
    assert_eq!(read(), "0\nA\n");
    done(&home, "holdall get s a -o /dev/stderr 2>> f");
    assert_eq!(read(), "0\nA\nA\n");
    // Of another process.
    done(&home, "exec 3> f; p=$$; (holdall get s a -o /proc/$p/fd/3); echo B >&3");
    assert_eq!(read(), "A\nB\n");
    let run = shell(&home, "holdall get s a -o /dev/fd/9");
    run.failed(1, "/dev/fd/9: No such file or directory");
    let run = shell(&home, "holdall get s a -o /dev/fd/0 < f");
    run.failed(1, "/dev/fd/0: Bad file descriptor");
    assert_eq!(read(), "A\nB\n");
}

#[test]
fn a_descriptor_of_the_store_is_refused() {
    let home = with_object();
    let before = fs::read(home.path("s")).unwrap();
    for redirect in ["3>> s", "3<> s"] {
        let run = shell(&home, &format!("holdall get s a -o /dev/fd/3 {redirect}"));
        run.failed(1, "/dev/fd/3 belongs to the store");
        let run = shell(&home, &format!("holdall put s b /dev/fd/3 {redirect}"));
        run.failed(1, "/dev/fd/3 belongs to the store");
    }
    assert!(fs::read(home.path("s")).unwrap() == before);
}

#[test]
fn a_report_goes_to_a_descriptor_alone() {
    let home = with_object();
    for name in ["/dev/stdout", "-"] {
        done(&home, &format!("echo '<!--1-->' > f; holdall frag s --svg {name} >> f"));
        let drawn = fs::read_to_string(home.path("f")).unwrap();
        assert!(drawn.starts_with("<!--1-->\n<svg") && drawn.ends_with("</svg>\n"), "{drawn}");
    }
    done(&home, "echo 1 > f; holdall frag s --html /dev/fd/3 3>> f > text");
    let page = fs::read_to_string(home.path("f")).unwrap();
    assert!(page.starts_with("1\n<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(fs::read_to_string(home.path("text")).unwrap().starts_with("score"));
    assert!(!home.path("-").exists());
}

#[test]
fn devices_and_pipes_are_written_to() {
    use std::os::unix::fs::FileTypeExt;
    let home = with_object();
    done(&home, "mkfifo pipe; cat pipe > f & holdall get s a -o pipe; wait");
    assert_eq!(fs::read(home.path("f")).unwrap(), b"A\n");
    done(&home, "cat pipe > f & holdall frag s --svg pipe > text; wait");
    assert!(fs::read_to_string(home.path("f")).unwrap().ends_with("</svg>\n"));
    let kind = |path: &str| fs::symlink_metadata(home.path(path)).unwrap().file_type();
    assert!(kind("pipe").is_fifo());
    done(&home, "holdall get s a -o /dev/null && holdall frag s --svg /dev/null > text");
    assert!(kind("/dev/null").is_char_device());
    let run = shell(&home, "holdall get s a -o /dev/full");
    run.failed(6, "/dev/full: No space left on device");
}

#[test]
fn a_link_keeps_pointing_to_the_file_that_is_replaced() {
    let home = with_object();
    home.file("dir/target", "a longer text than the object");
    for (link, to) in [("there", "dir/target"), ("twice", "there"), ("not-yet", "dir/new")] {
        std::os::unix::fs::symlink(to, home.path(link)).unwrap();
        home.ok(&["get", "s", "a", "-o", link]);
        assert!(home.path(link).is_symlink(), "{link}");
        assert_eq!(fs::read(home.path(link)).unwrap(), b"A\n", "{link}");
    }
    assert_eq!(fs::read(home.path("dir/new")).unwrap(), b"A\n");
    std::os::unix::fs::symlink("loop", home.path("loop")).unwrap();
    home.fails(&["get", "s", "a", "-o", "loop"], 1, "loop");
    assert_eq!(fs::read_dir(home.path("dir")).unwrap().count(), 2, "no temporaries are left");
}

#[test]
fn a_descriptor_named_for_input_is_read_on() {
    let home = with_object();
    let mut lines = b"first\n".to_vec();
    lines.extend(bytes(3, 5 << 20));
    home.file("f", &lines);
    let rest = &lines[6..];
    for name in ["/dev/stdin", "/dev/fd/0", "fds/0", "-", ""] {
        done(&home, &format!("{{ read line; holdall put s b {name} > oid; }} < f"));
        assert!(home.ok(&["get", "s", "b"]) == rest, "{name:?}");
        done(&home, &format!("{{ read line; holdall append s b {name} > oid; }} < f"));
        assert!(home.ok(&["get", "s", "b"]) == [rest, rest].concat(), "{name:?}");
        done(&home, &format!("cat f | holdall put s b {name} > oid"));
        assert!(home.ok(&["get", "s", "b"]) == lines, "{name:?}");
    }
    done(&home, "{ read line <&5; holdall put s b /dev/fd/5 > oid; } 5< f");
    assert!(home.ok(&["get", "s", "b"]) == rest);
    // A file whose size says nothing.
    done(&home, "holdall put s v /proc/version > oid && holdall append s v /proc/version > oid");
    let version = fs::read("/proc/version").unwrap();
    assert_eq!(home.ok(&["get", "s", "v"]), [&version[..], &version].concat());
}
