//! Named breakages of the rules of crash safety, for the simulation.
//!
//! Owns: [`Mutation`], one for each rule or part of one, and which of them is active. A rule that
//! nothing notices missing is untested: `holdall-sim --mutants` activates one after the other and
//! expects a failure (the list with names is there). Where a mutation stands in the code, the code
//! asks [`is`], which is the constant `false` unless the build has `--cfg holdall_mutations`. The
//! rules are listed in docs/recovery.md.

/// What takes one rule away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutation {
    /// Rule 1: a group follows only the group whose checksum it names.
    R01Chain,
    /// Rule 2: recovery leaves epoch and LSN as they are.
    R02Both,
    /// Rule 2: recovery raises the epoch.
    R02Epoch,
    /// Rule 2: recovery moves the LSN ahead by a lap.
    R02Lap,
    /// Rule 3: a group is acknowledged only after its sync.
    R03LogSync,
    /// Rule 4: the superblock names the highest LSN in place before pages go there.
    R04Announce,
    /// Rule 4: damage in the middle of the log is distinguished from a torn tail.
    R04Middle,
    /// Rule 4: replay that ends below the highest LSN in place is refused.
    R04Refuse,
    /// Rule 5: opening looks at the log whatever a flag says.
    R05Flag,
    /// Rule 6: poison is looked at before a commit.
    R06Poison,
    /// Rule 6: a failed sync of the volume poisons the store.
    R06VolumePoison,
    /// Rule 7: recovery composes again what a record only names the parts of.
    R07Composed,
    /// Rule 7: recovery writes the tail of the log again.
    R07Harden,
    /// Rule 7: recovery writes again the data in place that the last group lists.
    R07InPlace,
    /// Rule 7: recovery writes logged segment bytes again.
    R07Segments,
    /// Rule 7: recovery writes the newest superblock again.
    R07Superblock,
    /// Rule 7: recovery syncs what it wrote before it moves the replay position.
    R07Sync,
    /// Rule 9: what fails after the install is no failure of the commit.
    R09AfterCommit,
    /// Rule 9: a call for many objects that fails half way fails the transaction.
    R09Refused,
    /// Rule 9: what a transaction has reserved is given back only if it failed.
    R09Reservations,
    /// Rule 9: a failed commit leaves what it would have freed.
    R09TooLarge,
    /// Rule 10: reserved pages are not free.
    R10Reserved,
    /// Rule 10: pages waiting to be freed are not free.
    R10Waiting,
    /// Rule 10: pages kept for objects that grow are free to who finds no others.
    R10Windows,
    /// Rule 11: a snapshot opens at the newest durable commit.
    R11Deferred,
    /// Rule 12: both superblocks know the ceiling.
    R12Both,
    /// Rule 12: unique numbers are taken out of the superblock before they are used.
    R12Ceiling,
    /// Rule 12: a clean close keeps the unique numbers.
    R12Close,
    /// Rule 13: a page that changes after it was handed over is written in place again.
    R13DirectAgain,
    /// Rule 13: before pages of a group that lists data in place change there, both superblocks say
    /// that it is durable.
    R13DirectBoth,
    /// Rule 13: what a checkpoint found durable is not doubted: its pages may have changed in
    /// place.
    R13DirectDoubt,
    /// Rule 13: pages written in place before the end of their transaction are synced before the
    /// group.
    R13DirectEarly,
    /// Rule 13: segment data that waits to be written in place is written before the group.
    R13DirectHeld,
    /// Rule 13: the last group counts only if the data in place that it lists is there.
    R13DirectHolds,
    /// Rule 13: a group lists all segment data that lies in place.
    R13DirectList,
    /// Rule 13: a group is acknowledged only when the data in place that it lists is synced too.
    R13DirectWait,
    /// Rule 13: a page that became empty is freed, not filled as a new one.
    R13Emptied,
    /// Rule 13: data whose checksums left memory before the commit is synced before the group.
    R13Entered,
    /// Rule 13: logged bytes of pages given back are not replayed.
    R13LoggedFree,
    /// Rule 13: a new page is replayed without reading the disk.
    R13Unread,
    /// Rule 14: a checkpoint writes only durable commits.
    R14Durable,
    /// Rule 14: a checkpoint writes each page that is newer than in place.
    R14Newest,
    /// Rule 15: an old superblock whose log is gone is refused.
    R15Fallback,
    /// Rule 15: log space is used again only after the superblock is durable.
    R15Release,
    /// Rule 15: the superblock is written to the slot that is not in force.
    R15Slot,
    /// Rule 15: pages in place are synced before the superblock moves on.
    R15Sync,
    /// Rule 16: what waits for a snapshot is what its bitmaps have.
    R16Bitmap,
    /// Rule 16: freed pages wait for a checkpoint.
    R16Checkpoint,
    /// Rule 16: freed pages wait for open snapshots.
    R16Horizon,
    /// Rule 17: a running checkpoint holds the horizon.
    R17Checkpoint,
    /// Rule 17: the newest durable state holds the horizon.
    R17Visible,
    /// Rule 18: a snapshot looks at the visible commit again after it is registered.
    R18Register,
    /// Rule 19: a version that was evicted comes back before a newer one hides it.
    R19Base,
    /// Rule 19: a page that is not in place stays in the pool.
    R19Dirty,
    /// Rule 20: the version that a snapshot needs is kept.
    R20Keep,
    /// Rule 20: a snapshot that was given up says so.
    R20Killed,
    /// Rule 21: pages allocated have their place in the file, also after a crash.
    R21Grown,
    /// Rule 22: a stretch with live segments is not fresh.
    R22Live,
    /// Rule 22: an info page changes with its segments only.
    R22Moved,
    /// Rule 22: a stretch with waiting segments is not fresh.
    R22Waiting,
    /// Rule 23: the bitmap is what is reachable.
    R23Bitmap,
    /// Rule 24: the flag is set in the source in the same transaction as the copy.
    R24Flag,
    /// Rule 24: one path releases runs, and asks the tree of shared pages.
    R24Shared,
    /// Rule 25: a request leaves the reserve to later classes.
    R25Classes,
    /// Rule 26: every change of bytes or attributes gives the object another version.
    R26Change,
    /// Rule 26: versions of one recovery epoch do not come back in a later one.
    R26Epoch,
    /// Rule 26: every change of bytes or attributes notes its time.
    R26Time,
    /// Rule 27: both superblocks name one replay position before anything is punched out.
    R27Slots,
    /// Rule 28: a run is reserved while it is punched out.
    R28Reserved,
    /// Rule 29: a hole gets blocks before it is given out.
    R29Blocks,
    /// Rule 29: recovery gives blocks to pages that the log allocates and does not write.
    R29Replayed,
    /// Rule 29: after an opening any free run may be a hole.
    R29Unknown,
    /// Rule 30: the file is not cut below what is reserved in a space without a directory.
    R30Claimed,
    /// Rule 30: the allocator's end is lowered with the file's.
    R30Grown,
    /// Rule 30: no superblock names more than the file has after a cut.
    R30Named,
    /// Rule 31: what was moved is compared with what the object has at the commit.
    R31Compare,
    /// Rule 31: a mover asks whether its snapshot lives before it compares.
    R31Snapshot,
    /// Rule 32: both superblocks name the log's new size before it is used.
    R32Both,
    /// Rule 32: the log is cut only after they name its size.
    R32Cut,
    /// Rule 33: images are synced before the commit that names them enters the log.
    R33Sync,
    /// Rule 34: a committed image is never written again.
    R34Again,
    /// Rule 35: a page that has a newer version has no image in that state.
    R35Entry,
    /// Rule 35: a state's tree of images is asked before memory is.
    R35Looked,
    /// Rule 36: replay begins at the image.
    R36Base,
    /// Rule 36: where the image is gone, replay begins at the page's place.
    R36Place,
    /// Rule 37: who takes a page home hands on what lies in its place.
    R37Former,
    /// Rule 38: an old version is found in scratch before memory drops it.
    R38Entered,
    /// Rule 38: scratch is given back once no snapshot reads any of it.
    R38Freed,
    /// Rule 38: an old version in scratch cannot be taken for an image of its page.
    R38Masked,
    /// Rule 39: a space that comes again meanwhile keeps its directory.
    R39Kept,
    /// Rule 39: the directory of a space that was given up waits as a freed page does.
    R39Waits,
    /// Rule 40: what is shown to readers of other processes is durable.
    R40Early,
    /// Rule 41: a reader forgets pages that were given to others since its last state.
    R41Forget,
    /// Rule 41: and info pages that are made anew in their places.
    R41Info,
    /// Rule 41: what is read while a newer state is taken over is not kept.
    R41Late,
    /// Rule 41: a reader whose state a checkpoint passed opens the store again.
    R41Passed,
    /// Rule 42: what is newer in place than a held state is asked for.
    R42Ask,
    /// Rule 42: what a held state has in the log alone is made from it.
    R42Log,
    /// Rule 50: what small collections count follows their records.
    R50Counts,
    /// Rule 50: a record among small collections' has its collection's number.
    R50Number,
    /// Rule 51: objects of a collection that becomes large are led to by their handles.
    R51Handles,
    /// Rule 51: a collection takes its names along when it becomes large.
    R51Names,
    /// Rule 51: a collection that cannot become large for lack of room stays small.
    R51PutOff,
    /// Rule 52: a lookup by OID asks the drop list.
    R52Oid,
    /// Rule 53: a dropped object's handle goes with its record.
    R53Handles,
    /// Rule 53: a dropped collection enters the drop list with the commit that drops it.
    R53List,
    /// Rule 53: emptying that a crash ended goes on where it was.
    R53Resume,
    /// Rule 54: no number of a collection is used twice.
    R54Numbers,
    /// What changed in what was copied before a backup went on is not copied again.
    R60Again,
    /// Rule 60: a mark names the state before it.
    R60Before,
    /// Rule 60: a space that comes again with its directory counts as changed.
    R60Comes,
    /// Rule 60: the first segment data of a checksum group since the newest mark is noted.
    R60Info,
    /// Rule 60: and the first change of a granule.
    R60Note,
    /// Rule 61: what waits for a checkpoint comes from memory.
    R61Memory,
    /// Rule 61: a page that is newer in place comes from the snapshot.
    R61Newer,
    /// Rule 62: a restored store begins a lap ahead.
    R62Ahead,
}

#[cfg(holdall_mutations)]
mod active {
    use super::Mutation;
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

    /// The active mutation's number plus one; 0 for none.
    static ACTIVE: AtomicU8 = AtomicU8::new(0);

    /// Activates a mutation, or none, for the whole process.
    pub fn activate(mutation: Option<Mutation>) {
        ACTIVE.store(mutation.map_or(0, |m| m as u8 + 1), Relaxed);
    }

    /// Whether this mutation is active.
    #[inline]
    pub fn is(mutation: Mutation) -> bool {
        ACTIVE.load(Relaxed) == mutation as u8 + 1
    }
}

#[cfg(holdall_mutations)]
pub use active::{activate, is};

/// Whether this mutation is active: never in this build.
#[cfg(not(holdall_mutations))]
#[inline(always)]
pub const fn is(_: Mutation) -> bool {
    false
}
