//! Who has a file open, as far as the system tells.
//!
//! Owns: [`Opener`]. `flock`, which keeps others out, does not say who holds it. So each open for
//! writing also takes a lock of POSIX on one byte far behind the end, for which the system names the process.
//! It informs and guards nothing: a process loses it when it closes any descriptor of the file.

use std::fmt;
use std::fs::File;
use std::time::{Duration, SystemTime};

use crate::record_lock::{self, Kind, Owner};

/// The byte that is locked: no file is that long.
const BYTE: u64 = i64::MAX as u64 - 1;

/// A process that has a file open for writing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opener {
    /// Its number.
    pub process: u32,
    /// The command that it runs, if the system tells.
    pub command: Option<String>,
    /// When it started, if the system tells.
    pub started: Option<SystemTime>,
}

impl fmt::Display for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)?;
        if let Some(command) = &self.command {
            write!(f, " ({command})")?;
        }
        let age = self.started.and_then(|at| SystemTime::now().duration_since(at).ok());
        match age {
            Some(age) => write!(f, ", which started {} ago", rounded(age)),
            None => Ok(()),
        }
    }
}

/// An age as a person says it.
fn rounded(age: Duration) -> String {
    match age.as_secs() {
        0..120 => format!("{:.1} s", age.as_secs_f64()),
        s @ 120..7200 => format!("{} min", s / 60),
        s @ 7200..172_800 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// Lets others find out that this process has the file open for writing. What fails is no error.
pub(crate) fn announce(file: &File) {
    record_lock::set(file, Owner::Process, Kind::Write, BYTE, 1);
}

/// Another process that has the file open for writing; `None` if there is none, or the system does not tell.
pub(crate) fn of(file: &File) -> Option<Opener> {
    let process = record_lock::find(file, Owner::Process, Kind::Write, BYTE, 1)?.process?;
    Some(Opener { process, command: command_of(process), started: start_of(process) })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn command_of(process: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{process}/comm")).ok()?;
    let name = String::from_utf8_lossy(&name).trim_end().to_owned();
    // It goes to terminals, and the process has chosen it.
    Some(name.chars().map(|c| if c.is_control() { '?' } else { c }).collect())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn start_of(process: u32) -> Option<SystemTime> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The name, in parentheses, may have anything in it. The field is the 22nd, the 20th behind it.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let started = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let age = now.tv_sec as f64 + now.tv_nsec as f64 / 1e9 - started;
    SystemTime::now().checked_sub(Duration::try_from_secs_f64(age.max(0.0)).ok()?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn command_of(_process: u32) -> Option<String> {
    None
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn start_of(_process: u32) -> Option<SystemTime> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_command_and_a_start() {
        let process = std::process::id();
        let own = Opener { process, command: command_of(process), started: start_of(process) };
        let text = own.to_string();
        assert!(text.starts_with(&format!("process {process}")), "{text}");
        if cfg!(target_os = "linux") {
            assert!(own.command.is_some(), "{text}");
            let age = own.started.unwrap().elapsed().unwrap();
            assert!(age < Duration::from_secs(3600), "{text}");
        }
    }

    #[test]
    fn an_own_lock_is_not_told() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(of(&file), None);
        announce(&file);
        assert_eq!(of(&file), None);
    }
}
