//! What several ask at once, each over a connection of its own.
//!
//! A round is four requests under one condition that can hold for one of them only. What the winner
//! wrote must be there afterwards for all who read.

use super::{Run, fails, require};
use crate::backend::{Backend, Found, Put, Tag};
use bytes::Bytes;
use futures::future::{join, join_all, poll_fn};
use holdall::Result;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Requests of a round.
pub(super) const AT_ONCE: usize = 4;
/// Rounds.
const ROUNDS: usize = 16;
/// Rounds of a deletion and a replacement.
const DELETE_ROUNDS: usize = 80;
/// Steps by which a deletion is moved, of the time that a write takes.
const STEPS: u32 = 8;
/// Rounds that must have a winner; servers may refuse all that meet.
const DECIDED: usize = ROUNDS / 2;

impl Run<'_> {
    /// Rounds of creates, each of a new key.
    pub(super) async fn create_races(&self) -> Result<Option<String>> {
        let mut decided = 0;
        for round in 0..ROUNDS {
            let key = self.key(&format!("n/created/{round}!"));
            let won = self.race(&key, None).await?;
            decided += usize::from(won.is_some());
        }
        require(decided >= DECIDED, "several creates at once are all refused")?;
        Ok(None)
    }

    /// Rounds of replacements, one behind the other.
    pub(super) async fn replace_races(&self) -> Result<Option<String>> {
        let key = self.key("n/replaced!");
        let mut tag = self.made(&key, &self.fresh("race")).await?;
        let mut decided = 0;
        for _ in 0..ROUNDS {
            if let Some(won) = self.race(&key, Some(&tag)).await? {
                (tag, decided) = (won, decided + 1);
            }
        }
        require(decided >= DECIDED, "several replacements at once are all refused")?;
        Ok(None)
    }

    /// A round: at most one wins, and what it wrote stays. The tag that is there then, if one won.
    async fn race(&self, key: &str, tag: Option<&Tag>) -> Result<Option<Tag>> {
        let before = self.get(key).await?;
        let texts: Vec<Bytes> = (0..AT_ONCE).map(|_| self.fresh("race")).collect();
        let puts = texts.iter().map(|text| self.backend.put_if(key, tag, text.clone()));
        let puts = join_all(puts).await.into_iter().collect::<Result<Vec<Put>>>()?;
        let found = self.all_read(key).await?;
        let of = |found: &Option<Found>| found.as_ref().map(|found| found.bytes.whole());
        let (before, now) = (of(&before), of(&found));
        let done = won(&texts, &puts);
        require(done.len() <= 1, format!("{} of {AT_ONCE} win that write at once", done.len()))?;
        let wrote = texts.iter().zip(&puts).find(|(text, _)| Some(*text) == now.as_ref());
        match (done.first(), wrote) {
            (Some(done), Some((text, _))) if *done == text => Ok(found.map(|found| found.tag)),
            (Some(_), _) => Err(fails("what the winner of several writes wrote does not stay")),
            (None, Some((_, Put::Unknown(_)))) => Ok(found.map(|found| found.tag)),
            (None, Some(_)) => Err(fails("a write that was refused takes effect among several")),
            (None, None) if now == before => Ok(None),
            (None, None) => Err(fails("what was there is lost when several write at once")),
        }
    }

    /// Deletions by a wrong tag and the right one; rounds of a deletion and a replacement. What it finds is
    /// why deletions by tag are not to be used.
    pub(super) async fn delete_by_tag(&self) -> Result<Option<String>> {
        if !self.backend.features().delete_if {
            return Ok(Some("not offered".into()));
        }
        let key = self.key("n/deleted!");
        let old = self.made(&key, &self.fresh("delete")).await?;
        let bytes = self.fresh("delete");
        let put = self.put(&key, Some(&old), &bytes).await?;
        let tag = put.ok_or_else(|| fails("a key cannot be replaced by its tag (If-Match)"))?;
        for wrong in [old, Tag("00000000000000000000000000000000".into())] {
            let Ok(deleted) = self.backend.delete_if(&key, &wrong).await else {
                return Ok(Some("not offered".into()));
            };
            let there = self.get(&key).await?.is_some_and(|found| found.bytes == bytes);
            if deleted || !there {
                return Ok(Some("deletes whatever the tag".into()));
            }
        }
        let Ok(deleted) = self.backend.delete_if(&key, &tag).await else {
            return Ok(Some("not offered".into()));
        };
        if !deleted || self.get(&key).await?.is_some() {
            return Ok(Some("does not delete by the right tag".into()));
        }
        if !self.delete_races().await? {
            return Ok(Some("deletes what was replaced meanwhile".into()));
        }
        Ok(None)
    }

    /// Rounds of a deletion and a replacement. Servers that look at the tag and then delete are found if
    /// the replacement comes between, so the deletion is sent later after each that came first, and
    /// earlier after each that did not: both soon meet. Whether all went well.
    async fn delete_races(&self) -> Result<bool> {
        let key = self.key("n/deletes!");
        let started = Instant::now();
        let mut tag = Some(self.made(&key, &self.fresh("race")).await?);
        let (mut delay, mut step) = (Duration::ZERO, started.elapsed() / STEPS);
        for round in 0..DELETE_ROUNDS {
            let now = match tag {
                Some(tag) => tag,
                None => self.made(&key, &self.fresh("race")).await?,
            };
            let Some(left) = self.delete_race(&key, &now, round % 2 == 0, delay).await? else {
                return Ok(false);
            };
            delay = if left.is_none() { delay + step } else { delay.saturating_sub(step) };
            tag = left;
            // Finer steps where both met.
            step = step * 31 / 32;
        }
        Ok(true)
    }

    /// A round: the tag that is left, if any. `None` if what is left is not what one order would leave.
    async fn delete_race(
        &self,
        key: &str,
        tag: &Tag,
        delete_first: bool,
        delay: Duration,
    ) -> Result<Option<Option<Tag>>> {
        let text = self.fresh("race");
        let put = self.backend.put_if(key, Some(tag), text.clone());
        let delete = async {
            pause(delay).await;
            self.backend.delete_if(key, tag).await
        };
        let (put, deleted) = if delete_first {
            let (deleted, put) = join(delete, put).await;
            (put?, deleted?)
        } else {
            let (put, deleted) = join(put, delete).await;
            (put?, deleted?)
        };
        let Some(left) = self.get(key).await? else {
            return Ok((!matches!(put, Put::Done(_))).then_some(None));
        };
        let replaced = left.bytes == text;
        let right = match put {
            Put::Done(_) => replaced,
            // Both may be refused where they meet.
            Put::NotDone => !replaced,
            Put::Unknown(_) => true,
        };
        Ok((right && !deleted).then_some(Some(left.tag)))
    }
}

/// Lets others go on for a while. Without timers, which belong to an executor; for milliseconds.
async fn pause(time: Duration) {
    let started = Instant::now();
    poll_fn(|context| {
        if started.elapsed() >= time {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// What those wrote who were told that they won.
fn won<'t>(texts: &'t [Bytes], puts: &[Put]) -> Vec<&'t Bytes> {
    let all = texts.iter().zip(puts);
    all.filter(|(_, put)| matches!(put, Put::Done(_))).map(|(text, _)| text).collect()
}
