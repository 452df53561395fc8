//! Experiments of the papers Holdall stands on.
//!
//! Every technique the papers compare is here as code that stores and returns bytes over
//! [`holdall_io::Disk`], so that one and the same code runs on the counted disk of the papers'
//! cost model, in memory and on a file. [`papers::LIBRARY`] lists the papers, each a module. How experiments are run, kept
//! and reported is the instrument's.

pub mod aging;
pub mod allocation;
pub mod free_space;
pub mod kit;
pub mod large;
pub mod mutation;
pub mod oid_map;
pub mod papers;
