//! Puts and gets of whole objects.

use super::{LONG, Loop, scatter};
use crate::http::client::Client;
use crate::http::load::{self, Limit};
use crate::http::plan::Plan;
use crate::http::server::{Program, Server};
use anyhow::Result;
use holdall_instrument::contest::{Figure, Unit};
use holdall_instrument::system;
use http::Uri;
use rusty_s3::Method;
use std::path::Path;
use std::time::Duration;

/// One get in this many has its bytes compared; of all the length is.
const COMPARED: u64 = 16;

/// Objects of one size and who handles them.
struct Objects<'a> {
    plan: &'a Plan,
    bytes: u64,
    /// That are got.
    count: u64,
    clients: usize,
    unit: Unit,
}

/// Objects of 4 KB.
///
/// # Errors
/// As [`super::run`].
pub async fn small(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let objects =
        Objects { plan, bytes: 4096, count: plan.small, clients: 32, unit: Unit::PerSecond };
    let server = program.serve(dir).await?;
    out.push(objects.put(&server, "put 4 KB, 32 clients, durable").await?);
    objects.fill(&server).await?;
    out.push(objects.get(&server, "get 4 KB, 32 clients, hot").await?);
    server.stop()
}

/// Objects of 10 MB.
///
/// # Errors
/// As [`super::run`].
pub async fn large(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let (bytes, unit) = (10_000_000, Unit::MbPerSecond);
    let objects = Objects { plan, bytes, count: plan.large, clients: 4, unit };
    let server = program.serve(dir).await?;
    out.push(objects.put(&server, "put 10 MB, 4 clients, durable").await?);
    objects.fill(&server).await?;
    out.push(objects.get(&server, "get 10 MB, 4 clients, hot").await?);
    server.stop()?;
    system::drop_caches_below(dir)?;
    let server = program.serve(dir).await?;
    out.push(objects.get_cold(&server, "get 10 MB, 4 clients, cold, after a restart").await?);
    server.stop()
}

impl Objects<'_> {
    /// The figure of a rate of requests.
    fn value(&self) -> impl FnOnce(f64) -> f64 {
        let (unit, bytes) = (self.unit, self.bytes);
        move |rate| if unit == Unit::MbPerSecond { rate * bytes as f64 / 1e6 } else { rate }
    }

    /// New objects under keys of their own.
    async fn put(&self, server: &Server, row: &'static str) -> Result<Figure> {
        let clients = &mut load::clients(self.clients, server.address)?;
        // A bound on what a fast disk would be given.
        let most = 30_000_000_000 / self.bytes;
        let limit = Limit { time: self.plan.slice, most };
        let warm = self.plan.slice / 10;
        let unit = self.unit;
        Loop { server, clients, row, unit, limit, warm }
            .run(self.value(), async |client: &mut Client, n| {
                let content = self.plan.content(n, self.bytes);
                Ok(client.put(&format!("put/{n:08}"), content).await?.took)
            })
            .await
    }

    /// Puts what is got later.
    async fn fill(&self, server: &Server) -> Result<()> {
        let mut clients = load::clients(self.clients, server.address)?;
        let limit = Limit { time: LONG, most: self.count };
        load::drive(&mut clients, 0, limit, async |client: &mut Client, n| {
            let content = self.plan.content(n, self.bytes);
            Ok(client.put(&format!("get/{n:08}"), content).await?.took)
        })
        .await?;
        Ok(())
    }

    /// Lines of gets, signed before the clock runs.
    fn lines(&self, server: &Server) -> Result<Vec<Uri>> {
        let signer = Client::new(server.address)?.signer;
        let line = |n| signer.object(Method::Get, &format!("get/{n:08}"), &[]);
        (0..self.count).map(line).collect()
    }

    /// Gets at random.
    async fn get(&self, server: &Server, row: &'static str) -> Result<Figure> {
        let lines = self.lines(server)?;
        let clients = &mut load::clients(self.clients, server.address)?;
        let limit = Limit { time: self.plan.slice, most: u64::MAX };
        let warm = self.plan.slice / 10;
        Loop { server, clients, row, unit: self.unit, limit, warm }
            .run(self.value(), async |client: &mut Client, n| {
                self.get_one(client, &lines, scatter(n) % self.count, n % COMPARED == 0).await
            })
            .await
    }

    /// Gets each object once.
    async fn get_cold(&self, server: &Server, row: &'static str) -> Result<Figure> {
        let lines = self.lines(server)?;
        let clients = &mut load::clients(self.clients, server.address)?;
        let limit = Limit { time: LONG, most: self.count };
        let warm = Duration::ZERO;
        Loop { server, clients, row, unit: self.unit, limit, warm }
            .run(self.value(), async |client: &mut Client, n| {
                self.get_one(client, &lines, n, n % COMPARED == 0).await
            })
            .await
    }

    async fn get_one(
        &self,
        client: &mut Client,
        lines: &[Uri],
        object: u64,
        all: bool,
    ) -> Result<Duration> {
        let content = self.plan.content(object, self.bytes);
        let line = lines[usize::try_from(object)?].clone();
        client.get(line, &content, all).await
    }
}
