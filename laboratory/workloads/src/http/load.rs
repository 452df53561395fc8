//! The loop of all clients: each sends its next request when the last one is answered.

use super::client::Client;
use crate::measure::Driven;
use anyhow::Result;
use futures::future::try_join_all;
use holdall_instrument::contest::Recorder;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// When a loop ends.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// No request begins later; the first of each client does.
    pub time: Duration,
    /// Requests at most.
    pub most: u64,
}

/// Clients of the server that listens there.
///
/// # Errors
/// None in practice.
pub fn clients(count: usize, address: SocketAddr) -> Result<Vec<Client>> {
    (0..count).map(|_| Client::new(address)).collect()
}

/// Lets all clients call `op` with numbers that no other call gets, from `first` on. `op` says
/// how long its request took. The rate counts to the last answer.
///
/// # Errors
/// The first of `op`.
pub async fn drive(
    clients: &mut [Client],
    first: u64,
    limit: Limit,
    op: impl AsyncFn(&mut Client, u64) -> Result<Duration>,
) -> Result<Driven> {
    let (next, done) = (Cell::new(first), Cell::new(0_u64));
    let latency = RefCell::new(Recorder::new()?);
    let begun = Instant::now();
    let (next, done, times, op) = (&next, &done, &latency, &op);
    let each = clients.iter_mut().map(|client| async move {
        let mut begins = true;
        while next.get() - first < limit.most && (begins || begun.elapsed() < limit.time) {
            begins = false;
            let number = next.replace(next.get() + 1);
            let took = op(client, number).await?;
            times.borrow_mut().add(took);
            done.set(done.get() + 1);
        }
        anyhow::Ok(())
    });
    try_join_all(each).await?;
    let (count, passed) = (done.get(), begun.elapsed().as_secs_f64());
    Ok(Driven { rate: count as f64 / passed, count, latency: latency.into_inner() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn run(limit: Limit, op: impl AsyncFn(&mut Client, u64) -> Result<Duration>) -> Result<Driven> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let mut clients = clients(3, "127.0.0.1:1".parse().unwrap()).unwrap();
        runtime.block_on(drive(&mut clients, 5, limit, op))
    }

    #[test]
    fn each_number_is_given_once_and_no_more_than_asked() {
        let seen = RefCell::new(Vec::new());
        let limit = Limit { time: Duration::from_secs(5), most: 100 };
        let driven = run(limit, async |_: &mut Client, n| {
            tokio::task::yield_now().await;
            seen.borrow_mut().push(n);
            Ok(Duration::from_millis(n))
        });
        let driven = driven.unwrap();
        let mut seen = seen.into_inner();
        seen.sort_unstable();
        assert_eq!(seen, (5..105).collect::<Vec<_>>());
        assert_eq!(driven.count, 100);
        let p50 = driven.latency.summary().unwrap().p50;
        assert!((p50 - 54_000.0).abs() < 1_000.0, "{p50}");
    }

    #[test]
    fn time_ends_a_loop_and_an_error_does() {
        let limit = Limit { time: Duration::from_millis(20), most: u64::MAX };
        let wait = async |_: &mut Client, _| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Ok(Duration::from_millis(5))
        };
        let count = run(limit, wait).unwrap().count;
        assert!((3..=15).contains(&count), "{count}");
        assert!(run(limit, async |_: &mut Client, _| bail!("no")).is_err());
        let none = Limit { time: Duration::ZERO, most: u64::MAX };
        assert_eq!(run(none, async |_: &mut Client, _| Ok(Duration::ZERO)).unwrap().count, 3);
    }
}
