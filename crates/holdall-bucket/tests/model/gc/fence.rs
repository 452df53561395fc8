//! Rule 9: what became of an operation whose intent is old.

use crate::bucket::{Answer, Request};
use crate::commit::rewrite_as;
use crate::process::{Asked, Talk};
use crate::record::{Intent, Op, State, Tag};
use crate::rules::Mutation;
use crate::tree::{Absent, reach};

/// What a fence found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    Shown,
    Never,
    /// Others wrote the record again and again.
    Unclear,
}

/// Makes the intent condemned; its tag then. None if another did something with it.
pub fn condemn(talk: &mut Talk<'_>, op: Op, intent: &Intent) -> Asked<Option<Tag>> {
    if talk.lacks(Mutation::R09Condemn) {
        return Ok(Some(intent.tag));
    }
    let tag = talk.tag();
    let condemned = || Intent { tag, state: State::Condemned, ..intent.clone() };
    match talk.ask(|| Request::PutIntentIf(op, intent.tag, condemned()))? {
        Answer::Done => Ok(Some(tag)),
        Answer::Unknown(_) => Ok(talk.intent(op)?.filter(|i| i.tag == tag).map(|i| i.tag)),
        _ => Ok(None),
    }
}

/// Looks for the operation in its target, and makes sure that it never gets there.
pub fn fence(talk: &mut Talk<'_>, op: Op, intent: &Intent) -> Asked<Fence> {
    let target = intent.target;
    for _ in 0..talk.setting.tries {
        let Some((tag, record)) = talk.read(target)? else { return Ok(Fence::Never) };
        let (live, retired) = match talk.lacks(Mutation::R09Below) {
            true => (record.live.clone(), record.retired.clone()),
            false => (
                reach(talk, &record.live, Absent::Refused)?,
                reach(talk, &record.retired, Absent::Skipped)?,
            ),
        };
        if record.shows(op, &live, &retired, talk.setting) {
            return Ok(Fence::Shown);
        }
        let is_share = intent.tops.is_some();
        if talk.lacks(Mutation::R09Fence) || is_share && talk.lacks(Mutation::R09Share) {
            return Ok(Fence::Never);
        }
        let new = if talk.lacks(Mutation::R01Rewrite) { tag } else { talk.tag() };
        if rewrite_as(talk, target, tag, (new, record.as_ref().clone()))?.is_some() {
            return Ok(Fence::Never);
        }
    }
    Ok(Fence::Unclear)
}
