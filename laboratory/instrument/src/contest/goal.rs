//! What a contestant is to reach in a row, against whom. Owns nothing.

/// Which figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Throughput or time.
    Value,
    /// Median latency.
    P50,
    /// 99th percentile of latency.
    P99,
    /// Bytes on disk ÷ logical bytes.
    Disk,
}

/// Against what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Than {
    /// As it is.
    Nothing,
    /// The best of the peers; of those whose names begin so, if names are given.
    Best(&'static [&'static str]),
    /// The best of the peers but those whose names begin so.
    BestBut(&'static [&'static str]),
    /// The bare machine.
    Bare,
    /// The same store's figure of another row.
    Own(String),
}

/// How far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Bound {
    /// Whether `value` is within.
    pub fn met(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(bound) => value >= bound,
            Bound::AtMost(bound) => value <= bound,
        }
    }

    /// As shown in tables.
    pub fn text(self) -> String {
        match self {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        }
    }
}

/// One goal.
#[derive(Debug, Clone, PartialEq)]
pub struct Goal {
    /// The store it is set to.
    pub who: &'static str,
    /// The row.
    pub row: String,
    /// Which figure of it.
    pub what: What,
    /// Against what.
    pub than: Than,
    /// How far.
    pub bound: Bound,
}

impl Goal {
    /// A goal for a row's main figure.
    pub fn new(who: &'static str, row: impl Into<String>, than: Than, bound: Bound) -> Self {
        Self { who, row: row.into(), what: What::Value, than, bound }
    }

    /// Sets which figure.
    #[must_use]
    pub fn of(mut self, what: What) -> Self {
        self.what = what;
        self
    }
}
