//! A clock for stamps that are taken at each call: cheap, to some milliseconds.

use std::time::Duration;

/// Time since some moment, the same for all threads; never goes back. Cost: some nanoseconds, no
/// system call.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[must_use]
pub fn coarse_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time since some moment, the same for all threads; never goes back.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[must_use]
pub fn coarse_time() -> Duration {
    use std::{sync::LazyLock, time::Instant};
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    FIRST.elapsed()
}
