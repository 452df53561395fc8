//! Many keys: listing them, and starting with them.
//!
//! Keys come in groups of 100. Those of even groups stand for themselves, those of odd ones lie
//! under a prefix of their own, which the delimiter rolls up: a page of 1,000 passes 900 of them.

use super::{LONG, Loop, scatter};
use crate::http::client::Client;
use crate::http::content::Content;
use crate::http::load::{self, Limit};
use crate::http::plan::{LEAST_KEYS, Plan};
use crate::http::server::{Program, Server};
use crate::http::sign::BUCKET;
use crate::http::usage::{self, Meter};
use crate::http::xml;
use crate::measure::Driven;
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Figure, Recorder, Unit};
use http::Method;
use std::path::Path;

/// Bytes of each object.
const BYTES: u64 = 100;
/// Keys in a group.
const GROUP: u64 = 100;
/// Groups that a page of 1,000 reaches, this many must lie behind its start.
const PAGE_GROUPS: u64 = 20;
const _: () = assert!(LEAST_KEYS == GROUP * PAGE_GROUPS, "a page must be full");

fn key(n: u64) -> String {
    let (group, rest) = (n / GROUP, n % GROUP);
    let between = if group % 2 == 0 { '-' } else { '/' };
    format!("l/{group:06}{between}{rest:02}")
}

/// Lists, then starts again and again.
///
/// # Errors
/// As [`super::run`].
pub async fn run(plan: &Plan, program: &Program, dir: &Path, out: &mut Vec<Figure>) -> Result<()> {
    let server = program.serve(dir).await?;
    let mut clients = load::clients(32, server.address)?;
    let limit = Limit { time: LONG, most: plan.keys };
    load::drive(&mut clients, 0, limit, async |client: &mut Client, n| {
        Ok(client.put(&key(n), plan.content(n, BYTES)).await?.took)
    })
    .await?;
    drop(clients);
    out.push(list(plan, &server).await?);
    let (figure, server) = start(plan, program, dir, server).await?;
    out.push(figure);
    server.stop()
}

async fn list(plan: &Plan, server: &Server) -> Result<Figure> {
    let clients = &mut load::clients(1, server.address)?;
    let limit = Limit { time: plan.slice, most: 2_000 };
    let starts = (plan.keys / GROUP - PAGE_GROUPS) / 2 + 1;
    Loop {
        server,
        clients,
        row: "list 1,000 keys and prefixes, 1 client",
        unit: Unit::Ms,
        limit,
        warm: plan.slice / 10,
    }
    .run(
        |rate| 1e3 / rate,
        async |client: &mut Client, n| {
            let after = format!("l/{:06}", scatter(n) % starts * 2);
            let query = [
                ("delimiter", "/"),
                ("list-type", "2"),
                ("max-keys", "1000"),
                ("prefix", "l/"),
                ("start-after", &after),
            ];
            let bucket = format!("/{BUCKET}");
            let line = client.signer.line(rusty_s3::Method::Get, &bucket, &query)?;
            let (answer, text) = client.done(Method::GET, line, Content::none()).await?;
            let found = (xml::all(&text, "Key").count(), xml::all(&text, "CommonPrefixes").count());
            // Nine pairs of groups and 91 keys of the tenth.
            ensure!(found == (991, 9), "after {after}: {found:?} keys and prefixes");
            Ok(answer.took)
        },
    )
    .await
}

/// Stops and starts the server; returns it running.
async fn start(
    plan: &Plan,
    program: &Program,
    dir: &Path,
    mut server: Server,
) -> Result<(Figure, Server)> {
    let path = format!("/{BUCKET}/{}", key(0));
    let content = plan.content(0, BYTES);
    let (mut latency, mut sum) = (Recorder::new()?, 0.0);
    let mut used = None;
    for _ in 0..plan.starts {
        server.stop()?;
        server = program.start(dir)?;
        let meter = Meter::start(server.pid())?;
        let took = server.answers(&path, Some(&content)).await?;
        let mut now = meter.stop()?;
        latency.add(took);
        sum += took.as_secs_f64();
        if let Some(before) = used {
            now.add(&before);
        }
        used = Some(now);
    }
    let used = used.unwrap_or_default();
    let driven = Driven { rate: plan.starts as f64 / sum, count: plan.starts, latency };
    Ok((
        usage::figure("start to the first answer", Unit::Ms, &driven, used, |rate| 1e3 / rate),
        server,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// What a server has to answer, by the definition of the delimiter.
    #[test]
    fn a_page_has_the_keys_and_prefixes_that_are_expected() {
        let keys: BTreeSet<String> = (0..LEAST_KEYS).map(key).collect();
        let mut page: Vec<String> = Vec::new();
        for key in keys.range("l/000000".to_owned()..) {
            let rest = &key["l/".len()..];
            let entry = rest.split_once('/').map_or(key.clone(), |(dir, _)| format!("l/{dir}/"));
            if page.last() != Some(&entry) {
                page.push(entry);
            }
        }
        page.truncate(1000);
        let prefixes = page.iter().filter(|entry| entry.ends_with('/')).count();
        assert_eq!((page.len() - prefixes, prefixes), (991, 9));
    }
}
