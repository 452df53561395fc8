//! What one contestant reached in one row of one round.
//!
//! Owns: [`Figure`] and the units that figures count.

use super::{Latency, Recorder};
use serde::{Deserialize, Serialize};

/// What a row's main figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Operations or objects per second; more is better.
    PerSecond,
    /// Megabytes (10^6) of object bytes per second; more is better.
    MbPerSecond,
    /// Milliseconds; less is better.
    Ms,
    /// Microseconds; less is better.
    Us,
    /// Memory resident, in MiB; less is better.
    Mib,
    /// Instructions of an operation; less is better.
    Instructions,
}

impl Unit {
    /// As shown in tables.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Unit::PerSecond => "per s",
            Unit::MbPerSecond => "MB/s",
            Unit::Ms => "ms",
            Unit::Us => "µs",
            Unit::Mib => "MiB",
            Unit::Instructions => "instructions",
        }
    }

    /// Whether less is better.
    #[must_use]
    pub fn less_is_better(self) -> bool {
        matches!(self, Unit::Ms | Unit::Us | Unit::Mib | Unit::Instructions)
    }
}

/// A point of a drawing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The drawing's id.
    pub plot: String,
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
}

/// What one store reached in one row of one round.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Figure {
    /// The row's name; the same for all stores.
    pub row: String,
    /// What `value` counts.
    pub unit: Unit,
    /// Throughput or time.
    pub value: f64,
    /// Of single operations.
    pub latency: Option<Latency>,
    /// Bytes on disk per byte of live objects.
    pub disk: Option<f64>,
    /// Bytes the block device received per byte of objects written.
    pub device: Option<f64>,
    /// Most bytes of memory resident above what the process had before the store was opened.
    pub memory: Option<u64>,
    /// For drawings.
    #[serde(default)]
    pub points: Vec<Point>,
    /// What a reader must know of this figure.
    pub note: Option<String>,
}

impl Figure {
    /// A figure with nothing but its value.
    pub fn new(row: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self {
            row: row.into(),
            unit,
            value,
            latency: None,
            disk: None,
            device: None,
            memory: None,
            points: Vec::new(),
            note: None,
        }
    }

    /// With latencies of its operations.
    #[must_use]
    pub fn latency(mut self, recorder: &Recorder) -> Self {
        self.latency = recorder.summary();
        self
    }

    /// With a point of drawing `plot`.
    pub fn point(&mut self, plot: impl Into<String>, x: f64, y: f64) {
        self.points.push(Point { plot: plot.into(), x, y });
    }
}
