//! `holdall-bench-peers`: other stores behind the trait of Holdall's workloads.
//!
//! Owns: one adapter for each store, with the settings the store's own documentation
//! recommends. Not part of the workspace, because some of them are C and C++ libraries.

pub mod stores;
