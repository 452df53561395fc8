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

/// Without the spaces that a figure without a prefix leaves.
fn tidy(text: String) -> String {
    text.replace("  ", " ")
}

/// A look and the one before, of the same process.
struct Since<'a> {
    now: &'a Look,
    was: Option<&'a Look>,
}

impl Since<'_> {
    /// How many more of something there are, a second; all of them at the first look.
    fn rate(&self, what: &str, count: impl Fn(&Metrics) -> u64) -> String {
        let now = count(&self.now.metrics);
        let Some(was) = self.was else {
            return tidy(format!("{}{what} so far", figure(now as f64)));
        };
        let more = now.saturating_sub(count(&was.metrics)) as f64;
        tidy(format!("{}{what} a second", figure(more / (self.now.at - was.at).as_secs_f64())))
    }

    fn of(&self, which: impl Fn(&Metrics) -> &Distribution) -> Distribution {
        let now = which(&self.now.metrics);
        self.was.map_or_else(|| now.clone(), |was| now.since(which(&was.metrics)))
    }

    fn times(&self, which: impl Fn(&Metrics) -> &Distribution) -> String {
        times(&self.of(which))
    }
}

/// The screen. Rates and times are of the time since the last look; of all before the first.
fn text(path: &Path, now: &Look, before: Option<&Look>) -> String {
    let was = before.filter(|before| before.process == now.process);
    let (m, s, since) = (&now.metrics, &now.stat, Since { now, was });
    let bytes = |n: u64| figure(n as f64) + "B";
    let date = time::date(time::to_nanos(SystemTime::now()));
    let groups = since.of(|m| &m.group_commits);
    let failure = m.last_failure.as_deref().unwrap_or_default();
    let rows = [
        ("store", format!("{}, open in process {}, {date}", path.display(), now.process)),
        ("commits", since.rate("", |m| m.group_commits.sum())),
        ("  durable", since.times(|m| &m.commit_waits)),
        ("  groups", format!("{:.1} commits each", groups.mean())),
        ("log", since.rate("B", |m| m.log_bytes)),
        ("  writes", since.times(|m| &m.log_times)),
        ("file's syncs", since.times(|m| &m.sync_times)),
        ("waits to write", since.times(|m| &m.writer_waits)),
        ("checkpoints", since.times(|m| &m.checkpoint_times)),
        ("  pages", since.rate("", |m| m.checkpoints.pages)),
        ("lookups", since.rate("", |m| m.lookups)),
        ("  in memory", since.rate(" pages", |m| m.page_hits)),
        ("  read", since.rate(" pages", |m| m.page_reads)),
        (
            "memory",
            format!("{}, {} pages to be written", bytes(m.cached_page_bytes), m.dirty_pages),
        ),
        ("file", format!("{}, {} in use", bytes(s.file_bytes), bytes(s.used_bytes))),
        ("  waits", format!("{}, {} for readers", bytes(s.waiting_bytes), bytes(s.pinned_bytes))),
        ("objects", format!("{}, {}", s.objects, bytes(s.logical_bytes))),
        ("old snapshots", format!("{} open, {} given up", s.readers.len(), m.readers_given_up)),
        (
            "scrub",
            format!(
                "{}, {} passes, {} problems",
                since.rate("B", |m| m.scrubbed_bytes),
                m.scrubs,
                m.damage
            ),
        ),
        ("failures", format!("{} {}", m.background_failures, name::escape(failure.as_bytes()))),
    ];
    let mut out = String::new();
    let readers = s.readers.iter().take(MOST_READERS).map(|reader| {
        let (thread, age) = (name::escape(reader.thread.as_bytes()), reader.age.as_secs_f64());
        ("  reader", format!("{thread}, {age:.1} s old, keeps {}", bytes(reader.pinned_bytes)))
    });
    for (label, value) in rows.into_iter().chain(readers) {
        // Writing to a string does not fail.
        let _ = writeln!(out, "{label:<15} {}", value.trim_end());
    }
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
    let (mut value, mut prefixes) = (value, [" ", " k", " M", " G", " T", " P"].iter());
    let mut prefix = prefixes.next();
    while value >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        (value, prefix) = (value / 1000.0, Some(next));
    }
    let digits = if value >= 99.95 || value.fract() == 0.0 { 0 } else { 1 };
    format!("{value:.digits$}{}", prefix.unwrap_or(&" "))
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_are_short() {
        let cases =
            [(0.0, "0 "), (7.25, "7.2 "), (999.0, "999 "), (5_013.0, "5.0 k"), (2e10, "20 G")];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
    }
}
