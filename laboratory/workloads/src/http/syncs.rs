//! Whether a server syncs before it answers a put, by its system calls.
//!
//! A short run of single puts under `strace`, apart from all measurements. A put counts as synced
//! if a sync ended between its first byte and its answer: one that follows later counts not.

use super::client::Client;
use super::content::Content;
use super::server::Server;
use anyhow::{Result, bail};
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};

/// What is traced: syncs, and what opens files that sync with each write.
const CALLS: &str = "trace=fsync,fdatasync,sync,syncfs,msync,open,openat,openat2,pwritev2";
const SYNCS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "msync"];

/// What was seen of a server's syncs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Syncs {
    /// Not counted, and why.
    NotCounted(String),
    /// Counted.
    Counted {
        /// Puts.
        puts: usize,
        /// Of these, with a sync before their answer.
        synced: usize,
        /// Syncs in all.
        calls: usize,
    },
}

impl Syncs {
    /// Whether puts were answered without a sync.
    pub fn missing(&self) -> bool {
        matches!(self, Syncs::Counted { puts, synced, .. } if synced < puts)
    }

    /// In words.
    pub fn text(&self) -> String {
        match self {
            Syncs::NotCounted(why) => format!("syncs not counted: {why}"),
            Syncs::Counted { puts, synced, calls } => {
                let each = *calls as f64 / (*puts).max(1) as f64;
                format!(
                    "{synced} of {puts} single puts synced before the answer, {each:.1} syncs each"
                )
            }
        }
    }
}

/// Whether `strace` is there.
pub fn strace() -> bool {
    let asked =
        Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Puts objects one after the other under `strace` and looks at each one's syncs.
///
/// # Errors
/// Those of the puts and of the system.
pub async fn count(server: &Server, contents: &[Content], trace: &Path) -> Result<Syncs> {
    if !strace() {
        return Ok(Syncs::NotCounted("strace is not installed".into()));
    }
    let mut client = Client::new(server.address)?;
    // What a server does once, with its first object, is none of a put's.
    if let Some(first) = contents.first() {
        client.put("traced/first", first.clone()).await?;
    }
    let Some(mut tracer) = attach(server.pid(), trace).await? else {
        return Ok(Syncs::NotCounted("strace may not attach".into()));
    };
    let mut puts = Vec::with_capacity(contents.len());
    let mut failed = None;
    for (i, content) in contents.iter().enumerate() {
        let begun = now();
        if let Err(e) = client.put(&format!("traced/{i}"), content.clone()).await {
            failed = Some(e);
            break;
        }
        puts.push((begun, now()));
    }
    detach(&mut tracer)?;
    if let Some(e) = failed {
        return Err(e);
    }
    let ends = sync_ends(&fs::read_to_string(trace)?);
    let synced = puts.iter().filter(|(b, e)| ends.iter().any(|t| b <= t && t <= e)).count();
    if synced < puts.len() && keeps_sync_file(server.pid()) {
        return Ok(Syncs::NotCounted("a file is kept open that syncs with each write".into()));
    }
    Ok(Syncs::Counted { puts: puts.len(), synced, calls: ends.len() })
}

/// Seconds since 1970, as `strace -ttt` has them.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Starts `strace` on all threads of a process; none if it may not.
async fn attach(pid: u32, trace: &Path) -> Result<Option<Child>> {
    let said = File::create(trace.with_extension("said"))?;
    let mut command = Command::new("strace");
    command.args(["-f", "-ttt", "-T", "-e", CALLS, "-p", &pid.to_string(), "-o"]).arg(trace);
    let mut tracer = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn()?;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if tracer.try_wait()?.is_some() {
            return Ok(None);
        }
        if all_traced(pid) {
            return Ok(Some(tracer));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    detach(&mut tracer)?;
    Ok(None)
}

/// Whether each thread of a process is traced.
fn all_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|pid| pid.trim() != "0")
    })
}

fn detach(tracer: &mut Child) -> Result<()> {
    if let Some(pid) = i32::try_from(tracer.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::INT)?;
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if tracer.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    tracer.kill()?;
    tracer.wait()?;
    bail!("strace does not end")
}

/// Whether a process has a file open with O_DSYNC, whose writes are syncs that no call shows.
fn keeps_sync_file(pid: u32) -> bool {
    const O_DSYNC: u64 = 0o10_000;
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
    files.flatten().any(|file| {
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|f| u64::from_str_radix(f.trim(), 8).ok());
        flags.is_some_and(|flags| flags & O_DSYNC != 0)
    })
}

/// When each sync of a trace ended.
fn sync_ends(trace: &str) -> Vec<f64> {
    trace.lines().filter_map(sync_end).collect()
}

/// When the sync of this line ended; none if the line is another call or its beginning.
fn sync_end(line: &str) -> Option<f64> {
    let (_thread, rest) = line.split_once(' ')?;
    let (time, call) = rest.trim_start().split_once(' ')?;
    let time: f64 = time.parse().ok()?;
    if call.contains("<unfinished") || call.contains("= -1 ") {
        return None;
    }
    if let Some(resumed) = call.strip_prefix("<... ") {
        // The line is written when the call ends.
        return SYNCS.contains(&resumed.split(' ').next()?).then_some(time);
    }
    let name = call.split('(').next()?;
    let opened = name.starts_with("open") && (call.contains("O_DSYNC") || call.contains("O_SYNC"));
    let written = name == "pwritev2" && (call.contains("RWF_DSYNC") || call.contains("RWF_SYNC"));
    if !SYNCS.contains(&name) && !opened && !written {
        return None;
    }
    let lasted = call.rsplit_once('<').and_then(|(_, t)| t.trim_end_matches('>').parse().ok());
    Some(time + lasted.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_syncs_are_read_from_a_trace() {
        let trace = "\
12  100.5 fdatasync(4)                  = 0 <0.25>
12  101.0 fsync(5 <unfinished ...>
13  101.1 openat(AT_FDCWD, \"a\", O_RDONLY) = 7 <0.1>
12  102.0 <... fsync resumed>)           = 0 <1.0>
13  103.0 openat(AT_FDCWD, \"b\", O_WRONLY|O_DSYNC) = 7 <0.5>
13  104.0 pwritev2(7, [], 1, 0, RWF_DSYNC) = 9 <0.5>
13  105.0 fsync(9)                      = -1 EBADF (Bad file descriptor) <0.1>
13  106.0 +++ exited with 0 +++
";
        assert_eq!(sync_ends(trace), [100.75, 102.0, 103.5, 104.5]);
    }

    #[test]
    fn a_put_without_a_sync_is_told() {
        let seen = |synced| Syncs::Counted { puts: 4, synced, calls: 4 };
        assert!(seen(3).missing() && !seen(4).missing());
        assert!(!Syncs::NotCounted("no".into()).missing());
        assert!(seen(4).text().contains("4 of 4"));
    }
}
