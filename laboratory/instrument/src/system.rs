//! What the operating system reports and does: written bytes, memory, caches.

use anyhow::{Context as _, Result, bail};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

/// Bytes written so far.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// Handed over by this process in write calls: exact.
    pub calls: u64,
    /// Received by the block device, from whomever: on a shared machine an upper bound.
    pub device: u64,
}

impl Written {
    /// Counts so far; what is written to `dir`'s file system is brought to the device first.
    /// (`write_bytes` of /proc/self/io is not used: seen to count pages twice that the device
    /// received once.)
    pub fn now(dir: &Path) -> Result<Self> {
        sync_all(dir)?;
        let calls = field(&fs::read_to_string("/proc/self/io")?, "wchar:")?;
        let dev = fs::metadata(dir)?.dev();
        let (major, minor) = (rustix::fs::major(dev), rustix::fs::minor(dev));
        let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
        // Without a block device below there is nothing to count.
        let sectors = match stat {
            Ok(stat) => stat.split_whitespace().nth(6).map_or(Ok(0), str::parse)?,
            Err(_) => 0_u64,
        };
        Ok(Self { calls, device: sectors * 512 })
    }

    /// Bytes since `before` per byte of `logical`: in calls, and at the device.
    pub fn shares_since(self, before: Self, logical: f64) -> (f64, f64) {
        let (calls, device) = (self.calls - before.calls, self.device - before.device);
        (calls as f64 / logical, device as f64 / logical)
    }
}

/// The most memory that process `pid` ever had resident, in bytes.
pub fn peak_memory(pid: u32) -> Result<u64> {
    Ok(field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmHWM:")? * 1024)
}

/// Bytes resident now in this process.
///
/// # Errors
/// None if /proc is.
pub fn resident() -> Result<u64> {
    Ok(field(&fs::read_to_string("/proc/self/status")?, "VmRSS:")? * 1024)
}

/// Lets [`peak_memory`] of this process begin anew, if the system allows; else it goes on
/// from the process's start.
pub fn forget_peak_memory() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn field(text: &str, name: &str) -> Result<u64> {
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix(name) {
            let digits: String = rest.trim().chars().take_while(char::is_ascii_digit).collect();
            return Ok(digits.parse()?);
        }
    }
    bail!("no field {name}")
}

/// Waits for a child and returns the most memory it had resident, in bytes. Looked at every
/// few milliseconds: the figure only grows, what is missed is its last moments.
pub fn wait_and_watch(child: &mut Child) -> Result<u64> {
    let mut peak = 0;
    loop {
        if let Ok(now) = peak_memory(child.id()) {
            peak = peak.max(now);
        }
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("a child process ended with {status}");
            }
            return Ok(peak);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Makes all of a file system durable, so that work of before is not measured later.
pub fn sync_all(dir: &Path) -> Result<()> {
    rustix::fs::syncfs(File::open(dir)?).context("syncing the file system")
}

/// As [`drop_caches`], for all files below `dir`.
///
/// # Errors
/// Those of the file system.
pub fn drop_caches_below(dir: &Path) -> Result<&'static str> {
    let (mut dirs, mut files) = (vec![dir.to_owned()], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let list = if entry.file_type()?.is_dir() { &mut dirs } else { &mut files };
            list.push(entry.path());
        }
    }
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    drop_caches(dir, &files)
}

/// Removes `paths`, if there, from the page cache: of the whole machine if we may, else
/// of these files. Returns which.
pub fn drop_caches(dir: &Path, paths: &[&Path]) -> Result<&'static str> {
    sync_all(dir)?;
    for path in paths {
        if let Ok(file) = File::open(path) {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(match fs::write("/proc/sys/vm/drop_caches", "1") {
        Ok(()) => "caches of the machine dropped",
        Err(_) => "caches of the files dropped",
    })
}

/// Writes to `bytes` of memory and frees it again. A virtual machine may have handed idle
/// memory back to its host: the first to take it pays, and it should not be one side.
pub fn touch_memory(bytes: usize) {
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    memory.resize(bytes, 1);
    std::hint::black_box(&memory);
}

/// Processor, memory, kernel, file system of `dir` and the load, in one line.
pub fn describe(dir: &Path) -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{}, load {load} at the start", machine(dir))
}

/// The same without what changes from run to run.
pub fn machine(dir: &Path) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|l| l.strip_prefix("model name\t: ")).unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = field(&read("/proc/meminfo"), "MemTotal:").unwrap_or(0) / 1024;
    let kernel = read("/proc/sys/kernel/osrelease");
    // What stands behind the digits is often a name of the machine's owner.
    let kernel = kernel.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
    let kind = file_system(dir, &read("/proc/mounts"));
    format!("{model}, {cores} cores, {memory} MiB, Linux {kernel}, {kind}")
}

/// Type of the file system that `dir` is on: the longest mount point that it lies under.
fn file_system(dir: &Path, mounts: &str) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let under = fields.filter(|f| f.len() > 2 && dir.starts_with(f[1]));
    let longest = under.max_by_key(|f| f[1].len());
    longest.map_or("unknown".into(), |f| f[2].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc() {
        assert_eq!(field("a: 1\nVmHWM:\t  12 kB\n", "VmHWM:").unwrap(), 12);
        assert!(field("a: 1", "b:").is_err());
        assert!(peak_memory(std::process::id()).unwrap() > 0);
    }

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "/dev/a / ext4 rw\nproc /proc proc rw\n";
        assert_eq!(file_system(Path::new("/proc"), mounts), "proc");
        assert_eq!(file_system(Path::new("/"), mounts), "ext4");
    }
}
