//! Read calls of the calling thread, and what they fetched, as the kernel counts them. Owns no
//! state.

use std::fs;

/// Calls that read from files so far, `None` if the kernel keeps no count. What a mapping or a
/// socket gives is not among them.
#[must_use]
pub fn reads() -> Option<u64> {
    count("syscr: ")
}

/// Bytes that the thread had fetched from devices so far, `None` if the kernel keeps no count.
#[must_use]
pub fn fetched() -> Option<u64> {
    count("read_bytes: ")
}

fn count(what: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix(what)?.parse().ok())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_read_is_counted() {
        let Some(before) = super::reads() else { return };
        std::fs::read("/proc/self/stat").unwrap();
        assert!(super::reads().unwrap() > before);
    }
}
