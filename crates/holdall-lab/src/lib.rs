//! Experiments of the papers Holdall stands on.
//!
//! Every technique the papers compare is here as code that stores and returns bytes over
//! [`holdall_io::Disk`], so that one and the same code runs on the counted disk of the papers'
//! cost model, in memory and on a file.

pub mod experiment;
