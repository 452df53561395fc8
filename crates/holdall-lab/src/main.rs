//! `holdall-lab`: runs the experiments and writes the report.

fn main() {}
