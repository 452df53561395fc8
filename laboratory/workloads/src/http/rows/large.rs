//! Large objects: uploads completed, bytes inserted, memory.

use super::{LONG, Loop};
use crate::http::client::Client;
use crate::http::content::Content;
use crate::http::load::{self, Limit};
use crate::http::plan::Plan;
use crate::http::server::{Kind, Program, Server};
use crate::http::upload;
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Figure, Unit};
use http::Method;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

/// The row of inserts; others than Holdall put the object again.
const INSERT: &str = "insert 1 KB in the middle, durable";
/// Bytes inserted.
const INSERTED: u64 = 1000;

/// Uploads parts by four clients, then completes.
///
/// # Errors
/// As [`super::run`].
pub async fn complete(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let server = program.serve(dir).await?;
    let mut clients = load::clients(4, server.address)?;
    let id = upload::create(&mut clients[0], "large").await?;
    let etags = RefCell::new(vec![String::new(); usize::try_from(plan.parts)?]);
    let limit = Limit { time: LONG, most: plan.parts };
    load::drive(&mut clients, 0, limit, async |client: &mut Client, n| {
        let content = plan.content(n, plan.part_bytes);
        let answer = upload::part(client, "large", &id, n + 1, content).await?;
        etags.borrow_mut()[usize::try_from(n)?] = answer.etag;
        Ok(answer.took)
    })
    .await?;
    let etags = etags.into_inner();
    let (clients, limit) = (&mut clients[..1], Limit { time: LONG, most: 1 });
    let warm = Duration::ZERO;
    let figure = Loop {
        server: &server,
        clients,
        row: "complete a multipart upload, durable",
        unit: Unit::Ms,
        limit,
        warm,
    }
    .run(
        |rate| 1e3 / rate,
        async |client: &mut Client, _| {
            Ok(upload::complete(client, "large", &id, &etags).await?.0.took)
        },
    )
    .await?;
    // The first part is at the object's beginning, and all are there.
    let line = clients[0].signer.object(rusty_s3::Method::Get, "large", &[])?;
    let whole = parts(plan);
    let mut same = true;
    let check = |at: u64, bytes: &[u8]| {
        let n = at / plan.part_bytes;
        let (begin, end) = (at - n * plan.part_bytes, at + bytes.len() as u64);
        if end <= (n + 1) * plan.part_bytes {
            same &= plan.content(n, plan.part_bytes).has(begin, bytes);
        }
        Ok(())
    };
    let answer = clients[0].send(Method::GET, line, Content::none(), check).await?;
    ensure!(same && answer.len == whole, "the completed object has other bytes");
    out.push(figure);
    server.stop()
}

fn parts(plan: &Plan) -> u64 {
    plan.parts * plan.part_bytes
}

/// Inserts into one object; a server that cannot gets the whole object again.
///
/// # Errors
/// As [`super::run`].
pub async fn insert(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let server = program.serve(dir).await?;
    let clients = &mut load::clients(1, server.address)?;
    let whole = plan.content(0, plan.insert_bytes);
    clients[0].put("large", whole).await?;
    let figure = if server.kind == Kind::Holdall {
        insert_bytes(plan, &server, clients).await?
    } else {
        let limit = Limit { time: plan.slice, most: plan.again };
        let warm = Duration::ZERO;
        Loop { server: &server, clients, row: INSERT, unit: Unit::Ms, limit, warm }
            .run(
                |rate| 1e3 / rate,
                async |client: &mut Client, n| {
                    let content = plan.content(n + 1, plan.insert_bytes + INSERTED);
                    Ok(client.put("large", content).await?.took)
                },
            )
            .await?
    };
    out.push(figure);
    server.stop()
}

async fn insert_bytes(plan: &Plan, server: &Server, clients: &mut [Client]) -> Result<Figure> {
    let size = Cell::new(plan.insert_bytes);
    let limit = Limit { time: plan.slice, most: 100_000 };
    Loop { server, clients, row: INSERT, unit: Unit::Ms, limit, warm: plan.slice / 10 }
        .run(
            |rate| 1e3 / rate,
            async |client: &mut Client, n| {
                let content = plan.content(n, INSERTED);
                let at = size.get() / 2;
                let (answer, now) = upload::insert(client, "large", at, content).await?;
                size.set(size.get() + INSERTED);
                ensure!(now == size.get(), "{now} bytes after an insert, not {}", size.get());
                Ok(answer.took)
            },
        )
        .await
}

/// Many clients put one large object each, all at once.
///
/// # Errors
/// As [`super::run`].
pub async fn memory(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    out: &mut Vec<Figure>,
) -> Result<()> {
    let server = program.serve(dir).await?;
    let clients = &mut load::clients(plan.clients, server.address)?;
    let limit = Limit { time: LONG, most: plan.clients as u64 };
    let warm = Duration::ZERO;
    let mut figure = Loop {
        server: &server,
        clients,
        row: "memory while many clients put, durable",
        unit: Unit::Mib,
        limit,
        warm,
    }
    .run(
        |rate| rate,
        async |client: &mut Client, n| {
            let content = plan.content(n, plan.client_bytes);
            Ok(client.put(&format!("memory/{n:04}"), content).await?.took)
        },
    )
    .await?;
    figure.value = figure.memory.unwrap_or_default() as f64 / f64::from(1 << 20);
    out.push(figure);
    server.stop()
}
