//! The workloads of `holdall-bench`, on Holdall, plain files and the other stores.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdall_bench::run(holdall_bench_peers::stores::makers())
}
