//! What lies in the bucket: records of names, keys of blobs, intents of operations.
//!
//! Owns: their fields as far as the protocol looks at them, and how a change makes a record from
//! the one before. Bytes, slices and trees are left out: an object is the set of blobs it names.

use crate::rules::{Mutation, Setting};
use std::collections::BTreeSet;
use std::fmt;

/// A name of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u8);

/// An operation. A process has two numbers: an even one, and the odd one behind it for the
/// deletion that ends a rename.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Op(pub u16);

/// The tag of a record or intent: who wrote it, and which of its tags that was. As tags are
/// hashes of what was written, the same nonce gives the same tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub Op, pub u16);

/// The key of a blob: operation and number. In records and intents also an entry that stands for a
/// node and all below it, see `tree`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blob(pub Op, pub u8);

pub type Blobs = BTreeSet<Blob>;

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'a' + self.0))
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}.{}", self.0.0, self.1)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.is_whole() { "+" } else { "" };
        write!(f, "{}/{}{below}", self.0.0, self.key().1)
    }
}

/// The record of a name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// Deleted, or not written yet.
    pub gone: bool,
    /// Other records may name its blobs.
    pub shared: bool,
    /// Drawn when the name was first written.
    pub incarnation: Tag,
    /// Changes since then.
    pub change: u16,
    /// The last operations, oldest first.
    pub recent: Vec<Op>,
    /// Blobs of the object.
    pub live: Blobs,
    /// Blobs that it no longer needs.
    pub retired: Blobs,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [("gone ", self.gone), ("shared ", self.shared)];
        for (flag, _) in flags.into_iter().filter(|(_, set)| *set) {
            f.write_str(flag)?;
        }
        let Self { incarnation, change, recent, live, retired, .. } = self;
        write!(f, "live {live:?} retired {retired:?} recent {recent:?} {incarnation:?}+{change}")
    }
}

/// What a listing shows of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    NoBlobs,
    Blobs,
    Retired,
    Shared,
    Gone,
    GoneRetired,
}

impl Record {
    /// The record that is put before a name's first blobs are written.
    pub fn placeholder(incarnation: Tag) -> Self {
        Self {
            gone: true,
            shared: false,
            incarnation,
            change: 0,
            recent: Vec::new(),
            live: Blobs::new(),
            retired: Blobs::new(),
        }
    }

    pub fn class(&self) -> Class {
        match (self.gone, self.retired.is_empty()) {
            (true, true) => Class::Gone,
            (true, false) => Class::GoneRetired,
            _ if self.shared => Class::Shared,
            (false, false) => Class::Retired,
            _ if self.live.is_empty() => Class::NoBlobs,
            _ => Class::Blobs,
        }
    }

    /// Whether it shows that the operation succeeded. `live` and `retired` are all blobs that its own
    /// entries stand for.
    pub fn shows(&self, op: Op, live: &Blobs, retired: &Blobs, setting: &Setting) -> bool {
        let made = |blobs: &Blobs| blobs.iter().any(|blob| blob.0 == op);
        let named = made(live) && !setting.lacks(Mutation::R09Live)
            || made(retired) && !setting.lacks(Mutation::R09Retired);
        self.recent.contains(&op) && !setting.lacks(Mutation::R09Recent) || named
    }
}

/// What a change makes of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// The object has these blobs from now on; none if its bytes are embedded.
    Whole(Blobs),
    /// It keeps blob i of the old ones if bit i is set, and may get a new one.
    Pieces(u8, Option<Blob>),
    /// It has this tree in place of its own, and needs these entries no more.
    Graft { tree: Blob, drops: Blobs },
    /// It has the blobs of another object.
    Share(Blobs),
    /// It is deleted.
    Gone,
}

impl Change {
    /// Whether the record will name blobs that this operation wrote or shared.
    pub fn brings_blobs(&self) -> bool {
        match self {
            Self::Whole(blobs) | Self::Share(blobs) => !blobs.is_empty(),
            Self::Pieces(_, new) => new.is_some(),
            Self::Graft { .. } => true,
            Self::Gone => false,
        }
    }

    /// Whether it needs an object that is there.
    fn needs_object(&self) -> bool {
        matches!(self, Self::Pieces(..) | Self::Graft { .. } | Self::Gone)
    }

    /// The record after it, or none if it needs an object and there is none. `first` is the
    /// incarnation if there is no record.
    pub fn apply(
        &self,
        base: Option<&Record>,
        op: Op,
        first: Tag,
        setting: &Setting,
    ) -> Option<Record> {
        let mut record = base.cloned().unwrap_or_else(|| Record::placeholder(first));
        if record.gone && self.needs_object() {
            return None;
        }
        if matches!(self, Self::Pieces(..)) && record.live.iter().any(|entry| entry.is_whole()) {
            // A tree is edited otherwise.
            return None;
        }
        let old = std::mem::take(&mut record.live);
        record.live = match self {
            Self::Whole(blobs) | Self::Share(blobs) => blobs.clone(),
            Self::Pieces(keep, new) => {
                let kept = old.iter().enumerate().filter(|(i, _)| keep >> (i % 8) & 1 == 1);
                kept.map(|(_, blob)| *blob).chain(*new).collect()
            }
            Self::Graft { tree, .. } => [*tree].into(),
            Self::Gone => Blobs::new(),
        };
        let forgets = match self {
            Self::Gone => setting.lacks(Mutation::R07Delete),
            _ => setting.lacks(Mutation::R07Change),
        };
        let dropped: Blobs = match self {
            // What an edit keeps is not retired; a put and a copy retire all of before.
            Self::Pieces(..) => old.difference(&record.live).copied().collect(),
            Self::Graft { drops, .. } => drops.clone(),
            _ => old,
        };
        let had_blobs = !dropped.is_empty() || !record.retired.is_empty();
        if !forgets {
            record.retired.extend(dropped);
        }
        record.shared = match self {
            Self::Share(_) => !setting.lacks(Mutation::R06Target),
            Self::Whole(_) => record.shared && had_blobs,
            _ => record.shared,
        };
        record.gone = matches!(self, Self::Gone);
        record.change += u16::from(base.is_some());
        record.recent.push(op);
        let surplus = record.recent.len().saturating_sub(setting.recent);
        record.recent.drain(..surplus);
        Some(record)
    }
}

/// What an operation may do, as gc sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    Open,
    Condemned,
    /// Nothing can come of it since this gc cycle.
    Resolved(u16),
}

/// An intent: the target's record may come to name blobs of the operation or these tops.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Intent {
    pub tag: Tag,
    pub state: State,
    pub target: Name,
    /// Blobs to be shared or held. Intents to write have none.
    pub tops: Option<Blobs>,
    /// When a hold ends, by the server's clock; only holds have it.
    pub ends: Option<u16>,
    /// When it was written, by the server's clock.
    pub date: u16,
}

impl Intent {
    /// One that is open, not a hold.
    pub fn open(tag: Tag, target: Name, tops: Option<Blobs>) -> Self {
        Self { tag, state: State::Open, target, tops, ends: None, date: 0 }
    }
}
