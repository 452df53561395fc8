//! What each store has done, for Prometheus.
//!
//! Owns: the names of these figures, and how times are divided into buckets.

use super::Of;
use holdall::{Checkpoints, Distribution, Metrics};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fmt::Error;

/// Times are divided at 2¹⁴ − 1 ns, 16 µs, and four times as much up to 17 s: there the classes
/// of the store's own distributions end.
const BOUNDS: std::ops::RangeInclusive<u32> = 14..=34;
const NANOSECONDS: f64 = 1e9;

/// Figures of all stores, read when the server is asked.
#[derive(Debug)]
pub(super) struct Engines(pub(super) Vec<(Of, Metrics)>);

type Number = fn(&Metrics) -> u64;
type Times = fn(&Metrics) -> &Distribution;
type OfCause = fn(&Checkpoints) -> u64;

const COUNTERS: [(&str, &str, Number); 9] = [
    ("lookups", "Objects looked up to be read", |m| m.lookups),
    ("page_hits", "Pages in memory that lookups looked at", |m| m.page_hits),
    ("page_reads", "Pages read from the file", |m| m.page_reads),
    ("log_groups", "Groups of commits written to the log", |m| m.group_commits.count()),
    ("commits", "Durable commits", |m| m.group_commits.sum()),
    ("readers_given_up", "Snapshots given up", |m| m.readers_given_up),
    ("scrubbed_bytes", "Bytes that scrubs held against their checksums", |m| m.scrubbed_bytes),
    ("scrubs", "Scrubs of the whole store", |m| m.scrubs),
    ("background_failures", "Work in the background that failed", |m| m.background_failures),
];

const TIMES: [(&str, &str, Times); 5] = [
    ("commit_wait", "Until what was committed was durable", |m| &m.commit_waits),
    ("writer_wait", "Until another's transaction was over", |m| &m.writer_waits),
    ("log_write", "Writing and syncing a group of commits", |m| &m.log_times),
    ("sync", "Syncs of the store's file", |m| &m.sync_times),
    ("checkpoint", "Checkpoints", |m| &m.checkpoint_times),
];

const CAUSES: [(&str, OfCause); 7] = [
    ("log", |c| c.log),
    ("dirty_pages", |c| c.dirty_pages),
    ("copies", |c| c.copies),
    ("waiting", |c| c.waiting),
    ("space", |c| c.space),
    ("maintenance", |c| c.maintenance),
    ("call", |c| c.call),
];

impl Engines {
    fn each(
        &self,
        mut all: MetricEncoder<'_>,
        f: impl Fn(&Metrics, MetricEncoder<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.0.iter().try_for_each(|(of, metrics)| f(metrics, all.encode_family(of)?))
    }
}

impl Collector for Engines {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, number) in COUNTERS {
            let all = out.encode_descriptor(name, help, None, MetricType::Counter)?;
            self.each(all, |m, one| ConstCounter::new(number(m)).encode(one))?;
        }
        let bytes = Some(&Unit::Bytes);
        let all = out.encode_descriptor("log", "Written to the log", bytes, MetricType::Counter)?;
        self.each(all, |m, one| ConstCounter::new(m.log_bytes).encode(one))?;
        let help = "Pages newer in memory than in the file";
        let all = out.encode_descriptor("dirty_pages", help, None, MetricType::Gauge)?;
        self.each(all, |m, one| ConstGauge::new(signed(m.dirty_pages)).encode(one))?;
        let help = "What is damaged, as the last scrub found";
        let all = out.encode_descriptor("damage", help, None, MetricType::Gauge)?;
        self.each(all, |m, one| ConstGauge::new(signed(m.damage)).encode(one))?;
        let help = "Pages in memory";
        let all = out.encode_descriptor("cached_pages", help, bytes, MetricType::Gauge)?;
        self.each(all, |m, one| ConstGauge::new(signed(m.cached_page_bytes)).encode(one))?;
        for (name, help, times) in TIMES {
            let seconds = Some(&Unit::Seconds);
            let all = out.encode_descriptor(name, help, seconds, MetricType::Histogram)?;
            self.each(all, |m, one| encode_times(times(m), one))?;
        }
        let help = "Checkpoints begun, by what made them due";
        let mut all = out.encode_descriptor("checkpoints", help, None, MetricType::Counter)?;
        for (of, metrics) in &self.0 {
            for (cause, number) in CAUSES {
                let store = of.store.as_str();
                let labels = [("store", store), ("cause", cause)];
                let one = all.encode_family(&labels)?;
                ConstCounter::new(number(&metrics.checkpoints)).encode(one)?;
            }
        }
        Ok(())
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn encode_times(times: &Distribution, mut one: MetricEncoder<'_>) -> Result<(), Error> {
    let bounds = BOUNDS.step_by(2).map(|power| (1_u64 << power) - 1);
    let mut buckets: Vec<(u64, u64)> = bounds.chain([u64::MAX]).map(|bound| (bound, 0)).collect();
    for (value, count) in times.classes() {
        let first = buckets.partition_point(|(bound, _)| *bound < value);
        if let Some((_, sum)) = buckets.get_mut(first) {
            *sum += count;
        }
    }
    let seconds = |bound: u64| match bound {
        u64::MAX => f64::MAX,
        bound => bound as f64 / NANOSECONDS,
    };
    let buckets: Vec<(f64, u64)> = buckets.into_iter().map(|(b, n)| (seconds(b), n)).collect();
    let sum = times.sum() as f64 / NANOSECONDS;
    one.encode_histogram::<NoLabelSet>(sum, times.count(), &buckets, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall::Store;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    #[test]
    fn figures_of_a_store_have_names() {
        let store = Store::in_memory().unwrap();
        store.write(|tx| tx.put("a", b"1")).unwrap();
        store.get("a").unwrap();
        let mut registry = Registry::with_prefix("holdall_store");
        let of = Of { store: "s".into() };
        registry.register_collector(Box::new(Engines(vec![(of, store.metrics())])));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "holdall_store_lookups_total{store=\"s\"} 1",
            "holdall_store_commits_total{store=\"s\"} 1",
            "holdall_store_commit_wait_seconds_count{store=\"s\"} 1",
            "holdall_store_commit_wait_seconds_bucket{le=\"+Inf\",store=\"s\"} 1",
            "holdall_store_checkpoints_total{store=\"s\",cause=\"log\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nin\n{text}");
        }
        let bounds = text.lines().filter(|l| l.contains("commit_wait_seconds_bucket"));
        assert_eq!(bounds.count(), 12);
    }
}
