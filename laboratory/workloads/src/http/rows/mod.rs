//! The rows, phase by phase.

mod keys;
mod large;
mod objects;

use super::client::Client;
use super::load::{self, Limit};
use super::plan::{Phase, Plan};
use super::server::{Program, Server};
use super::usage::{self, Meter};
use anyhow::Result;
use holdall_instrument::contest::{Figure, Unit};
use std::path::Path;
use std::time::Duration;

/// In the name of a row whose requests are durable when they are answered.
pub const DURABLE: &str = "durable";
/// No end by time, for loops with a number of requests.
const LONG: Duration = Duration::from_secs(3 * 3600);

/// Runs the rows of a phase on a server of its own in `dir`.
///
/// # Errors
/// Those of the server and of the system; wrong answers.
pub async fn run(
    phase: Phase,
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    match phase {
        Phase::Small => objects::small(plan, program, dir, out).await,
        Phase::Large => objects::large(plan, program, dir, out).await,
        Phase::Keys => keys::run(plan, program, dir, out).await,
        Phase::Complete => large::complete(plan, program, dir, out).await,
        Phase::Insert => large::insert(plan, program, dir, out).await,
        Phase::Memory => large::memory(plan, program, dir, out).await,
    }
}

/// One row to be measured by a loop of requests.
struct Loop<'a> {
    server: &'a Server,
    clients: &'a mut [Client],
    row: &'static str,
    unit: Unit,
    limit: Limit,
    /// How long the loop runs before it counts.
    warm: Duration,
}

impl Loop<'_> {
    /// Runs it; `value` makes the figure of the rate of requests.
    async fn run(
        self,
        value: impl FnOnce(f64) -> f64,
        op: impl AsyncFn(&mut Client, u64) -> Result<Duration>,
    ) -> Result<Figure> {
        let mut first = 0;
        if !self.warm.is_zero() {
            let limit = Limit { time: self.warm, ..self.limit };
            first = load::drive(self.clients, 0, limit, &op).await?.count;
        }
        let meter = Meter::start(self.server.pid())?;
        let driven = load::drive(self.clients, first, self.limit, &op).await?;
        Ok(usage::figure(self.row, self.unit, &driven, meter.stop()?, value))
    }
}

/// A number from another that looks drawn: the same for all servers.
fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}
