//! Rule 14: the search for blobs that nobody names and no intent leads to.
//!
//! Owns: its order.

use crate::bucket::{Answer, Request};
use crate::gc::{is_newest, next_cycle};
use crate::process::{Asked, Halt, Stage, Talk};
use crate::record::{Blob, Blobs, Op};
use crate::rules::Mutation;
use crate::tree::{Absent, reach};
use std::collections::BTreeSet;

pub fn run(talk: &mut Talk<'_>) -> Asked<Stage> {
    let (cycle, _) = next_cycle(talk)?;
    let mut active = BTreeSet::new();
    if talk.lacks(Mutation::R14Blobs) {
        active = operations(talk)?;
    }
    let Answer::Blobs(all) = talk.ask(|| Request::ListBlobs(None))? else {
        return Err(Halt::Stop);
    };
    let mut named = Blobs::new();
    if !talk.lacks(Mutation::R14Blobs) && !talk.lacks(Mutation::R14Intents) {
        active = operations(talk)?;
    }
    if talk.lacks(Mutation::R14Shares) {
        named.extend(shares(talk)?);
    }
    for (name, ..) in talk.names()? {
        let found = talk.read(name)?;
        if let Some((_, record)) = found {
            if talk.lacks(Mutation::R14Below) {
                named.extend(record.live.iter().map(|entry| entry.key()));
            } else {
                named.extend(reach(talk, &record.live, Absent::Refused)?);
            }
            if !talk.lacks(Mutation::R14Retired) && !talk.lacks(Mutation::R14Both) {
                named.extend(reach(talk, &record.retired, Absent::Skipped)?);
            }
        }
    }
    let lists = [Mutation::R14Shares, Mutation::R14NoShares, Mutation::R14Both];
    if !lists.iter().any(|mutation| talk.lacks(*mutation)) {
        named.extend(shares(talk)?);
    }
    if talk.lacks(Mutation::R14Intents) {
        active = operations(talk)?;
    }
    if !talk.lacks(Mutation::R14Cycle) && !is_newest(talk, cycle)? {
        return Ok(Stage::End);
    }
    let unnamed = |blob: &&Blob| !active.contains(&blob.0) && !named.contains(blob);
    for blob in all.iter().filter(unnamed) {
        talk.settle(|| Request::DeleteBlob(*blob))?;
    }
    Ok(Stage::End)
}

fn operations(talk: &mut Talk<'_>) -> Asked<BTreeSet<Op>> {
    Ok(talk.intents()?.into_iter().map(|(op, _)| op).collect())
}

fn shares(talk: &mut Talk<'_>) -> Asked<Blobs> {
    let intents = talk.intents()?.into_iter();
    let tops = intents.flat_map(|(_, intent)| intent.tops.unwrap_or_default()).collect();
    reach(talk, &tops, Absent::Skipped)
}
