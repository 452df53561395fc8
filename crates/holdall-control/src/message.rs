//! What the two ends say to each other.
//!
//! Owns: [`Ask`], [`Answer`] and what they are made of. A message that has more than its fields, or
//! fewer, is refused.

pub use crate::bytes::Name;
use crate::refusal::Refusal;
use holdall::{DefragReport, Key, Metrics, Moved, Oid, StoreStat};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The number of this protocol. It rises with each change of any message.
pub const PROTOCOL: u32 = 2;

/// How a connection begins, from the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The protocol's number.
    pub holdall_control: u32,
}

/// How it goes on, from the process that writes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// The protocol's number. If it is another than asked for, the connection ends.
    pub holdall_control: u32,
    /// The number of the process.
    pub process: u32,
    /// The store's id.
    pub store: Name,
}

/// What is asked. Those without fields have braces: serde would take any fields of them otherwise.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Mark the newest state for a backup.
    Mark {
        /// The numbers of backups that need not be remembered any more.
        forget: Vec<Name>,
    },
    /// Hold a snapshot of the newest durable state, instead of the one held before.
    Hold {},
    /// Send the page that the state held has in this place, as data.
    Page {
        /// Which one.
        page: u64,
        /// The number of its kind.
        kind: u8,
    },
    /// Whether the state is held still.
    Holds {},
    /// Figures of the store.
    Stat {},
    /// Figures of what it does.
    Metrics {},
    /// Make a checkpoint.
    Checkpoint {},
    /// Put the store in order, saying what was moved.
    Defrag {
        /// Join the pieces of objects.
        join: bool,
        /// Bytes a second.
        rate: Option<u64>,
    },
    /// Change an object.
    Write {
        /// How.
        change: Transaction,
        /// Milliseconds to wait for another transaction at most; for ever if there are none.
        wait: Option<u64>,
    },
    /// More keys of a removal.
    Keys(Keys),
    /// The data of a change ends here.
    End {},
}

/// Keys of a removal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keys {
    /// Some of them.
    pub keys: Vec<Object>,
    /// Whether a message with others follows.
    pub more: bool,
}

/// A change of one object, or the removal of some, as one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// In which collection: the default one if none is named.
    pub collection: Option<String>,
    /// What.
    pub change: Change,
}

/// An object, by its name or its OID.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Object {
    /// By name.
    Name(Name),
    /// By OID, as text.
    Oid(String),
}

impl From<Key<'_>> for Object {
    fn from(key: Key<'_>) -> Self {
        match key {
            Key::Name(name) => Self::Name(Name(name.into_owned())),
            Key::Oid(oid) => Self::Oid(oid.to_string()),
        }
    }
}

impl Object {
    /// As the engine has it.
    ///
    /// # Errors
    /// [`holdall::Error::Invalid`] for a text that is no OID.
    pub fn key(&self) -> holdall::Result<Key<'_>> {
        match self {
            Self::Name(name) => Ok(Key::Name(Cow::Borrowed(&name.0))),
            Self::Oid(text) => {
                let oid: Result<Oid, _> = text.parse();
                let bad = |_| holdall::Error::Invalid(format!("{text:?} is no OID"));
                oid.map(Key::Oid).map_err(bad)
            }
        }
    }
}

/// What to change.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// Store an object under this name; its bytes follow as data. The collection is made if it is
    /// missing, as by no other change.
    Put {
        /// The name.
        name: Name,
        /// Attributes.
        attributes: BTreeMap<String, Name>,
        /// Its size, if that is known: a hint.
        size: Option<u64>,
    },
    /// Remove objects: all of them, or none if one is missing.
    Remove(Keys),
    /// Rename an object.
    Rename {
        /// Its name.
        from: Name,
        /// The new one, which no object has.
        to: Name,
    },
    /// Copy an object to this name.
    Copy {
        /// Which one.
        from: Object,
        /// The copy's name.
        to: Name,
    },
    /// Put data, which follows, in place of some bytes.
    Splice {
        /// The object.
        object: Object,
        /// The first byte replaced: the object's end if there is none.
        start: Option<u64>,
        /// How many are replaced.
        replaced: u64,
        /// How many follow.
        length: u64,
    },
    /// Remove bytes.
    DeleteRange {
        /// The object.
        object: Object,
        /// The first one: 0 if there is none.
        start: Option<u64>,
        /// The one behind the last: the object's end if there is none.
        end: Option<u64>,
    },
    /// Cut an object, or make it longer with zeros.
    SetLen {
        /// The object.
        object: Object,
        /// Its length afterwards.
        length: u64,
    },
}

impl Change {
    /// Whether data follows.
    pub fn has_data(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::Splice { .. })
    }
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The newest state is marked.
    Marked {
        /// The mark's number.
        id: Name,
        /// The state before it.
        lsn: u64,
    },
    /// A snapshot is held, of the state at this LSN.
    Held {
        /// Which one.
        lsn: u64,
    },
    /// Whether the state is held still.
    Holds {
        /// Whether it is.
        holds: bool,
    },
    /// The page follows as data.
    Page,
    /// Figures of the store.
    Stat {
        /// Them.
        stat: Box<StoreStat>,
    },
    /// Figures of what it does.
    Metrics {
        /// Them.
        metrics: Box<Metrics>,
    },
    /// The checkpoint is made.
    Checkpointed,
    /// What was moved so far; more follows.
    Moved {
        /// It.
        moved: Moved,
    },
    /// The store is in order.
    Ordered {
        /// What was done.
        report: Box<DefragReport>,
    },
    /// The data may come.
    Go,
    /// The change is durable.
    Written {
        /// OID of the object stored.
        oid: Option<String>,
        /// Size of the object afterwards.
        size: Option<u64>,
    },
    /// Nothing was done.
    Refused {
        /// Why.
        why: Refusal,
    },
}
