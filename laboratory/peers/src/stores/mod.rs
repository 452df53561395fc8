//! One adapter for each store, and what they share.
//!
//! Owns: the list of makers, the versions of the report and the edit of a whole value, which
//! every store without a splice of its own needs. An adapter translates and does nothing
//! else: no cache, no retry and no batching that the store does not have itself.

mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;

use anyhow::{Context, Result, ensure};
use holdall_bench::peer::Maker;

/// All makers of this crate, in the order of the report.
pub fn makers() -> Vec<Box<dyn Maker>> {
    vec![
        Box::new(sqlite::Sqlite),
        Box::new(lmdb::Lmdb),
        Box::new(redb::Redb),
        Box::new(fjall::Fjall::plain()),
        Box::new(fjall::Fjall::blobs()),
        #[cfg(feature = "rocksdb")]
        Box::new(rocksdb::RocksDb::plain()),
        #[cfg(feature = "rocksdb")]
        Box::new(rocksdb::RocksDb::blobs()),
    ]
}

/// The version of a dependency as it was built: from the laboratory's lock file, so that the
/// report cannot differ from the build.
fn locked(package: &str) -> &'static str {
    let lock = include_str!("../../../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let Some((_, after)) = lock.split_once(&entry) else {
        return "of unknown version";
    };
    after.split('"').next().unwrap_or("of unknown version")
}

/// `old` with `delete` bytes at `offset` replaced by `insert`. Costs a copy of the whole.
fn spliced(old: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<Vec<u8>> {
    let start = usize::try_from(offset)?;
    let end = start.checked_add(usize::try_from(delete)?).context("offset overflows")?;
    ensure!(end <= old.len(), "splice of {start}..{end} in {} bytes", old.len());
    let mut new = Vec::with_capacity(old.len() - (end - start) + insert.len());
    new.extend_from_slice(&old[..start]);
    new.extend_from_slice(insert);
    new.extend_from_slice(&old[end..]);
    Ok(new)
}

/// Fills `out` from `value`'s byte `offset` on.
fn copy_range(value: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
    let start = usize::try_from(offset)?;
    let range = value.get(start..).and_then(|rest| rest.get(..out.len()));
    out.copy_from_slice(range.context("range beyond the object's end")?);
    Ok(())
}

/// Makes `out` a copy of `value`.
fn copy_whole(value: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(value);
}

/// Megabytes of 2^20 for the report.
fn mib(bytes: u64) -> u64 {
    bytes >> 20
}

#[cfg(test)]
mod tests {
    use super::{copy_range, locked, spliced};

    #[test]
    fn versions_come_from_the_lock_file() {
        for package in ["rusqlite", "heed", "redb", "fjall", "rocksdb"] {
            assert!(locked(package).starts_with(|c: char| c.is_ascii_digit()), "{package}");
        }
        assert_eq!(locked("no-such-package"), "of unknown version");
    }

    #[test]
    fn splices_and_ranges_keep_to_the_value() {
        assert_eq!(spliced(b"abcdef", 2, 3, b"XY").unwrap(), b"abXYf");
        assert_eq!(spliced(b"abc", 3, 0, b"d").unwrap(), b"abcd");
        assert!(spliced(b"abc", 2, 2, b"").is_err());
        let mut out = [0; 2];
        copy_range(b"abcd", 2, &mut out).unwrap();
        assert_eq!(&out, b"cd");
        assert!(copy_range(b"abcd", 3, &mut out).is_err());
    }
}
