//! Named breakages of the rules of bucket stores, for the simulation.
//!
//! Owns: [`Mutation`], one for each rule or part of one. A rule that nothing notices missing is
//! untested. What takes a copier and several collectors to show, rule 8 and the intents, order and cycle
//! of rule 11, or the order of rule 15, no seed of some thousands shows: the model of `tests/model` tries it in every order, and
//! its table `noticed` says of each mutation who notices it. Where a mutation stands in the code, the code
//! asks [`is`], which is the constant `false` unless the build has `--cfg holdall_mutations`. The rules are
//! listed in docs/bucket-format.md.

/// What takes one rule away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// Rule 1: each write of a record has a nonce of its own.
    B01Nonce,
    /// Rule 2: what is not plainly done is looked for in the record.
    B02Own,
    /// Rule 2: an operation that others built on is found among the recent ones.
    B02Recent,
    /// Rule 2: where the record cannot tell, the caller learns that.
    B02Unknown,
    /// Rule 3: a blob is written after its operation's intent.
    B03Intent,
    /// Rule 4: a record with blobs replaces a record.
    B04Absent,
    /// Rule 5: the intent is seen open after the base was read.
    B05Open,
    /// Rule 6: the source of a copy is marked as shared.
    B06Flag,
    /// Rule 6: a source that is marked is read again.
    B06Reread,
    /// Rule 7: what a change drops is retired.
    B07Retired,
    /// Rule 7: what an attempt wrote in vain is retired.
    B07Unused,
    /// Rule 9: an intent is condemned before its target is read.
    B09Condemn,
    /// Rule 9: a target that does not show the operation is written again.
    B09Fence,
    /// Rule 9: a target shows an operation by its blobs too.
    B09Named,
    /// Rule 10: retired blobs of a record that shares are not its own.
    B10Shared,
    /// Rule 10: what the tree still names stays.
    B10Live,
    /// Rule 11: candidates that a record names stay.
    B11Records,
    /// Rule 12: a gone record is removed only as it was seen.
    B12Tag,
    /// Rule 14: blobs are listed before intents.
    B14Order,
    /// Rule 14: blobs of an operation under way stay.
    B14Open,
    /// Rule 15: what is held is marked as shared.
    B15Flag,
    /// Rule 15: a hold ends by the server's clock.
    B15Clock,
    /// Rule 15: a hold stays to its end.
    B15Ends,
    /// Rule 15: a hold is condemned before it is removed.
    B15Condemn,
    /// Rule 11: what is held stays.
    B15Holds,
}

/// All of them, with the names that the simulation takes.
pub const ALL: [(Mutation, &str); 25] = [
    (Mutation::B01Nonce, "01-nonce"),
    (Mutation::B02Own, "02-own"),
    (Mutation::B02Recent, "02-recent"),
    (Mutation::B02Unknown, "02-unknown"),
    (Mutation::B03Intent, "03-intent"),
    (Mutation::B04Absent, "04-absent"),
    (Mutation::B05Open, "05-open"),
    (Mutation::B06Flag, "06-flag"),
    (Mutation::B06Reread, "06-reread"),
    (Mutation::B07Retired, "07-retired"),
    (Mutation::B07Unused, "07-unused"),
    (Mutation::B09Condemn, "09-condemn"),
    (Mutation::B09Fence, "09-fence"),
    (Mutation::B09Named, "09-named"),
    (Mutation::B10Shared, "10-shared"),
    (Mutation::B10Live, "10-live"),
    (Mutation::B11Records, "11-records"),
    (Mutation::B12Tag, "12-tag"),
    (Mutation::B14Order, "14-order"),
    (Mutation::B14Open, "14-open"),
    (Mutation::B15Flag, "15-flag"),
    (Mutation::B15Clock, "15-clock"),
    (Mutation::B15Ends, "15-ends"),
    (Mutation::B15Condemn, "15-condemn"),
    (Mutation::B15Holds, "15-holds"),
];

#[cfg(holdall_mutations)]
mod active {
    use super::Mutation;
    use std::sync::atomic::{AtomicU8, Ordering};

    /// One more than the active mutation's number; 0 if there is none.
    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    /// Takes a rule away, or none.
    pub fn activate(mutation: Option<Mutation>) {
        ACTIVE.store(mutation.map_or(0, |m| m as u8 + 1), Ordering::Relaxed);
    }

    /// Whether this rule is taken away.
    pub fn is(mutation: Mutation) -> bool {
        ACTIVE.load(Ordering::Relaxed) == mutation as u8 + 1
    }
}

#[cfg(holdall_mutations)]
pub use active::{activate, is};

/// Whether this rule is taken away: never, in such a build.
#[cfg(not(holdall_mutations))]
pub const fn is(_: Mutation) -> bool {
    false
}
