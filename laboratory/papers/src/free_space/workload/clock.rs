//! Processor time of this thread. Owns no state; Linux gives it, elsewhere the wall clock stands
//! in for it.

use std::time::{Duration, Instant};

/// A clock that was started.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    wall: Instant,
    cpu: Option<Duration>,
}

impl CpuClock {
    /// Starts it.
    pub fn start() -> Self {
        Self { wall: Instant::now(), cpu: thread_time() }
    }

    /// One that gives wall time.
    pub fn of_the_wall() -> Self {
        Self { wall: Instant::now(), cpu: None }
    }

    /// Processor time since then, of the thread that asks; wall time if it is not to be had.
    pub fn elapsed(&self) -> Duration {
        match (self.cpu, thread_time()) {
            (Some(from), Some(to)) => to.saturating_sub(from),
            _ => self.wall.elapsed(),
        }
    }
}

/// Nanoseconds on a processor: the first number of the thread's scheduler statistics.
fn thread_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_forward() {
        let clock = CpuClock::start();
        let until = Instant::now() + Duration::from_millis(60);
        let mut n = 0_u64;
        while Instant::now() < until {
            n = std::hint::black_box(n + 1);
        }
        let elapsed = clock.elapsed();
        assert!(elapsed > Duration::from_millis(5) && elapsed < Duration::from_secs(30));
    }
}
