//! A temporary directory to run the command in, and what to expect of a run.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub const HOLDALL: &str = env!("CARGO_BIN_EXE_holdall");

/// A directory of its own for one test.
pub struct Home(TempDir);

impl Home {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    /// Writes a file, directories included.
    pub fn file(&self, below: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(HOLDALL);
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Runs the command and returns whatever comes of it; a panic fails the test.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        Run::of(self.command(args).output().unwrap())
    }

    /// As `run`, with bytes on standard input.
    pub fn feed<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Run {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A command that refuses its arguments reads nothing.
                let _ = stdin.write_all(input);
            });
            Run::of(child.wait_with_output().unwrap())
        })
    }

    /// Runs a command that must succeed and say nothing but progress on standard error.
    pub fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> Vec<u8> {
        let run = self.run(args);
        let said: Vec<_> = run.err.lines().filter(|line| !line.contains(" MB/s")).collect();
        assert!(run.code == 0 && said.is_empty(), "{}: {} {said:?}", show(args), run.code);
        run.out
    }

    /// As `ok`, output read as one JSON value.
    pub fn json<S: AsRef<OsStr>>(&self, args: &[S]) -> Value {
        serde_json::from_slice(&self.ok(args)).unwrap()
    }

    /// Runs a command that must fail with this code and one line that holds `message`.
    pub fn fails<S: AsRef<OsStr>>(&self, args: &[S], code: i32, message: &str) {
        self.run(args).failed(code, message);
    }
}

/// Runs a line of a shell, where `holdall` is the command.
pub fn shell(home: &Home, line: &str) -> Run {
    let script = format!("holdall() {{ '{HOLDALL}' \"$@\"; }}\n{line}");
    let mut command = Command::new("bash");
    Run::of(command.args(["-c", &script]).current_dir(home.path("")).output().unwrap())
}

fn show<S: AsRef<OsStr>>(args: &[S]) -> String {
    args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned() + " ").collect()
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: Vec<u8>,
    pub err: String,
}

impl Run {
    pub fn of(output: Output) -> Self {
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(!err.contains("panicked"), "{err}");
        Self { code: output.status.code().unwrap_or(-1), out: output.stdout, err }
    }

    /// Checks an error: its code, and one line `holdall: <what>: <what to do>`.
    pub fn failed(&self, code: i32, message: &str) {
        assert_eq!(self.code, code, "{}", self.err);
        let line = self.err.strip_suffix('\n').unwrap_or_default();
        assert!(line.starts_with("holdall: ") && !line.contains('\n'), "{:?}", self.err);
        assert!(line.matches(": ").count() >= 2, "no hint in {line:?}");
        assert!(line.contains(message), "{message:?} is not in {line:?}");
    }

    /// Checks that the command line was refused.
    pub fn usage(&self) {
        assert_eq!(self.code, 2, "{}", self.err);
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }
}

/// `len` bytes that differ for each `seed` and do not repeat within a page.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// The store has no fault, by its own check.
pub fn sound(home: &Home, store: &str) {
    let report = home.json(&["verify", store, "--json"]);
    assert_eq!(report["sound"], true, "{report}");
}

/// Every regular file below `root`: path relative to it, and content; in order.
pub fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                let name = entry.path().strip_prefix(root).unwrap().to_owned();
                found.push((name, fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Tells a thread to end, also when the test fails.
pub struct EndOnDrop<'f>(pub &'f AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
