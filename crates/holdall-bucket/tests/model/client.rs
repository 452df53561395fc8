//! What users do: puts, edits, deletions, copies, renames; and what editors clear away.
//!
//! Owns: the order of requests before and after the conditional write.

use crate::bucket::{Answer, Put, Read, Request, Tagged, Way};
use crate::commit::{Commit, rewrite, see_open};
use crate::hold;
use crate::process::{Asked, Halt, Outcome, Script, Stage, Talk};
use crate::record::{Blob, Blobs, Change, Intent, Name, Op, Record, State, Tag};
use crate::rules::Mutation;
use crate::tree::{self, Absent, deepest_first, reach};
use std::sync::Arc;

pub fn start(talk: &mut Talk<'_>, script: &Script) -> Asked<Stage> {
    let op = talk.op;
    match *script {
        Script::PutSmall(name) => {
            Ok(Stage::Commit(Commit::new(op, name, None, Change::Whole(Blobs::new()))))
        }
        Script::Put { name, intent_first, .. } => start_put(talk, name, intent_first),
        Script::Edit { name, keep, blob } => {
            let base = object(talk, name)?;
            if blob {
                let tag = announce(talk, name)?;
                return Ok(Stage::Blobs(Some(base), tag));
            }
            Ok(Stage::Commit(Commit::new(op, name, Some(base), Change::Pieces(keep, None))))
        }
        Script::Delete(name) => {
            let base = object(talk, name)?;
            Ok(Stage::Commit(Commit::new(op, name, Some(base), Change::Gone)))
        }
        Script::Copy { from, to, rename } => copy(talk, from, to, rename),
        Script::Tree(plan) => tree::start(talk, plan),
        Script::Purge(name) => {
            // Only who sees at once all that the record names and retired.
            let alone = |found: &Tagged| {
                !found.1.live.iter().chain(&found.1.retired).any(|entry| entry.is_whole())
            };
            if let Some(found) = talk.read(name)?.filter(alone) {
                purge(talk, name, &found)?;
            }
            Ok(Stage::End)
        }
        Script::Hold { name, .. } => hold::start(talk, name),
        Script::Clock => {
            talk.ask(|| Request::Tick)?;
            Ok(Stage::End)
        }
        Script::Gc | Script::Full => Ok(Stage::End),
    }
}

/// An object that is there.
pub fn object(talk: &mut Talk<'_>, name: Name) -> Asked<Tagged> {
    talk.read(name)?.filter(|(_, record)| !record.gone).ok_or(Halt::Stop)
}

/// The blobs that a script writes.
fn blobs_of(op: Op, script: &Script) -> Blobs {
    let count = if let Script::Put { blobs, .. } = script { *blobs } else { 1 };
    (0..count).map(|number| Blob(op, number)).collect()
}

/// Base and intent, in either order.
fn start_put(talk: &mut Talk<'_>, name: Name, intent_first: bool) -> Asked<Stage> {
    if talk.lacks(Mutation::R04Absent) {
        let base = talk.read(name)?;
        return Ok(Stage::Blobs(base, put_intent(talk, name, None, Way::New)?));
    }
    if !intent_first {
        let base = base_or_placeholder(talk, name)?;
        let tag = announce(talk, name)?;
        return Ok(Stage::Blobs(Some(base), tag));
    }
    let tag = announce(talk, name)?;
    let before = talk.lacks(Mutation::R05Order);
    let mut is_open = !before || see_open(talk, talk.op)?;
    let base = base_or_placeholder(talk, name)?;
    // Rule 5.
    is_open = if before { is_open } else { see_open(talk, talk.op)? };
    if is_open { Ok(Stage::Blobs(Some(base), tag)) } else { Err(Halt::Stop) }
}

/// The record of a name. Rule 4: if there is none, a gone one is put there first.
pub fn base_or_placeholder(talk: &mut Talk<'_>, name: Name) -> Asked<Tagged> {
    let incarnation = talk.tag();
    let mut tag = incarnation;
    for _ in 0..talk.setting.sends + 1 {
        if let Some(found) = talk.read(name)? {
            return Ok(found);
        }
        let record = Record::placeholder(incarnation);
        if !talk.lacks(Mutation::R01Create) {
            tag = talk.tag();
        }
        let put = || Put {
            name,
            base: None,
            tag,
            record: record.clone(),
            change: None,
            first_sent: None,
        };
        if talk.ask(|| Request::PutIf(Arc::new(put())))? == Answer::Done {
            return Ok((tag, Arc::new(record)));
        }
    }
    Err(Halt::Stop)
}

/// Rule 3: the intent to write, before the first blob.
fn announce(talk: &mut Talk<'_>, name: Name) -> Asked<Tag> {
    if talk.lacks(Mutation::R03Blob) {
        put_blobs(talk, &Blobs::from([Blob(talk.op, 0)]))?;
    }
    put_intent(talk, name, None, Way::New)
}

/// Writes the intent. Sent again, it must find its own, open, and it is not sent again after the
/// grace.
pub fn put_intent(talk: &mut Talk<'_>, target: Name, tops: Option<Blobs>, way: Way) -> Asked<Tag> {
    let (tag, op) = (talk.tag(), talk.op);
    let way = match way {
        Way::New if talk.lacks(Mutation::R03Over) => Way::Over,
        Way::New if talk.lacks(Mutation::R03Late) => Way::Absent,
        way => way,
    };
    let intent = || Intent::open(tag, target, tops.clone());
    match talk.settle(|| Request::PutIntent(op, intent(), way))? {
        Answer::Done => return Ok(tag),
        Answer::TooLate => return Err(Halt::Stop),
        _ => {}
    }
    let found = talk.intent(op)?;
    let is_mine = found.is_some_and(|found| found.tag == tag && found.state == State::Open);
    if is_mine { Ok(tag) } else { Err(Halt::Stop) }
}

pub fn put_blobs(talk: &mut Talk<'_>, blobs: &Blobs) -> Asked<()> {
    for blob in blobs {
        talk.settle(|| Request::PutBlob(*blob))?;
    }
    Ok(())
}

/// The blobs, and the renewal of the intent by those that take long.
pub fn blobs(talk: &mut Talk<'_>, script: &Script, base: &Read, intent: Tag) -> Asked<Stage> {
    let (op, blobs) = (talk.op, blobs_of(talk.op, script));
    if !talk.lacks(Mutation::R03First) {
        put_blobs(talk, &blobs)?;
    }
    let (name, change) = match *script {
        Script::Put { name, renew, .. } => {
            if renew {
                renew_intent(talk, name, intent)?;
            }
            (name, Change::Whole(blobs))
        }
        Script::Edit { name, keep, .. } => (name, Change::Pieces(keep, Some(Blob(op, 0)))),
        _ => return Ok(Stage::End),
    };
    if talk.lacks(Mutation::R08Early) {
        talk.settle(|| Request::DeleteIntent(op))?;
    }
    Ok(Stage::Commit(Commit::new(op, name, base.clone(), change)))
}

/// An intent is renewed only if nobody condemned it.
fn renew_intent(talk: &mut Talk<'_>, target: Name, old: Tag) -> Asked<()> {
    let (tag, op) = (talk.tag(), talk.op);
    let intent = || Intent::open(tag, target, None);
    let answer = if talk.lacks(Mutation::R05Renew) {
        talk.settle(|| Request::PutIntent(op, intent(), Way::Over))?
    } else {
        talk.ask(|| Request::PutIntentIf(op, old, intent()))?
    };
    if answer == Answer::Done || talk.intent(op)?.is_some_and(|found| found.tag == tag) {
        return Ok(());
    }
    Err(Halt::Stop)
}

/// Rule 6: the intent, then the source once more, then the target.
fn copy(talk: &mut Talk<'_>, from: Name, to: Name, rename: bool) -> Asked<Stage> {
    let source = object(talk, from)?;
    if from == to || source.1.live.is_empty() {
        return Err(Halt::Stop);
    }
    let target = base_or_placeholder(talk, to)?;
    let tops = source.1.live.clone();
    let tag = if talk.lacks(Mutation::R06Order) {
        let tag = confirm(talk, from, &source)?;
        put_intent(talk, to, Some(tops.clone()), Way::New)?;
        tag
    } else {
        put_intent(talk, to, Some(tops.clone()), Way::New)?;
        confirm(talk, from, &source)?
    };
    let mut commit = Commit::new(talk.op, to, Some(target), Change::Share(tops));
    commit.then = rename.then_some((from, tag));
    Ok(Stage::Commit(commit))
}

/// That the source still is what was read, and flagged; its tag.
pub fn confirm(talk: &mut Talk<'_>, from: Name, source: &Tagged) -> Asked<Tag> {
    let (tag, record) = source;
    if !record.shared {
        if talk.lacks(Mutation::R06Flag) {
            return Ok(*tag);
        }
        if talk.lacks(Mutation::R15Flag) && matches!(talk.script, Script::Hold { .. }) {
            return still(talk, from, *tag);
        }
        let flagged = Record { shared: true, ..record.as_ref().clone() };
        return rewrite(talk, from, source, flagged)?.ok_or(Halt::Stop);
    }
    if talk.lacks(Mutation::R06Read) {
        return Ok(*tag);
    }
    still(talk, from, *tag)
}

fn still(talk: &mut Talk<'_>, from: Name, tag: Tag) -> Asked<Tag> {
    let found = talk.read(from)?;
    if found.is_some_and(|found| found.0 == tag) { Ok(tag) } else { Err(Halt::Stop) }
}

/// Rule 8: a writer that succeeded removes its intent. A rename goes on.
pub fn finish(
    talk: &mut Talk<'_>,
    script: &Script,
    (op, outcome): (Op, Outcome),
    then: Option<(Name, Tag)>,
) -> Asked<Stage> {
    let writes = match script {
        Script::Put { .. } | Script::Edit { blob: true, .. } => true,
        Script::Tree(plan) => plan.writes(),
        _ => false,
    };
    let succeeded = outcome == Outcome::Done || talk.lacks(Mutation::R08Loss);
    let removes = match script {
        _ if writes => succeeded,
        Script::Copy { .. } => {
            op == talk.op && outcome == Outcome::Done && talk.lacks(Mutation::R08Share)
        }
        _ => false,
    };
    if talk.lacks(Mutation::R03First) && writes && outcome == Outcome::Done {
        put_blobs(talk, &blobs_of(op, script))?;
    }
    if removes {
        talk.settle(|| Request::DeleteIntent(op))?;
    }
    Ok(match then {
        Some((name, tag)) if outcome == Outcome::Done => Stage::Unname(name, tag),
        _ => Stage::End,
    })
}

/// The deletion at the end of a rename, if the source is what was copied.
pub fn unname(talk: &mut Talk<'_>, name: Name, tag: Tag) -> Asked<Stage> {
    let op = Op(talk.op.0 + 1);
    let Some(found) = talk.read(name)?.filter(|found| found.0 == tag) else {
        return Ok(Stage::Finish(op, Outcome::Lost, None));
    };
    let commit = Commit { once: true, ..Commit::new(op, name, Some(found), Change::Gone) };
    Ok(Stage::Commit(commit))
}

/// Rule 10: blobs that an object retired, deleted before its entries are taken out.
pub fn purge(talk: &mut Talk<'_>, name: Name, found: &Tagged) -> Asked<()> {
    let record = found.1.as_ref();
    let is_others = record.shared && !talk.lacks(Mutation::R10Shared);
    if is_others || record.retired.is_empty() {
        return Ok(());
    }
    let without = Record { retired: Blobs::new(), ..record.clone() };
    if talk.lacks(Mutation::R10First) {
        rewrite(talk, name, found, without.clone())?;
    }
    let retired = match talk.lacks(Mutation::R10Below) {
        true => record.retired.iter().map(|entry| entry.key()).collect(),
        false => reach(talk, &record.retired, Absent::Skipped)?,
    };
    let live = reach(talk, &record.live, Absent::Refused)?;
    let needed = |blob: &&Blob| live.contains(blob) && !talk.setting.lacks(Mutation::R10Live);
    let doomed: Blobs = retired.iter().filter(|blob| !needed(blob)).copied().collect();
    for blob in deepest_first(talk, &doomed, &record.retired) {
        talk.settle(|| Request::DeleteBlob(blob))?;
    }
    if !talk.lacks(Mutation::R10First) {
        rewrite(talk, name, found, without)?;
    }
    Ok(())
}
