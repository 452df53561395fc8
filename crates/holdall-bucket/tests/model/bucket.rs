//! The bucket: what it holds, and what each request does to it in one step.
//!
//! Owns: the requests and their answers, the requests that are still under way in the network,
//! and the two clocks that stand in for time, as the grace is 0 here. Notes what no user may ever
//! see in [`Bucket::wrong`].
//!
//! Time. "No request takes effect a day after it was sent, the least grace" means here: what gc
//! does to something old happens after all requests that were sent before that something was
//! written. A gone record is removed only if it is older than the grace, so a create that was sent
//! before it was written is void. An intent is condemned only if it is older, and a retired blob
//! deleted only then, so copies of the request that wrote it are void, too. All other requests
//! stay under way as long as they like.

use crate::record::{Blob, Blobs, Class, Intent, Name, Op, Record, State, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most names of a run.
pub const NAMES: usize = 4;

/// A conditional write of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Put {
    pub name: Name,
    /// The tag that is expected, or none.
    pub base: Option<Tag>,
    pub tag: Tag,
    pub record: Record,
    /// The operation whose change this is. Rewrites, flags and removals of entries are of none.
    pub change: Option<Op>,
    /// When a create was first sent, by the name's clock.
    pub first_sent: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    Read(Name),
    PutIf(Arc<Put>),
    /// `delete_if`; without a tag, a plain delete.
    RemoveIf(Name, Option<Tag>),
    ListNames(Option<Name>),
    PutBlob(Blob),
    /// A blob that leads to these entries.
    PutNode(Blob, Blobs),
    /// What a node leads to.
    ReadNode(Blob),
    DeleteBlob(Blob),
    /// Blobs of an operation, or all.
    ListBlobs(Option<Op>),
    PutIntent(Op, Intent, Way),
    PutIntentIf(Op, Tag, Intent),
    ReadIntent(Op),
    DeleteIntent(Op),
    ListIntents(Option<Op>),
    /// Makes the number of the gc cycle greater by one; a loop of `put_if` in reality.
    NextCycle,
    ReadCycle,
    /// A reader's read.
    GetBlob(Blob),
    /// Time passes.
    Tick,
}

/// How an intent is written that is no successor of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// If there is none, and while gc cannot have taken the first one for old.
    New,
    /// If there is none.
    Absent,
    /// Over what is there.
    Over,
}

/// A record with its tag, if there is one.
pub type Read = Option<Tagged>;
pub type Tagged = (Tag, Arc<Record>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    Done,
    /// Refused; when it was sent, by the name's clock.
    NotDone(u16),
    /// The time to send this again is over; nothing was sent.
    TooLate,
    /// No answer came; the time as above.
    Unknown(u16),
    /// The record, and which creates of the name are void by now.
    Record(Read, u16),
    Names(Vec<(Name, Class, Tag)>, Page),
    Blobs(Blobs),
    Node(Option<Blobs>),
    Intent(Option<Intent>),
    Intents(Vec<(Op, Intent)>, Page),
    Cycle(u16),
    /// The number of the cycle that began, and the server's time.
    Began(u16, u16),
    /// A read or listing that failed.
    Failed,
}

/// How a page of a listing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Page {
    More,
    Last,
    /// It broke off.
    Short,
}

/// A request that may take effect later.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Late {
    pub request: Request,
    /// By the name's clock.
    pub sent: u16,
}

/// A name's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Clock {
    /// Gone records that were written.
    pub now: u16,
    /// Creates that were sent before this are older than the grace.
    pub void: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Bucket {
    pub records: BTreeMap<Name, Tagged>,
    pub blobs: Blobs,
    /// What nodes lead to, or led to.
    pub nodes: BTreeMap<Blob, Blobs>,
    pub intents: BTreeMap<Op, Intent>,
    pub cycle: u16,
    /// The server's clock, which holds end by.
    pub second: u16,
    pub late: Vec<Late>,
    pub clocks: [Clock; NAMES],
    /// Operations whose intent was older than the grace.
    pub condemned: BTreeSet<Op>,
    /// Operations whose change was applied.
    pub applied: BTreeSet<Op>,
    /// Blobs written after their intent was condemned or removed: leaks that a stalled writer
    /// leaves, which `gc --full` alone finds.
    pub stray: Blobs,
    /// What must never happen.
    pub wrong: Option<&'static str>,
}

impl Bucket {
    pub fn now(&self, name: Name) -> u16 {
        self.clocks[usize::from(name.0)].now
    }

    /// One request. `page` bounds listings.
    pub fn execute(&mut self, request: &Request, page: usize) -> Answer {
        match request {
            Request::Read(name) => {
                let void = self.clocks[usize::from(name.0)].void;
                Answer::Record(self.records.get(name).cloned(), void)
            }
            Request::PutIf(put) => self.put_if(put),
            Request::RemoveIf(name, tag) => self.remove_if(*name, *tag),
            Request::ListNames(after) => self.list_names(*after, page),
            Request::PutBlob(blob) => self.put_blob(*blob),
            Request::PutNode(node, below) => {
                self.nodes.insert(*node, below.clone());
                self.put_blob(*node)
            }
            Request::ReadNode(node) => {
                let is_there = self.blobs.contains(node);
                Answer::Node(self.nodes.get(node).filter(|_| is_there).cloned())
            }
            Request::DeleteBlob(blob) => {
                self.blobs.remove(blob);
                self.stray.remove(blob);
                self.late.retain(|late| match &late.request {
                    Request::PutBlob(late) | Request::PutNode(late, _) => late != blob,
                    _ => true,
                });
                Answer::Done
            }
            Request::ListBlobs(op) => {
                let found = self.blobs.iter().filter(|blob| op.is_none_or(|op| blob.0 == op));
                Answer::Blobs(found.copied().collect())
            }
            Request::PutIntent(op, intent, way) => self.put_intent(*op, intent, *way),
            Request::PutIntentIf(op, base, intent) => self.put_intent_if(*op, *base, intent),
            Request::ReadIntent(op) => Answer::Intent(self.intents.get(op).cloned()),
            Request::DeleteIntent(op) => {
                self.intents.remove(op);
                Answer::Done
            }
            Request::ListIntents(after) => self.list_intents(*after, page),
            Request::NextCycle => {
                self.cycle += 1;
                Answer::Began(self.cycle, self.second)
            }
            Request::ReadCycle => Answer::Cycle(self.cycle),
            // What readers may expect is looked at after each step.
            Request::GetBlob(_) => Answer::Done,
            Request::Tick => {
                self.second += 1;
                Answer::Done
            }
        }
    }

    fn put_blob(&mut self, blob: Blob) -> Answer {
        let open = |intent: &Intent| intent.state == State::Open;
        if !self.intents.get(&blob.0).is_some_and(open) {
            self.stray.insert(blob);
        }
        self.blobs.insert(blob);
        Answer::Done
    }

    fn put_if(&mut self, put: &Put) -> Answer {
        let clock = &mut self.clocks[usize::from(put.name.0)];
        let now = clock.now;
        if put.first_sent.is_some_and(|sent| sent < clock.void) {
            return Answer::TooLate;
        }
        if self.records.get(&put.name).map(|(tag, _)| *tag) != put.base {
            return Answer::NotDone(now);
        }
        clock.now += u16::from(put.record.gone);
        if put.change.is_some_and(|op| !self.applied.insert(op)) {
            self.wrong = Some("a change was applied twice");
        }
        self.records.insert(put.name, (put.tag, Arc::new(put.record.clone())));
        Answer::Done
    }

    fn remove_if(&mut self, name: Name, tag: Option<Tag>) -> Answer {
        let Some((found, record)) = self.records.get(&name) else { return Answer::NotDone(0) };
        if tag.is_some_and(|tag| tag != *found) {
            return Answer::NotDone(0);
        }
        if !record.gone {
            self.wrong = Some("an object was removed that nobody had deleted");
        }
        self.records.remove(&name);
        let clock = &mut self.clocks[usize::from(name.0)];
        clock.void = clock.now;
        let void = clock.void;
        self.late.retain(|late| match &late.request {
            Request::PutIf(put) => {
                put.name != name || put.base.is_some() || late.sent.min(put_sent(put)) >= void
            }
            _ => true,
        });
        Answer::Done
    }

    fn list_names(&self, after: Option<Name>, page: usize) -> Answer {
        let behind = |name: &Name| after.is_none_or(|after| *name > after);
        let mut found: Vec<_> = self.records.iter().filter(|(name, _)| behind(name)).collect();
        let end = if found.len() > page { Page::More } else { Page::Last };
        found.truncate(page);
        let entry = |(name, (tag, record)): (&Name, &Tagged)| (*name, record.class(), *tag);
        Answer::Names(found.into_iter().map(entry).collect(), end)
    }

    /// In the order of their keys, which are random numbers: young and old ones are mixed.
    fn list_intents(&self, after: Option<Op>, page: usize) -> Answer {
        let key = |op: &Op| op.0.reverse_bits();
        let behind = |op: &Op| after.is_none_or(|after| key(op) > key(&after));
        let mut found: Vec<_> = self.intents.iter().filter(|(op, _)| behind(op)).collect();
        found.sort_by_key(|(op, _)| key(op));
        let end = if found.len() > page { Page::More } else { Page::Last };
        found.truncate(page);
        Answer::Intents(found.into_iter().map(|(op, intent)| (*op, intent.clone())).collect(), end)
    }

    fn put_intent(&mut self, op: Op, intent: &Intent, way: Way) -> Answer {
        if way == Way::New && self.condemned.contains(&op) {
            return Answer::TooLate;
        }
        if way != Way::Over && self.intents.contains_key(&op) {
            return Answer::NotDone(0);
        }
        self.intents.insert(op, Intent { date: self.second, ..intent.clone() });
        Answer::Done
    }

    fn put_intent_if(&mut self, op: Op, base: Tag, intent: &Intent) -> Answer {
        match self.intents.get_mut(&op) {
            Some(found) if found.tag == base => {
                *found = Intent { date: self.second, ..intent.clone() };
            }
            _ => return Answer::NotDone(0),
        }
        if intent.state != State::Open {
            self.condemned.insert(op);
            let writes =
                |late: &Late| matches!(&late.request, Request::PutIntent(o, ..) if *o == op);
            self.late.retain(|late| !writes(late));
        }
        Answer::Done
    }

    /// A blob that a record names and that is not there.
    pub fn missing(&self) -> Option<(Name, Blob)> {
        self.records.iter().find_map(|(name, (_, record))| {
            let live = self.below(&record.live);
            let lost = live.into_iter().find(|blob| !self.blobs.contains(blob));
            lost.map(|blob| (*name, blob))
        })
    }
}

fn put_sent(put: &Put) -> u16 {
    put.first_sent.unwrap_or(u16::MAX)
}
