//! Which rows a gate is asked for.
//!
//! Owns: [`Pattern`] and how it is written: `WORKLOAD`, `WORKLOAD/ROW` or
//! `WORKLOAD/ROW/STORE`.

use anyhow::{Result, ensure};
use std::fmt;
use std::str::FromStr;

/// Rows of one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// Its id: `w2`.
    pub workload: String,
    /// How the rows' names begin; empty for all.
    row: String,
    /// What the store's name contains, in any case; empty for all.
    store: String,
}

impl Pattern {
    /// Whether it asks for this store.
    #[must_use]
    pub fn takes_store(&self, store: &str) -> bool {
        store.to_lowercase().contains(&self.store.to_lowercase())
    }

    /// Whether it asks for this row.
    #[must_use]
    pub fn takes(&self, workload: &str, row: &str, store: &str) -> bool {
        self.workload == workload && row.starts_with(&self.row) && self.takes_store(store)
    }
}

impl FromStr for Pattern {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split('/').map(str::trim);
        let mut part = || parts.next().unwrap_or_default().to_owned();
        let found = Self { workload: part().to_lowercase(), row: part(), store: part() };
        ensure!(!found.workload.is_empty(), "{text:?} names no workload");
        ensure!(
            parts.next().is_none(),
            "{text:?} has more than WORKLOAD/ROW/STORE; no row's name contains a slash"
        );
        Ok(found)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, row, store } = self;
        match (row.is_empty(), store.is_empty()) {
            (true, true) => f.write_str(workload),
            (false, true) => write!(f, "{workload}/{row}"),
            (_, false) => write!(f, "{workload}/{row}/{store}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_are_read_and_written() {
        let of = |text: &str| text.parse::<Pattern>().unwrap();
        for text in ["w2", "w2/8 threads", "w2/8 threads/by oid", "w8//by name"] {
            assert_eq!(of(text).to_string(), text);
        }
        assert!(of("w2").takes("w2", "1 thread", "Holdall by name"));
        assert!(of("W2/8/OID").takes("w2", "8 threads", "Holdall by OID"));
        assert!(!of("w2/8/OID").takes("w2", "8 threads", "Holdall by name"));
        assert!(!of("w2/8").takes("w2", "1 thread", "Holdall by OID"));
        assert!(!of("w1").takes("w10", "refill", "Holdall by OID"));
        assert!("".parse::<Pattern>().is_err() && "a/b/c/d".parse::<Pattern>().is_err());
    }
}
