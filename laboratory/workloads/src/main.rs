//! The workloads of `holdall-bench`: Holdall, plain files, servers, the bare machine.
//!
//! What is measured and how to read it is in docs/benchmarks.md.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdall_bench::run(Vec::new())
}
