//! Counters for Prometheus, at `/-/metrics`.

use crate::catalog::Catalog;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
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

    /// All of it as text. Blocks: stores are asked for their figures.
    pub fn text(&self, catalog: &Catalog) -> String {
        for served in catalog.stores() {
            let Ok(stat) = served.store.stat() else { continue };
            let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            let of = Of { store: served.path.display().to_string() };
            self.live.get_or_create(&of).set(signed(stat.logical_bytes));
            self.file.get_or_create(&of).set(signed(stat.file_bytes));
            self.objects.get_or_create(&of).set(signed(stat.objects));
        }
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
