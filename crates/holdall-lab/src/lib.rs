//! Experiments of the papers Holdall stands on.
//!
//! Every technique the papers compare is here as code that stores and returns bytes over
//! [`holdall_io::Disk`], so that one and the same code runs on the counted disk of the papers'
//! cost model, in memory and on a file.

pub mod allocation;
pub mod cli;
pub mod experiment;
pub mod free_space;
pub mod large;
pub mod parts;
mod perform;
pub mod price;
pub mod report;
pub mod run;

use experiment::Experiment;

/// Every experiment, in the report's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let mut all = large::experiments();
    all.extend(free_space::experiments());
    all
}
