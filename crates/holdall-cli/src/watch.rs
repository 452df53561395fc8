//! `holdall stat --watch`: what the process that has a store open does, again and again.
//!
//! Owns: [`watch`]. On a terminal each look replaces the one before; elsewhere one follows the other.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use holdall::{Distribution, Metrics, StoreStat};
use holdall_control::Client;
use serde_json::{Map, Value, json};

use crate::failure::Outcome;
use crate::output::{self, Out};
use crate::{name, open, stop, time};

/// To the corner of the terminal, and what is behind cleared.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// Between two looks at whether the command is to end.
const SLICE: Duration = Duration::from_millis(50);

/// One look.
struct Look {
    at: Instant,
    process: u32,
    stat: StoreStat,
    metrics: Metrics,
}

/// Shows the figures every `pause`, until the command is ended.
pub fn watch(path: &Path, pause: Duration, as_json: bool) -> Outcome {
    open::check(path, true)?;
    stop::watch();
    let clear = !as_json && io::stdout().is_terminal();
    let (mut client, mut before) = (None, None);
    loop {
        let now = look(path, &mut client);
        let mut out = Out::new();
        if clear {
            out.text(CLEAR)?;
        }
        let shown = match (&now, as_json) {
            (Ok(now), true) => output::json_text(&as_value(now)) + "\n",
            (Ok(now), false) => text(path, now, before.as_ref()),
            (Err(why), true) => output::json_text(&json!({ "open": false, "why": why })) + "\n",
            (Err(why), false) => format!("{}: {why}\n", path.display()),
        };
        out.text(&shown)?;
        out.finish()?;
        before = now.ok();
        let until = Instant::now() + pause;
        while Instant::now() < until {
            // Being told to end is how it ends.
            if stop::check().is_err() {
                return Ok(());
            }
            std::thread::sleep(SLICE.min(pause));
        }
    }
}

/// What the process says now; else why nothing is known.
fn look(path: &Path, client: &mut Option<Client>) -> Result<Look, String> {
    if client.is_none() {
        *client = Client::connect(path).map_err(|e| e.to_string())?;
    }
    let Some(asked) = client else { return Err("no process that answers has it open".into()) };
    let process = asked.process();
    let both = asked.stat().and_then(|stat| Ok((stat, asked.metrics()?)));
    match both {
        Ok((stat, metrics)) => Ok(Look { at: Instant::now(), process, stat, metrics }),
        Err(e) => {
            *client = None;
            Err(e.to_string())
        }
    }
}

fn as_value(now: &Look) -> Value {
    let mut object = Map::new();
    object.insert("open".into(), true.into());
    object.insert("process".into(), now.process.into());
    object.insert("metrics".into(), holdall_report::json::metrics(&now.metrics));
    object.insert("stat".into(), holdall_report::json::store(&now.stat));
    Value::Object(object)
}

/// The screen. Rates and times are of the time since `before`; of all before the first look.
fn text(path: &Path, now: &Look, before: Option<&Look>) -> String {
    let (m, s) = (&now.metrics, &now.stat);
    let was = before.filter(|before| before.process == now.process);
    let seconds = was.map(|was| (now.at - was.at).as_secs_f64());
    let rate = |now: u64, was: u64| match seconds {
        Some(seconds) => format!("{} a second", figure((now - was.min(now)) as f64 / seconds)),
        None => format!("{} so far", figure(now as f64)),
    };
    let of = |which: fn(&Metrics) -> &Distribution| match was {
        Some(was) => which(m).since(which(&was.metrics)),
        None => which(m).clone(),
    };
    let old = |which: fn(&Metrics) -> u64| was.map_or(0, |was| which(&was.metrics));
    let mut out = String::new();
    let mut row = |label: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{label:<15} {value}");
    };
    let date = time::date(time::to_nanos(SystemTime::now()));
    row("store", format!("{}, open in process {}, {date}", path.display(), now.process));
    let groups = of(|m| &m.group_commits);
    row("commits", rate(m.group_commits.sum(), old(|m| m.group_commits.sum())));
    row("  durable in", times(&of(|m| &m.commit_waits)));
    row(
        "  in groups",
        format!(
            "of {:.1}, {}",
            groups.mean(),
            rate(m.group_commits.count(), old(|m| m.group_commits.count()))
        ),
    );
    row(
        "log",
        format!(
            "{} bytes, each write {}",
            rate(m.log_bytes, old(|m| m.log_bytes)),
            times(&of(|m| &m.log_times))
        ),
    );
    row("file's syncs", times(&of(|m| &m.sync_times)));
    row("waits to write", times(&of(|m| &m.writer_waits)));
    row(
        "checkpoints",
        format!(
            "{}, {} pages",
            times(&of(|m| &m.checkpoint_times)),
            rate(m.checkpoints.pages, old(|m| m.checkpoints.pages))
        ),
    );
    row(
        "lookups",
        format!(
            "{}, {} pages in memory, {} read",
            rate(m.lookups, old(|m| m.lookups)),
            rate(m.page_hits, old(|m| m.page_hits)),
            rate(m.page_reads, old(|m| m.page_reads))
        ),
    );
    row(
        "memory",
        format!(
            "{} bytes of pages, {} pages newer than in place",
            figure(m.cached_page_bytes as f64),
            m.dirty_pages
        ),
    );
    row(
        "space",
        format!(
            "{} bytes in the file, {} in use, {} wait, {} of them for readers",
            figure(s.file_bytes as f64),
            figure(s.used_bytes as f64),
            figure(s.waiting_bytes as f64),
            figure(s.pinned_bytes as f64)
        ),
    );
    row("objects", format!("{}, {} bytes", s.objects, figure(s.logical_bytes as f64)));
    row("old snapshots", format!("{} open, {} given up", s.readers.len(), m.readers_given_up));
    for reader in s.readers.iter().take(MOST_READERS) {
        let (age, bytes) = (reader.age.as_secs_f64(), figure(reader.pinned_bytes as f64));
        row(
            "",
            format!(
                "{}, {age:.1} s old, keeps {bytes} bytes",
                name::escape(reader.thread.as_bytes())
            ),
        );
    }
    let failure = m
        .last_failure
        .as_deref()
        .map(|why| format!(", the last: {}", name::escape(why.as_bytes())));
    row("failures", format!("{}{}", m.background_failures, failure.unwrap_or_default()));
    out
}

/// Old snapshots that are shown one by one.
const MOST_READERS: usize = 8;

/// How many times there were, and how long.
fn times(all: &Distribution) -> String {
    match all.count() {
        0 => "none".into(),
        n => {
            let [half, most] = [0.5, 0.99].map(|q| all.quantile(q) as f64 / 1e6);
            format!("{n}: half in {half:.2} ms, 99 % in {most:.2} ms")
        }
    }
}

/// A figure that a person reads: three digits and a prefix.
fn figure(value: f64) -> String {
    let (mut value, mut prefixes) = (value, ["", " k", " M", " G", " T", " P"].iter());
    let mut prefix = prefixes.next();
    while value >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        (value, prefix) = (value / 1000.0, Some(next));
    }
    let digits = if value >= 99.95 || value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$}{}", prefix.unwrap_or(&""))
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_are_short() {
        let cases = [(0.0, "0"), (7.25, "7.2"), (999.0, "999"), (5_013.0, "5.0 k"), (2e10, "20 G")];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }
}
