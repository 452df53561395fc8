//! W8: opening after a clean close and after a kill.

use super::BY_NAME;
use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::peer::{Load, Maker};
use anyhow::{Context as _, Result, bail, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Recorder, Than, Unit};
use holdall_instrument::spread::Spread;
use holdall_instrument::system;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CLEAN: &str = "open after a clean close, and one get";
const KILLED: &str = "open after a kill, and one get";
/// Objects of a commit before the kill.
const BATCH: u64 = 100;
const NAME: &str = "open";
/// What the child says when it did enough, and how many commits.
const DONE: &str = "done ";

pub(super) struct Open;

fn count(ctx: &Ctx) -> u64 {
    ctx.pick(1_000_000, 500)
}

/// Commits before the kill.
fn commits(ctx: &Ctx) -> u64 {
    ctx.pick(1000, 3)
}

/// A store that commits so slowly does fewer.
const LONGEST: Duration = Duration::from_secs(5);

/// Openings of each kind.
fn turns(ctx: &Ctx) -> u64 {
    ctx.pick(5, 2)
}

/// Object that put `n` of commit `c` replaces; its version is `turn` + 1.
fn victim(ctx: &Ctx, turn: u64, c: u64, n: u64) -> u64 {
    hashed(ctx.seed ^ 8 ^ (turn << 40) ^ (c * BATCH + n)) % count(ctx)
}

/// What the child does: replaces objects in durable commits, says how many it did when they
/// are enough, and commits on until it is killed.
///
/// # Errors
/// The store's.
pub fn work_until_killed(ctx: &Ctx, maker: &dyn Maker, turn: u64) -> Result<()> {
    let objects = Objects::new(ctx.seed, Sizes::SMALL);
    let peer = maker.open(&ctx.dir.join(NAME), &super::setup(Load::Small))?;
    let (start, mut said) = (Instant::now(), false);
    for c in 0.. {
        let which: std::collections::BTreeSet<u64> =
            (0..BATCH).map(|n| victim(ctx, turn, c, n)).collect();
        objects.put(&*peer, which.into_iter(), |_| turn + 1)?;
        if !said && (c + 1 == commits(ctx) || start.elapsed() > LONGEST) {
            let mut out = std::io::stdout();
            writeln!(out, "{DONE}{}", c + 1)?;
            out.flush()?;
            said = true;
        }
    }
    Ok(())
}

/// Kills its child if it is still there when this goes.
struct Doomed(Child);

impl Drop for Doomed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns how many commits the child reported.
fn kill_at_work(ctx: &Ctx, maker: &dyn Maker, turn: u64) -> Result<u64> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("killed").arg("--dir").arg(&ctx.dir).arg("--store").arg(maker.name());
    command.arg("--seed").arg(ctx.seed.to_string()).arg("--turn").arg(turn.to_string());
    if ctx.quick {
        command.arg("--quick");
    }
    let mut child = Doomed(command.stdout(Stdio::piped()).spawn()?);
    let out = child.0.stdout.take().context("the child's output")?;
    // Line by line: a store may print things of its own.
    for line in BufReader::new(out).lines() {
        if let Some(commits) = line?.strip_prefix(DONE) {
            child.0.kill()?;
            child.0.wait()?;
            return Ok(commits.parse()?);
        }
    }
    bail!("the child ended before it was killed")
}

fn time_opening(ctx: &Ctx, session: &mut Session<'_>, latency: &mut Recorder) -> Result<f64> {
    let start = Instant::now();
    session.reopen()?;
    let mut out = Vec::new();
    let found = session.peer()?.get(&key(count(ctx) / 2), &mut out)?;
    let time = start.elapsed();
    ensure!(found, "an object is missing after opening");
    latency.add(time);
    Ok(time.as_secs_f64() * 1e3)
}

/// All that the child committed before it said so, in `commits`, must be there.
fn check_commits(
    (ctx, session): (&Ctx, &Session<'_>),
    objects: &Objects,
    (turn, commits): (u64, u64),
) -> Result<()> {
    let last = commits - 1;
    for c in [0, last / 2, last] {
        for n in 0..BATCH {
            let i = victim(ctx, turn, c, n);
            objects.check(session.peer()?, &key(i), i, turn + 1)?;
        }
    }
    Ok(())
}

impl Workload for Open {
    fn id(&self) -> &'static str {
        "w8"
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("opening a store of {} objects of 100–300 B", count(ctx))
    }

    fn remark(&self) -> &'static str {
        "Clean: closed in order, the page cache dropped. Kill: a process of its own replaces \
         objects drawn evenly in durable commits of 100 (1,000 commits or as many as it does in \
         5 s; 3 with --quick), then gets SIGKILL while it commits on; the page cache stays, as it does when a process \
         dies. All commits it reported are checked to be there. The figure is the median of \
         the openings of a round, the greatest latency the longest. Bare: open and pread of \
         one file."
    }

    fn load(&self) -> Load {
        Load::Small
    }

    fn takes_ordinals(&self) -> bool {
        false
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::SMALL);
        let mut session = Session::new(ctx, maker, super::setup(Load::Small), NAME)?;
        objects.preload(session.peer()?, count(ctx), key)?;
        let (mut clean, mut latency) = (Vec::new(), Recorder::new()?);
        let meter = session.meter()?;
        for _ in 0..turns(ctx) {
            session.close()?;
            session.drop_caches()?;
            clean.push(time_opening(ctx, &mut session, &mut latency)?);
        }
        let value = Spread::of(&clean).median;
        let mut figure = Figure::new(CLEAN, Unit::Ms, value).latency(&latency);
        meter.stop(&mut figure, 0)?;
        out.push(figure);
        let (mut killed, mut latency) = (Vec::new(), Recorder::new()?);
        let meter = session.meter()?;
        for turn in 0..turns(ctx) {
            session.close()?;
            let commits = kill_at_work(ctx, maker, turn)?;
            killed.push(time_opening(ctx, &mut session, &mut latency)?);
            check_commits((ctx, &session), &objects, (turn, commits))?;
        }
        let value = Spread::of(&killed).median;
        let mut figure = Figure::new(KILLED, Unit::Ms, value).latency(&latency);
        meter.stop(&mut figure, 0)?;
        out.push(figure);
        Ok(())
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let path = ctx.dir.join("bare");
        std::fs::write(&path, vec![1; 1 << 20])?;
        for row in [CLEAN, KILLED] {
            let (mut all, mut latency) = (Vec::new(), Recorder::new()?);
            for _ in 0..turns(ctx) {
                if row == CLEAN {
                    system::drop_caches(&ctx.dir, &[&path])?;
                }
                let time = latency.time(|| read_one(&path))?;
                all.push(time.as_secs_f64() * 1e3);
            }
            let value = Spread::of(&all).median;
            out.push(Figure::new(row, Unit::Ms, value).latency(&latency));
        }
        Ok(())
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        const OTHERS: &[&str] = &["RocksDB", "redb"];
        vec![
            Goal::new(BY_NAME, CLEAN, Than::Nothing, Bound::AtMost(2.0)),
            Goal::new(BY_NAME, KILLED, Than::Nothing, Bound::AtMost(500.0)),
            Goal::new(BY_NAME, KILLED, Than::Best(OTHERS), Bound::AtMost(1.0)),
        ]
    }
}

fn read_one(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path)?;
    Ok(file.read_exact_at(&mut [0; 200], 512 << 10)?)
}
