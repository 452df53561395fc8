//! Trees, of which others share parts, and joints of several sources.
//!
//! Owns: what an entry of a record or an intent stands for, and the changes of objects whose record
//! names a node and not their blobs. What lies below a node a process learns by reading it, which is a
//! request of its own: others act before and after it.

use crate::bucket::{Answer, Bucket, Request, Way};
use crate::client::{base_or_placeholder, confirm, object, put_blobs, put_intent};
use crate::commit::Commit;
use crate::process::{Asked, Halt, Stage, Talk};
use crate::record::{Blob, Blobs, Change, Name};
use crate::rules::Mutation;

/// Set in the number of an entry that stands for a node and all below it; other entries stand for a
/// blob alone. Keys of blobs never have it.
const WHOLE: u8 = 0x80;

impl Blob {
    /// The entry that stands for this node and all below it.
    pub fn whole(self) -> Self {
        Self(self.0, self.1 | WHOLE)
    }

    pub fn is_whole(self) -> bool {
        self.1 & WHOLE != 0
    }

    /// The blob itself.
    pub fn key(self) -> Self {
        Self(self.0, self.1 & !WHOLE)
    }
}

/// What happens where a node is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// The process stops.
    Refused,
    /// What is below it was deleted before.
    Skipped,
}

/// The blobs that entries stand for, as one process reads them. Costs a request for each node.
pub fn reach(talk: &mut Talk<'_>, entries: &Blobs, absent: Absent) -> Asked<Blobs> {
    let mut found = Blobs::new();
    let mut open: Vec<Blob> = entries.iter().copied().collect();
    while let Some(entry) = open.pop() {
        found.insert(entry.key());
        if entry.is_whole() {
            match talk.ask(|| Request::ReadNode(entry.key()))? {
                Answer::Node(Some(below)) => open.extend(below),
                Answer::Node(None) if absent == Absent::Skipped => {}
                _ => return Err(Halt::Stop),
            }
        }
    }
    Ok(found)
}

/// Blobs in the order in which they are deleted: what lies below nodes, then the nodes of entries.
pub fn deepest_first(talk: &Talk<'_>, blobs: &Blobs, entries: &Blobs) -> Vec<Blob> {
    let leads = |blob: &&Blob| entries.contains(&blob.whole());
    let (nodes, below): (Vec<Blob>, Vec<Blob>) = blobs.iter().partition(leads);
    if talk.lacks(Mutation::R10Depth) { [nodes, below].concat() } else { [below, nodes].concat() }
}

impl Bucket {
    /// The blobs that entries stand for, whatever is there of them.
    pub fn below(&self, entries: &Blobs) -> Blobs {
        let mut found = Blobs::new();
        let mut open: Vec<Blob> = entries.iter().copied().collect();
        while let Some(entry) = open.pop() {
            found.insert(entry.key());
            if entry.is_whole() {
                open.extend(self.nodes.get(&entry.key()).into_iter().flatten());
            }
        }
        found
    }
}

/// What changes trees, and what has several sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// An object whose blobs lie below a node.
    Put { name: Name, blobs: u8 },
    /// Another node takes the place of the one that there is: it keeps the blobs below it whose bit
    /// is set, and may have a new one.
    Edit { name: Name, keep: u8, blob: bool },
    /// A copy of the blobs below another's node whose bit is set, not of the node.
    CopyPart { from: Name, to: Name, keep: u8 },
    /// A copy of two objects, one behind the other.
    Join { parts: [Name; 2], to: Name },
}

impl Plan {
    /// Whether it writes blobs of its own.
    pub fn writes(self) -> bool {
        matches!(self, Self::Put { .. } | Self::Edit { .. })
    }
}

pub fn start(talk: &mut Talk<'_>, plan: Plan) -> Asked<Stage> {
    let op = talk.op;
    match plan {
        Plan::Put { name, blobs } => {
            let base = base_or_placeholder(talk, name)?;
            put_intent(talk, name, None, Way::New)?;
            let below: Blobs = (0..blobs).map(|number| Blob(op, number)).collect();
            put_blobs(talk, &below)?;
            let node = put_node(talk, Blob(op, blobs), &below)?;
            Ok(Stage::Commit(Commit::new(op, name, Some(base), Change::Whole([node].into()))))
        }
        Plan::Edit { name, keep, blob } => edit(talk, name, keep, blob),
        Plan::CopyPart { from, to, keep } => {
            let source = object(talk, from)?;
            let (_, below) = node_of(talk, &source.1.live)?;
            let kept = kept(&below, keep);
            if from == to || kept.is_empty() {
                return Err(Halt::Stop);
            }
            let target = base_or_placeholder(talk, to)?;
            put_intent(talk, to, Some(source.1.live.clone()), Way::New)?;
            confirm(talk, from, &source)?;
            Ok(Stage::Commit(Commit::new(op, to, Some(target), Change::Share(kept))))
        }
        Plan::Join { parts, to } => join(talk, parts, to),
    }
}

/// The node of an object, and what lies below it; stops if it has none.
fn node_of(talk: &mut Talk<'_>, live: &Blobs) -> Asked<(Blob, Blobs)> {
    let node = live.iter().find(|entry| entry.is_whole()).ok_or(Halt::Stop)?.key();
    match talk.ask(|| Request::ReadNode(node))? {
        Answer::Node(Some(below)) => Ok((node, below)),
        _ => Err(Halt::Stop),
    }
}

fn kept(below: &Blobs, keep: u8) -> Blobs {
    let kept = below.iter().enumerate().filter(|(i, _)| keep >> (i % 8) & 1 == 1);
    kept.map(|(_, blob)| *blob).collect()
}

/// Writes a node; the entry that stands for it.
fn put_node(talk: &mut Talk<'_>, node: Blob, below: &Blobs) -> Asked<Blob> {
    talk.settle(|| Request::PutNode(node, below.clone()))?;
    Ok(node.whole())
}

fn edit(talk: &mut Talk<'_>, name: Name, keep: u8, blob: bool) -> Asked<Stage> {
    let (op, base) = (talk.op, object(talk, name)?);
    let (node, old) = node_of(talk, &base.1.live)?;
    let mut below = kept(&old, keep);
    // The node itself goes alone: what it leads to and the new one leads to, too, stays.
    let mut drops: Blobs = old.difference(&below).copied().collect();
    if talk.lacks(Mutation::R07Below) {
        drops.clear();
    }
    drops.insert(node);
    put_intent(talk, name, None, Way::New)?;
    if blob || below.is_empty() {
        below.insert(Blob(op, 0));
        put_blobs(talk, &[Blob(op, 0)].into())?;
    }
    let tree = put_node(talk, Blob(op, 1), &below)?;
    let change = Change::Graft { tree, drops };
    // Who begins anew reads another node: that is another edit here.
    Ok(Stage::Commit(Commit { once: true, ..Commit::new(op, name, Some(base), change) }))
}

/// Rule 6 for several sources: one intent of all their tops, then each of them once more. The target
/// names what lies below nodes, not these.
fn join(talk: &mut Talk<'_>, parts: [Name; 2], to: Name) -> Asked<Stage> {
    let (mut sources, mut named) = (Vec::new(), Blobs::new());
    for part in parts {
        let source = object(talk, part)?;
        let nodes: Blobs = source.1.live.iter().filter(|e| e.is_whole()).map(|e| e.key()).collect();
        let all = reach(talk, &source.1.live, Absent::Refused)?;
        named.extend(all.difference(&nodes));
        sources.push((part, source));
    }
    let tops: Blobs = sources.iter().flat_map(|(_, source)| source.1.live.clone()).collect();
    if parts.contains(&to) || tops.is_empty() {
        return Err(Halt::Stop);
    }
    let target = base_or_placeholder(talk, to)?;
    put_intent(talk, to, Some(tops.clone()), Way::New)?;
    let confirmed = if talk.lacks(Mutation::R06Others) { 1 } else { sources.len() };
    for (part, source) in sources.iter().take(confirmed) {
        confirm(talk, *part, source)?;
    }
    Ok(Stage::Commit(Commit::new(talk.op, to, Some(target), Change::Share(named))))
}
