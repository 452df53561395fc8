//! `holdall-bench-peers`: other stores behind the trait of Holdall's workloads.
//!
//! Owns: one adapter for each store, with the settings the store's own documentation
//! recommends. They are C libraries in part; RocksDB, which is C++, is a feature.

pub mod stores;
