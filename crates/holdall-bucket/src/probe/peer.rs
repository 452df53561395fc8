//! What two machines ask at once, each through the part of a server that answers it.
//!
//! Owns: [`probe_peer`]. Both machines run the same, and meet below a name that both were given. They
//! go in steps: each writes a key that says what it saw, and waits for that of the other. A server whose
//! parts each heed conditions but do not heed each other passes the probe of one machine only.

use super::watched::Watched;
use super::{AT_ONCE, Check, ProbeReport, Progress, Run, fails, races, require};
use crate::backend::{Backend, Found, Put, Tag};
use crate::store::Environment;
use bytes::Bytes;
use futures::future::join_all;
use holdall::{Error, Result};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Rounds of races.
const ROUNDS: usize = 16;
/// Rounds of looking at what the other wrote.
const SEEN: usize = 4;
const WHEN: &str = "once another machine changed the key";
/// How often each machine sends its requests in a round, so that those of both overlap.
const WAVES: usize = 2;
/// How long a machine waits for the other to begin, and then for each step of it.
const MEETING: Duration = Duration::from_secs(600);
const STEP: Duration = Duration::from_secs(60);
/// Pauses between two looks for the other.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(200);
/// Most bytes of the name under which they meet.
const MAX_NAME: usize = 64;

/// Asks a backend beside another machine that does the same with the same `name`: who of both wins
/// conditional writes, and whether each reads and lists at once what the other wrote. Below
/// `probe/with-NAME/` behind `prefix`; deletes what it wrote. Some 1,000 requests, for each machine.
///
/// # Errors
/// [`Error::Invalid`] with what the server does wrong, of a name that is none, or of more than two
/// machines; [`Error::Io`] if the other machine does not come within ten minutes, or stops; those of
/// asking.
pub async fn probe_peer(
    backend: &dyn Backend,
    environment: &dyn Environment,
    prefix: &str,
    name: &str,
    progress: Progress<'_>,
) -> Result<ProbeReport> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        let what = format!("{name:?} is no name to meet under: letters, digits, - and _ make one");
        return Err(Error::Invalid(what));
    }
    let started = Instant::now();
    let watched = Watched::new(backend);
    let below = format!("{prefix}probe/with-{name}/");
    let run = Run { backend: &watched, below, next: AtomicU64::new(0) };
    let found = Pair::meet(run, environment).await;
    let done = match found {
        Ok(mut pair) => {
            let done = pair.all(progress).await;
            if let Err(e) = &done {
                pair.fail(e).await;
            }
            done
        }
        Err(e) => Err(e),
    };
    watched.clean_up(AT_ONCE).await;
    let (requests, took) = (watched.requests(), started.elapsed());
    Ok(ProbeReport { checks: done?, quoting: None, delete_if: false, requests, took })
}

/// One of two machines.
struct Pair<'r> {
    run: Run<'r>,
    environment: &'r dyn Environment,
    /// 0 or 1: which of both this is.
    me: usize,
    /// Steps so far.
    step: usize,
}

impl<'r> Pair<'r> {
    /// Waits for the other machine.
    async fn meet(run: Run<'r>, environment: &'r dyn Environment) -> Result<Self> {
        let mine = run.key(&format!("here/{}", environment.draw()?));
        run.backend.put_new(&mine, run.fresh("here")).await?;
        let here = run.key("here/");
        let look = async || {
            let page = run.backend.list(&here, None, false, 3).await?;
            Ok((page.keys.len() > 1).then_some(page.keys))
        };
        let keys = wait(environment, MEETING, look).await?;
        match keys.iter().position(|listed| listed.key == mine) {
            Some(me) if keys.len() == 2 => Ok(Self { run, environment, me, step: 0 }),
            _ => Err(Error::Invalid(
                "more than two machines were given this name, or one broke off before; take another"
                    .into(),
            )),
        }
    }

    async fn all(&mut self, progress: Progress<'_>) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        for (part, what) in [
            "both read and list at once what the other wrote",
            "of two machines that create one wins",
            "of two machines that replace one wins",
        ]
        .into_iter()
        .enumerate()
        {
            let (started, before) = (Instant::now(), self.run.backend.requests());
            let found = match part {
                0 => self.seen().await?,
                1 => self.races(false).await?,
                _ => self.races(true).await?,
            };
            let requests = self.run.backend.requests() - before;
            let check = Check { what, found, requests, took: started.elapsed() };
            progress(&check);
            checks.push(check);
        }
        self.part().await?;
        Ok(checks)
    }

    fn word(&self, side: usize) -> String {
        self.run.key(&format!("step/{:03}/{side}", self.step))
    }

    /// Says `mine`, and waits for what the other says in the same step.
    async fn say(&mut self, mine: Bytes) -> Result<Bytes> {
        self.step += 1;
        self.run.backend.put_new(&self.word(self.me), mine).await?;
        self.hear().await
    }

    async fn hear(&self) -> Result<Bytes> {
        let key = self.word(1 - self.me);
        let look = async || Ok(self.run.get(&key).await?.map(|found| found.bytes.whole()));
        let said = wait(self.environment, STEP, look).await?;
        match said.strip_prefix(FAILED) {
            Some(why) => {
                let why = String::from_utf8_lossy(why);
                Err(Error::Invalid(format!("the other machine ended: {why}")))
            }
            None => Ok(said),
        }
    }

    /// Both end well. The first hears the second out before it answers, and the second deletes the answer:
    /// so none deletes what the other waits for.
    async fn part(&mut self) -> Result<()> {
        let end = Bytes::from_static(b"end");
        if self.me == 1 {
            self.say(end).await?;
            return self.run.backend.delete(&self.word(0)).await;
        }
        self.step += 1;
        self.hear().await?;
        self.run.backend.unwatched().put_new(&self.word(0), end).await
    }

    /// Lets the other know, and leaves it the time to read that and what was said before.
    async fn fail(&mut self, why: &Error) {
        self.step += 1;
        let word = [FAILED, why.to_string().as_bytes()].concat();
        if self.run.backend.put_new(&self.word(self.me), word.into()).await.is_ok() {
            self.environment.sleep(10 * LONGEST).await;
        }
    }

    /// Rounds in which each creates a key, replaces and deletes it, and the other looks each time: what it
    /// saw before must not be shown again.
    async fn seen(&mut self) -> Result<Option<String>> {
        let name = if self.me == 0 { "first" } else { "second" };
        for round in 0..SEEN {
            let folder = |side: usize| self.run.key(&format!("seen/{round}/{side}/"));
            let (key, other) = (format!("{}k!", folder(self.me)), folder(1 - self.me));
            self.sees(&other, Bytes::new()).await?;
            let mine = self.run.fresh(name);
            let tag = self.run.made(&key, &mine).await?;
            self.sees(&other, mine).await?;
            let mine = self.run.fresh(name);
            let put = self.run.put(&key, Some(&tag), &mine).await?;
            put.ok_or_else(|| fails("a key that nobody else writes cannot be replaced"))?;
            self.sees(&other, mine).await?;
            self.run.backend.delete(&key).await?;
            self.sees(&other, Bytes::new()).await?;
        }
        Ok(None)
    }

    /// Says what this machine's key holds, none for nothing, and looks into the other's folder.
    async fn sees(&mut self, folder: &str, mine: Bytes) -> Result<()> {
        let theirs = Some(self.say(mine).await?).filter(|theirs| !theirs.is_empty());
        let key = format!("{folder}k!");
        let found = self.run.holds(&key, theirs.as_ref(), WHEN).await?;
        let listed = self.run.backend.list(folder, None, false, 9).await?.keys;
        let listed: Vec<Tag> = listed.into_iter().map(|listed| listed.tag).collect();
        let there: Vec<Tag> = found.into_iter().map(|found| found.tag).collect();
        require(listed == there, format!("a listing shows what was before {WHEN}"))?;
        // Neither goes on before the other has looked.
        self.say(Bytes::from_static(b"seen")).await.map(drop)
    }

    /// Rounds of writes under one condition. Says how many each machine won.
    async fn races(&mut self, replace: bool) -> Result<Option<String>> {
        let chain = self.run.key("replaced!");
        if replace && self.me == 0 {
            self.run.made(&chain, &self.run.fresh("first")).await?;
        }
        let mut wins = [0, 0];
        for round in 0..ROUNDS {
            let key = match replace {
                true => chain.clone(),
                false => self.run.key(&format!("created/{round}!")),
            };
            // What the first made is there for the second.
            self.say(Bytes::from_static(b"ready")).await?;
            if let Some(side) = self.race(&key, replace).await? {
                wins[side] += 1;
            }
        }
        let [mine, theirs] = [wins[self.me], wins[1 - self.me]];
        require(mine + theirs >= ROUNDS / 2, "several writes at once are all refused")?;
        Ok(Some(format!("{mine} won here, {theirs} by the other")))
    }

    /// A round: which side won. What it wrote stays.
    async fn race(&mut self, key: &str, replace: bool) -> Result<Option<usize>> {
        let before = self.run.get(key).await?;
        require(before.is_some() == replace, "a machine reads other than what is there")?;
        let tag = before.as_ref().map(|found| &found.tag);
        let seen = Bytes::from(tag.map_or_else(String::new, Tag::to_string));
        let same = self.say(seen.clone()).await? == seen;
        require(same, "two machines read different contents of a key that nobody changes")?;
        let mine = self.writes(key, tag).await?;
        let theirs = self.say(said(&mine)).await?;
        let all = [heard(&theirs, 1 - self.me)?, mine].concat();
        let found = self.run.get(key).await?;
        judge(&all, before.as_ref(), found.as_ref())
    }

    /// Writes in waves, all under one condition; each text with what came of it.
    async fn writes(&self, key: &str, tag: Option<&Tag>) -> Result<Vec<Wrote>> {
        let mut all = Vec::new();
        for _ in 0..WAVES {
            let name = if self.me == 0 { "first" } else { "second" };
            let texts: Vec<Bytes> = (0..races::AT_ONCE).map(|_| self.run.fresh(name)).collect();
            let puts = texts.iter().map(|text| self.run.backend.put_if(key, tag, text.clone()));
            for (text, put) in texts.iter().zip(join_all(puts).await) {
                let came = match put? {
                    Put::Done(_) => DONE,
                    Put::NotDone => REFUSED,
                    Put::Unknown(_) => UNKNOWN,
                };
                all.push(Wrote { side: self.me, came, text: text.clone() });
            }
        }
        Ok(all)
    }
}

/// What a machine's last word begins with if something went wrong.
const FAILED: &[u8] = b"failed: ";

const DONE: u8 = b'd';
const REFUSED: u8 = b'r';
const UNKNOWN: u8 = b'u';

/// A write of a round.
#[derive(Clone)]
struct Wrote {
    side: usize,
    came: u8,
    text: Bytes,
}

/// How a machine says what its writes came to: a line for each.
fn said(all: &[Wrote]) -> Bytes {
    let mut out = Vec::new();
    for wrote in all {
        out.push(wrote.came);
        out.extend_from_slice(&wrote.text);
        out.push(b'\n');
    }
    out.into()
}

fn heard(said: &Bytes, side: usize) -> Result<Vec<Wrote>> {
    let lines = said.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    let read = |line: &[u8]| match line {
        [came @ (DONE | REFUSED | UNKNOWN), text @ ..] => {
            Ok(Wrote { side, came: *came, text: Bytes::copy_from_slice(text) })
        }
        _ => Err(fails("other bytes are read of what another machine wrote before")),
    };
    lines.map(read).collect()
}

/// Which side won a round, if what is there is what one order of these writes leaves.
fn judge(all: &[Wrote], before: Option<&Found>, now: Option<&Found>) -> Result<Option<usize>> {
    let done: Vec<&Wrote> = all.iter().filter(|wrote| wrote.came == DONE).collect();
    require(done.len() <= 1, format!("{} of two machines' writes win at once", done.len()))?;
    let is = |text: &Bytes| now.is_some_and(|now| now.bytes == *text);
    let wrote = all.iter().find(|wrote| is(&wrote.text));
    match (done.first(), wrote) {
        (Some(done), Some(wrote)) if done.text == wrote.text => Ok(Some(done.side)),
        (Some(_), _) => Err(fails("what the winner of two machines wrote does not stay")),
        (None, Some(wrote)) if wrote.came == UNKNOWN => Ok(Some(wrote.side)),
        (None, Some(_)) => {
            Err(fails("a write that was refused takes effect beside another machine"))
        }
        (None, None) if now.map(|f| &f.bytes) == before.map(|f| &f.bytes) => Ok(None),
        (None, None) => Err(fails("what was there is lost when two machines write at once")),
    }
}

/// Looks again and again, until something is found.
async fn wait<T>(
    environment: &dyn Environment,
    most: Duration,
    look: impl AsyncFn() -> Result<Option<T>>,
) -> Result<T> {
    let (started, mut pause) = (environment.now(), SHORTEST);
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if environment.now().saturating_sub(started) > most {
            let why = format!("nothing for {} seconds; look what it said", most.as_secs());
            let source = std::io::Error::new(std::io::ErrorKind::TimedOut, why);
            return Err(Error::io("waiting for the other machine", source));
        }
        environment.sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

#[cfg(test)]
#[path = "../tests/peer.rs"]
mod tests;
