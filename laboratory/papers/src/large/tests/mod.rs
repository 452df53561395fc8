//! The suite for every technique, and the paper's rules.

mod conformance;
mod rules;
