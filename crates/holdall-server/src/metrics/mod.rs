//! Counters for Prometheus, at `/-/metrics`.

mod engine;

use crate::objects::catalog::Catalog;
use engine::Engines;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode, encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A request's method and the class of its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    store: String,
}

/// What is counted. Clones share it.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Kind, Counter>,
    seconds: Family<Kind, Histogram>,
    /// Connections open now.
    pub connections: Gauge,
    live: Family<Of, Gauge>,
    file: Family<Of, Gauge>,
    objects: Family<Of, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("holdall");
        let requests = Family::default();
        registry.register("requests", "Requests answered", requests.clone());
        let seconds = Family::<Kind, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
        });
        let help = "Time from a request's head to its answer's head";
        registry.register_with_unit("request", help, Unit::Seconds, seconds.clone());
        let connections = Gauge::default();
        registry.register("connections", "Open connections", connections.clone());
        let (live, file, objects) = (Family::default(), Family::default(), Family::default());
        let help = "Bytes of all objects";
        registry.register_with_unit("live", help, Unit::Bytes, live.clone());
        registry.register_with_unit("file", "Bytes the file takes", Unit::Bytes, file.clone());
        registry.register("objects", "Objects", objects.clone());
        let registry = Arc::new(registry);
        Self { registry, requests, seconds, connections, live, file, objects }
    }
}

impl Metrics {
    /// Counts an answered request.
    pub fn note(&self, method: &http::Method, status: u16, time: Duration) {
        // Anybody may send methods of his own making.
        let known = [
            "GET",
            "HEAD",
            "PUT",
            "POST",
            "DELETE",
            "OPTIONS",
            "PATCH",
            "COPY",
            "MOVE",
            "MKCOL",
            "PROPFIND",
            "PROPPATCH",
            "LOCK",
            "UNLOCK",
        ];
        let method = known.iter().find(|m| **m == method.as_str()).unwrap_or(&"other");
        let kind = Kind { method: (*method).into(), status };
        self.requests.get_or_create(&kind).inc();
        self.seconds.get_or_create(&kind).observe(time.as_secs_f64());
    }

    /// How long requests took, by method, since the server started.
    pub fn latencies(&self) -> Vec<Latency> {
        // The crate shows what it counted in no other form.
        let mut text = String::new();
        let _ = encode(&mut text, &self.registry);
        latencies(&text)
    }

    /// All of it as text. Blocks: stores are asked for their figures.
    pub fn text(&self, catalog: &Catalog) -> String {
        let mut engines = Vec::new();
        for served in catalog.stores() {
            let of = Of { store: served.path.display().to_string() };
            engines.push((of.clone(), served.store.metrics()));
            let Ok(stat) = served.store.stat() else { continue };
            let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            self.live.get_or_create(&of).set(signed(stat.logical_bytes));
            self.file.get_or_create(&of).set(signed(stat.file_bytes));
            self.objects.get_or_create(&of).set(signed(stat.objects));
        }
        let mut own = Registry::with_prefix("holdall_store");
        own.register_collector(Box::new(Engines(engines)));
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        let _ = encode_registry(&mut text, &own);
        let _ = encode_eof(&mut text);
        text
    }
}

/// How long requests of a method took, whatever was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// The method.
    pub method: String,
    /// Requests.
    pub count: u64,
    /// Half of them took at most so long, in seconds; the bound of a bucket.
    pub p50: f64,
    /// Of a hundred, 99.
    pub p99: f64,
}

/// The value of a label in a line of the text format.
fn label<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn latencies(text: &str) -> Vec<Latency> {
    // By method: how many took at most so long, summed over statuses.
    let mut all: BTreeMap<&str, Vec<(f64, u64)>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("holdall_request_seconds_bucket{")) {
        let parsed = || {
            let bound = label(line, "le")?.replace("+Inf", "inf").parse().ok()?;
            Some((label(line, "method")?, bound, line.rsplit(' ').next()?.parse().ok()?))
        };
        let Some((method, bound, count)) = parsed() else { continue };
        let buckets = all.entry(method).or_default();
        match buckets.iter_mut().find(|(other, _)| *other == bound) {
            Some((_, sum)) => *sum += count,
            None => buckets.push((bound, count)),
        }
    }
    let of = |(method, buckets): (&str, Vec<(f64, u64)>)| {
        let count = buckets.last().map_or(0, |(_, count)| *count);
        let below = |share: f64| {
            let wanted = (count as f64 * share).ceil() as u64;
            buckets.iter().find(|(_, n)| *n >= wanted).map_or(f64::INFINITY, |(bound, _)| *bound)
        };
        Latency { method: method.to_owned(), count, p50: below(0.5), p99: below(0.99) }
    };
    all.into_iter().map(of).filter(|latency| latency.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_from_the_histograms_of_all_statuses() {
        let metrics = Metrics::default();
        assert_eq!(metrics.latencies(), []);
        for n in 0..99 {
            let status = if n % 2 == 0 { 200 } else { 404 };
            metrics.note(&http::Method::GET, status, Duration::from_micros(300));
        }
        metrics.note(&http::Method::GET, 200, Duration::from_millis(3));
        metrics.note(&http::Method::PUT, 200, Duration::from_secs(3600));
        let all = metrics.latencies();
        let get = Latency { method: "GET".into(), count: 100, p50: 0.0005, p99: 0.0005 };
        assert_eq!(all[0], get);
        assert_eq!((all[1].count, all[1].p50), (1, f64::INFINITY), "beyond the last bucket");
        metrics.note(&http::Method::GET, 200, Duration::from_millis(3));
        metrics.note(&http::Method::GET, 200, Duration::from_millis(3));
        assert_eq!(metrics.latencies()[0].p99, 0.004);
    }
}
