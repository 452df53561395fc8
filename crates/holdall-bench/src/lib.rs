//! Measurements of Holdall, and the workloads it shares with other stores.

pub mod peer;
