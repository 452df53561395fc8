//! Rule 15: a reader holds what it reads.
//!
//! Owns: the order of its requests, and until when it may expect its blobs.

use crate::bucket::{Answer, Request, Way};
use crate::client::{confirm, object};
use crate::process::{Asked, Halt, Stage, Talk};
use crate::record::{Blobs, Intent, Name, Op, State, Tag};
use crate::rules::Mutation;

/// How long a hold is, by the server's clock.
const LONG: u16 = 1;

/// What a reader holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    pub blobs: Blobs,
    /// They may be expected before this second.
    pub ends: u16,
    name: Name,
    is_extended: bool,
}

/// Holds the version that an object has.
pub fn start(talk: &mut Talk<'_>, name: Name) -> Asked<Stage> {
    let mut source = object(talk, name)?;
    let blobs = source.1.live.clone();
    if blobs.is_empty() {
        return Err(Halt::Stop);
    }
    if talk.lacks(Mutation::R15Order) {
        source.0 = confirm(talk, name, &source)?;
    }
    // The reader's clock is as slow as can be.
    let intent = hold(talk, name, &blobs, 0);
    let (op, tag) = (talk.op, intent.tag);
    talk.settle(|| Request::PutIntent(op, intent.clone(), Way::New))?;
    let found = own(talk, tag)?.ok_or(Halt::Stop)?;
    let ends = found.date + LONG;
    // By the server's clock it ends later.
    if !talk.lacks(Mutation::R15Clock) {
        let until = hold(talk, name, &blobs, ends);
        if !put(talk, tag, until)? {
            return Err(Halt::Stop);
        }
    }
    if !talk.lacks(Mutation::R15Order) {
        confirm(talk, name, &source)?;
    }
    Ok(Stage::Held(Held { blobs, ends, name, is_extended: false }))
}

fn hold(talk: &mut Talk<'_>, target: Name, blobs: &Blobs, ends: u16) -> Intent {
    Intent { ends: Some(ends), ..Intent::open(talk.tag(), target, Some(blobs.clone())) }
}

/// The intent, if it is open and has this tag.
fn own(talk: &mut Talk<'_>, tag: Tag) -> Asked<Option<Intent>> {
    Ok(talk.intent(talk.op)?.filter(|found| found.tag == tag && found.state == State::Open))
}

/// Replaces the intent; whether nobody condemned it before.
fn put(talk: &mut Talk<'_>, base: Tag, intent: Intent) -> Asked<bool> {
    let (op, tag) = (talk.op, intent.tag);
    let answer = talk.ask(|| Request::PutIntentIf(op, base, intent.clone()))?;
    Ok(answer == Answer::Done || own(talk, tag)?.is_some())
}

/// Reads; then holds for longer, once; then ends.
pub fn go_on(talk: &mut Talk<'_>, held: &Held, extends: bool) -> Asked<Stage> {
    if let Some(blob) = held.blobs.first() {
        talk.ask(|| Request::GetBlob(blob.key()))?;
    }
    if !extends || held.is_extended {
        return Ok(Stage::Release(talk.op));
    }
    let found = talk.intent(talk.op)?.filter(|found| found.state == State::Open);
    let Some(found) = found else { return Ok(Stage::Release(talk.op)) };
    let ends = held.ends + LONG;
    let longer = hold(talk, held.name, &held.blobs, ends);
    let op = talk.op;
    let is_held = if talk.lacks(Mutation::R15Over) {
        talk.settle(|| Request::PutIntent(op, longer.clone(), Way::Over))? == Answer::Done
    } else {
        put(talk, found.tag, longer)?
    };
    if !is_held {
        return Ok(Stage::Release(talk.op));
    }
    Ok(Stage::Held(Held { ends, is_extended: true, ..held.clone() }))
}

/// A reader that is ready removes its intent.
pub fn release(talk: &mut Talk<'_>, op: Op) -> Asked<Stage> {
    talk.settle(|| Request::DeleteIntent(op))?;
    Ok(Stage::End)
}

/// gc and a hold: one that ended is condemned, so that its reader cannot hold on, and removed.
pub fn collect(talk: &mut Talk<'_>, op: Op, intent: &Intent, began: u16) -> Asked<()> {
    let is_over = intent.ends.is_none_or(|ends| ends <= began);
    if intent.state == State::Open && !is_over && !talk.lacks(Mutation::R15Early) {
        return Ok(());
    }
    if intent.state == State::Open
        && !talk.lacks(Mutation::R15Condemn)
        && crate::gc::condemn(talk, op, intent)?.is_none()
    {
        return Ok(());
    }
    if !talk.lacks(Mutation::R15Removed) {
        talk.settle(|| Request::DeleteIntent(op))?;
    }
    Ok(())
}

/// Whether gc counts what an intent names, at the end of its cycle.
pub fn counts(talk: &Talk<'_>, intent: &Intent, began: u16) -> bool {
    match intent.ends {
        None => !talk.lacks(Mutation::R11Intents),
        Some(_) if talk.lacks(Mutation::R15Intents) => false,
        // It may be held for longer since the cycle looked.
        Some(ends) if talk.lacks(Mutation::R15Passed) => ends > began,
        Some(_) => true,
    }
}
