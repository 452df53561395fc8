//! Large pages of the system for memory that will hold many bytes.
//!
//! Owns: [`want_large_pages`]. Memory is given to a process page by page when it is first
//! touched, which costs about as much as reading those bytes from a fast device; in large pages
//! it comes in fewer, dearer pieces (2 MiB for 4 KiB, at five times less for a byte).
//!
//! The argument, for all `unsafe` here: the call is given addresses inside of memory that the
//! caller borrows to it. It says by what pages the system shall back them and changes neither
//! the bytes nor whether they may be used.

use std::mem::MaybeUninit;

/// From this length on it is worth a call; and below it allocators may keep memory that was
/// freed, and with it the wish, for other uses.
const LEAST: usize = 32 << 20;

/// Asks for large pages under `memory`, which should not have been touched yet, if it is of
/// 32 MiB at least. A hint: where the system has none to give, or none at all, nothing happens.
/// Cost: one call of the system.
pub fn want_large_pages(memory: &mut [MaybeUninit<u8>]) {
    let page = rustix::param::page_size();
    let skip = memory.as_ptr().align_offset(page);
    let len = memory.len().saturating_sub(skip) / page * page;
    if memory.len() < LEAST || len == 0 {
        return;
    }
    advise(&mut memory[skip..skip + len]);
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper takes borrowed memory; see the argument above")]
fn advise(memory: &mut [MaybeUninit<u8>]) {
    // SAFETY: the addresses are those of the slice, from a multiple of the page size on.
    let _ = unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise(_memory: &mut [MaybeUninit<u8>]) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the mapping that holds `address` is marked for large pages.
    #[cfg(target_os = "linux")]
    fn is_marked(address: usize) -> Option<bool> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let mut inside = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let hex = |text: &str| usize::from_str_radix(text, 16).ok();
            if let Some((Some(start), Some(end))) = range.map(|(a, b)| (hex(a), hex(b))) {
                inside = (start..end).contains(&address);
            } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                return Some(flags.split(' ').any(|flag| flag == "hg"));
            }
        }
        None
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn much_memory_is_marked_and_little_is_not() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        for (bytes, due) in [(LEAST + 5000, true), (LEAST / 2, false)] {
            let mut memory: Vec<u8> = Vec::with_capacity(bytes);
            want_large_pages(memory.spare_capacity_mut());
            let middle = memory.as_ptr() as usize + bytes / 2;
            assert_eq!(is_marked(middle), Some(due), "{bytes}");
            memory.resize(bytes, 7);
            assert!(memory.iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn nothing_is_too_short() {
        want_large_pages(&mut []);
        want_large_pages(&mut [MaybeUninit::new(1); 10]);
    }
}
