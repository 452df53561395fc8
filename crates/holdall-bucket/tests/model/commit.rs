//! Rules 1 and 2: the conditional write of a record, and what every answer to it means.
//!
//! Owns: [`Commit`], a change on its way into a record, which begins anew on what it finds if it
//! lost; and [`rewrite`], a record written again with the same changes.

use crate::bucket::{Answer, Put, Read, Request, Tagged, Way};
use crate::client::{base_or_placeholder, put_blobs, put_intent};
use crate::process::{Asked, Outcome, Stage, Talk};
use crate::record::{Change, Name, Op, Record, State, Tag};
use crate::rules::Mutation;
use std::sync::Arc;

/// A change on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit {
    pub op: Op,
    pub name: Name,
    /// The record that it changes.
    pub base: Read,
    pub change: Change,
    /// How often it began anew.
    pub tries: u8,
    /// It must not begin anew.
    pub once: bool,
    /// When a create of it was first sent.
    pub first_sent: Option<u16>,
    /// What a rename removes afterwards.
    pub then: Option<(Name, Tag)>,
}

impl Commit {
    pub fn new(op: Op, name: Name, base: Read, change: Change) -> Self {
        Self { op, name, base, change, tries: 0, once: false, first_sent: None, then: None }
    }

    fn end(&self, outcome: Outcome) -> Stage {
        Stage::Finish(self.op, outcome, self.then)
    }
}

/// What a read after an answer says about a change.
enum Said {
    Done,
    /// The base is still there: what was sent may arrive or not.
    Open,
    Lost,
    /// It may have been applied, and what shows it is gone.
    Unclear,
}

/// Sends the record until it is known what became of it.
pub fn run(talk: &mut Talk<'_>, commit: &Commit) -> Asked<Stage> {
    let mut tag = talk.tag();
    let base = commit.base.as_ref().map(|(_, record)| record.as_ref());
    let Some(record) = commit.change.apply(base, commit.op, tag, talk.setting) else {
        return Ok(commit.end(Outcome::Lost));
    };
    let (mut mine, mut first_sent) = (Vec::new(), commit.first_sent);
    for send in 0..talk.setting.sends {
        if commit.base.is_none() && send > 0 && !talk.lacks(Mutation::R01Create) {
            tag = talk.tag();
        }
        mine.push(tag);
        let deadline = first_sent.filter(|_| !talk.lacks(Mutation::R02Late));
        match talk.ask(|| put(commit, tag, &record, deadline))? {
            Answer::Done => return Ok(commit.end(Outcome::Done)),
            Answer::NotDone(sent) | Answer::Unknown(sent) if commit.base.is_none() => {
                first_sent.get_or_insert(sent);
            }
            Answer::TooLate => return Ok(commit.end(Outcome::Unknown)),
            _ => {}
        }
        let (found, void) = talk.read_at(commit.name)?;
        let is_fresh = first_sent.is_none_or(|sent| sent >= void);
        match said(talk, commit, &mine, &found, is_fresh) {
            Said::Done => return Ok(commit.end(Outcome::Done)),
            Said::Unclear => return Ok(commit.end(Outcome::Unknown)),
            Said::Lost => {
                let commit = Commit { first_sent, ..commit.clone() };
                return anew(talk, commit, found);
            }
            Said::Open => {}
        }
    }
    let doubt = if talk.lacks(Mutation::R02Conflict) { Outcome::Lost } else { Outcome::Unknown };
    Ok(commit.end(doubt))
}

fn put(commit: &Commit, tag: Tag, record: &Record, first_sent: Option<u16>) -> Request {
    let base = commit.base.as_ref().map(|(tag, _)| *tag);
    let first_sent = first_sent.filter(|_| base.is_none());
    let (name, change, record) = (commit.name, Some(commit.op), record.clone());
    Request::PutIf(Arc::new(Put { name, base, tag, record, change, first_sent }))
}

/// `is_fresh`: the first create of it is younger than the grace.
fn said(talk: &Talk<'_>, commit: &Commit, mine: &[Tag], found: &Read, is_fresh: bool) -> Said {
    let base = commit.base.as_ref();
    let Some((tag, record)) = found else {
        return match base {
            None => Said::Open,
            Some(_) if talk.lacks(Mutation::R02Proof) => Said::Lost,
            Some(_) => Said::Unclear,
        };
    };
    let is_recent = record.recent.contains(&commit.op) && !talk.lacks(Mutation::R02Recent);
    if mine.contains(tag) || is_recent {
        return Said::Done;
    }
    let is_proven = match base {
        Some((base, _)) if base == tag => return Said::Open,
        Some((_, base)) => {
            let later = record.change.saturating_sub(base.change);
            record.incarnation == base.incarnation && usize::from(later) <= talk.setting.recent
        }
        // Nobody else draws this incarnation: the create was applied, and others went on from it.
        None if mine.contains(&record.incarnation) && !talk.lacks(Mutation::R02Own) => {
            return Said::Done;
        }
        // Had it been applied, no other could have been since: a record is removed only when it
        // is older than the grace.
        None => is_fresh,
    };
    if is_proven || talk.lacks(Mutation::R02Proof) { Said::Lost } else { Said::Unclear }
}

/// Begins anew on what was found.
fn anew(talk: &mut Talk<'_>, mut commit: Commit, found: Read) -> Asked<Stage> {
    commit.tries += 1;
    if commit.once || commit.tries >= talk.setting.tries {
        return Ok(commit.end(Outcome::Lost));
    }
    commit.base = found;
    if !commit.change.brings_blobs() {
        return Ok(Stage::Commit(commit));
    }
    if talk.lacks(Mutation::R05Order) {
        // Before the base, which is read again.
        let is_open = see_open(talk, commit.op)?;
        commit.base = talk.read(commit.name)?;
        return Ok(if is_open { Stage::Commit(commit) } else { commit.end(Outcome::Lost) });
    }
    if commit.base.is_none() {
        commit.base = Some(base_or_placeholder(talk, commit.name)?);
    }
    if see_open(talk, commit.op)? {
        return Ok(Stage::Commit(commit));
    }
    if talk.lacks(Mutation::R03Again)
        && let Change::Whole(blobs) = &commit.change
    {
        put_intent(talk, commit.name, None, Way::Over)?;
        put_blobs(talk, blobs)?;
        return Ok(Stage::Commit(commit));
    }
    Ok(commit.end(Outcome::Lost))
}

/// Rule 5: whether the intent is open.
pub fn see_open(talk: &mut Talk<'_>, op: Op) -> Asked<bool> {
    if talk.lacks(Mutation::R05Check) {
        return Ok(true);
    }
    let intent = talk.intent(op)?;
    Ok(intent.is_some_and(|intent| intent.state == State::Open))
}

/// Writes a record over the base without a change of its object; its tag then, if it won.
pub fn rewrite(
    talk: &mut Talk<'_>,
    name: Name,
    base: &Tagged,
    record: Record,
) -> Asked<Option<Tag>> {
    let tag = talk.tag();
    rewrite_as(talk, name, base.0, (tag, record))
}

/// The same with a tag at hand.
pub fn rewrite_as(
    talk: &mut Talk<'_>,
    name: Name,
    base: Tag,
    (tag, record): (Tag, Record),
) -> Asked<Option<Tag>> {
    for _ in 0..talk.setting.sends {
        let put = || Put {
            name,
            base: Some(base),
            tag,
            record: record.clone(),
            change: None,
            first_sent: None,
        };
        if talk.ask(|| Request::PutIf(Arc::new(put())))? == Answer::Done {
            return Ok(Some(tag));
        }
        match talk.read(name)? {
            Some((found, _)) if found == tag => return Ok(Some(tag)),
            Some((found, _)) if found == base => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}
