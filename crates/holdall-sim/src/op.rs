//! What a script consists of: operations as plain data.
//!
//! Owns: [`Op`] and its parts. Objects are named by small numbers that mean something in any
//! state, so that a script stays playable when operations are taken out of it.

use holdall_testkit::CrashKind;

/// One operation of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A write transaction.
    Write {
        /// What it does.
        ops: Vec<TxOp>,
        /// How it ends.
        end: End,
    },
    /// A transaction that stays open while these are done, none of which writes.
    WriteAround {
        /// What it does before.
        ops: Vec<TxOp>,
        /// What is done meanwhile.
        between: Vec<Op>,
        /// What it does after.
        then: Vec<TxOp>,
        /// How it ends.
        end: End,
    },
    /// Makes deferred commits durable.
    Flush,
    /// Time goes by, until deferred commits must be durable.
    Wait,
    /// A verification with one of these at each report of progress.
    VerifyBeside(Vec<Op>),
    /// A whole checkpoint.
    Checkpoint,
    /// A checkpoint with one of these between each two steps.
    CheckpointWith(Vec<Op>),
    /// Puts the store in order, with one of these after each move.
    Defrag(Vec<Op>),
    /// These, one after the other, if one is expected.
    Several(Vec<Op>),
    /// Begins to stage an object, which stays open over what follows.
    Stage {
        /// The collection it will be in.
        coll: u8,
        /// Its name, if it gets one.
        name: Option<u8>,
        /// Its size in bytes.
        size: u32,
        /// What its bytes are drawn from.
        seed: u64,
        /// The size that the store is to expect.
        hint: Hint,
    },
    /// Pushes more bytes of a staged object, at most this number.
    Push(u8, u32),
    /// Drops a staged object.
    DropStaged(u8),
    /// Puts the store in order, with one of these after each copy, before its exchange.
    DefragAtCopies(Vec<Op>),
    /// Empties a part of what was dropped.
    EmptyDropped,
    /// Opens a snapshot and keeps it.
    OpenReader {
        /// Of the newest commit, else of the newest durable one.
        newest: bool,
    },
    /// Checks a kept snapshot in full.
    CheckReader(u8),
    /// Drops a kept snapshot.
    DropReader(u8),
    /// Another process that only reads does something, by this number.
    Follow(u8),
    /// Another process begins to hold a snapshot or reads one, by this number.
    Hold(u8),
    /// Takes a backup, restores it and looks at it, by this number, while these are done.
    Backup(u8, Vec<Op>),
    /// Compares the store with the model.
    Check,
    /// Crashes copies of the storage in several ways and opens them.
    Probe(u64),
    /// Damages copies of the storage: what they then show is right or an error.
    Damage(u64),
    /// Closes and opens again, with other options if a seed is given.
    Close(Option<u64>),
    /// A crash now, then recovery.
    Crash(Crash),
    /// Something will go wrong at a later call.
    Arm(Fault, Crash),
    /// Nothing more goes wrong.
    Heal,
}

/// A crash and the recovery after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crash {
    /// What happens to data that was not synced.
    pub kind: CrashKind,
    /// Decides what survives.
    pub seed: u64,
    /// Whether the crashed store is opened read-only first.
    pub read_only: bool,
    /// What befalls the recoveries that follow.
    pub again: Vec<Again>,
}

/// What befalls a recovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Again {
    /// A crash at this change.
    Crash(u64, CrashKind, u64),
    /// This read fails.
    Read(u64),
    /// This write fails.
    Write(u64),
    /// This sync fails, then the machine crashes so.
    Sync(u64, CrashKind, u64),
}

/// What goes wrong later. Numbers count calls of the kind from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A crash at the call that makes this change.
    Crash(u64),
    /// A failed read.
    Read(u64),
    /// A failed write.
    Write(u64),
    /// A failed sync.
    Sync(u64),
    /// A failed growth, cut, creation or removal.
    Other(u64),
    /// A disk with this many more bytes.
    Full(u64),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Durable.
    Commit,
    /// Durable later.
    Deferred,
    /// Given up.
    Abort,
}

/// What a streaming writer knows of the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Nothing.
    None,
    /// The truth.
    Right,
    /// Half of it.
    Less,
    /// Three times it.
    More,
}

/// One call inside a transaction. `coll` and `name` are numbers of collections and names,
/// `pick` chooses an object among those alive, or all there ever were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are explained above, sizes are in bytes")]
pub enum TxOp {
    /// Creates or replaces.
    Put { coll: u8, name: u8, size: u32, seed: u64, attributes: u8 },
    /// Streams an object in, or drops the writer before it is finished.
    Stream {
        coll: u8,
        name: Option<u8>,
        size: u32,
        seed: u64,
        chunk: u32,
        hint: Hint,
        finish: bool,
    },
    /// Creates an unnamed object.
    Create { coll: u8, size: u32, seed: u64, near: Option<u16> },
    /// `count` objects in one call, most of them small, none over `size` bytes; at `bad` (as a
    /// remainder of `count`) one whose name is refused.
    Many { coll: u8, names: Names, count: u8, size: u32, seed: u64, bad: Option<u8> },
    /// Takes a staged object, if there is one.
    Staged { n: u8 },
    /// Deletes by name.
    DeleteName { coll: u8, name: u8 },
    /// Deletes by OID.
    DeleteOid { pick: u16 },
    /// Renames.
    Rename { coll: u8, from: u8, to: u8 },
    /// Sets attributes by OID.
    SetAttributes { pick: u16, attributes: u8 },
    /// Changes a part of an object; `at` is a place as a share of 32,768 of its size.
    Edit { pick: u16, kind: EditKind, at: u16, len: u32, size: u32, seed: u64 },
    /// Copies an object to a name, or to a new object.
    Copy { pick: u16, coll: u8, name: Option<u8> },
    /// Copies a part of an object into another, or the same; `at`, `end` and `to` are places
    /// as shares of 32,768 of their objects' sizes.
    CopyRange { from: u16, at: u16, end: u16, into: u16, to: u16 },
    /// Drops a collection with all its objects.
    DropCollection { coll: u8 },
    /// Reads by name.
    Get { coll: u8, name: u8 },
    /// Reads by OID.
    GetOid { pick: u16 },
}

/// How a part of an object changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditKind {
    /// `len` bytes become `size` others.
    Splice,
    /// `size` bytes more at the end.
    Append,
    /// The end is cut off, or zeros are added.
    Truncate,
    /// `size` bytes are written as into a file.
    WriteAt,
    /// `size` bytes become all of it.
    Set,
}

/// Which names the objects of one call have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None.
    None,
    /// New ones behind all others, in order.
    Behind,
    /// In order: the last ones there are, then new ones behind them.
    Across,
    /// The same, backwards.
    Back,
    /// Any of those there may be, and some new ones.
    Drawn,
}
