//! The list of mutations: name, rule, and how each shows.
//!
//! Owns: [`ALL`]. The switches are those of `holdall_core::mutation`.

use holdall_core::mutation::Mutation;

/// How a mutation shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// In the exhaustive test or the simulation's usual seeds.
    Usually,
    /// In these seeds.
    In(&'static str),
    /// Not from outside, for this reason.
    Never(&'static str),
}

/// A mutation with its name, its rule, and how it shows.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Which one.
    pub mutation: Mutation,
    /// Its name on the command line: the rule's number and a word.
    pub name: &'static str,
    /// What holds without it.
    pub rule: &'static str,
    /// How it shows.
    pub shows: Shows,
}

const fn usually(mutation: Mutation, name: &'static str, rule: &'static str) -> Entry {
    entry(mutation, name, rule, Shows::Usually)
}

const fn entry(mutation: Mutation, name: &'static str, rule: &'static str, shows: Shows) -> Entry {
    Entry { mutation, name, rule, shows }
}

/// All mutations.
pub const ALL: &[Entry] = &[
    entry(
        Mutation::R01Chain,
        "01-chain",
        "a group follows only the group whose checksum it names.",
        Shows::Never(
            "one group is in flight at a time and no LSN is used twice (rules 2, 3), so no foreign group lies where the next one is looked for.",
        ),
    ),
    entry(
        Mutation::R02Both,
        "02-both",
        "recovery leaves epoch and LSN as they are.",
        Shows::In("2..3"),
    ),
    usually(Mutation::R02Epoch, "02-epoch", "recovery raises the epoch."),
    entry(
        Mutation::R02Lap,
        "02-lap",
        "recovery moves the LSN ahead by a lap.",
        Shows::Never("the epoch alone keeps blocks of a former life away; 02-both takes both."),
    ),
    usually(Mutation::R03LogSync, "03-log-sync", "a group is acknowledged only after its sync."),
    usually(
        Mutation::R04Announce,
        "04-announce",
        "the superblock names the highest LSN in place before pages are written there.",
    ),
    usually(
        Mutation::R04Middle,
        "04-middle",
        "damage in the middle of the log is distinguished from a torn tail.",
    ),
    usually(
        Mutation::R04Refuse,
        "04-refuse",
        "replay that ends below the highest LSN in place is refused.",
    ),
    usually(Mutation::R05Flag, "05-flag", "opening looks at the log whatever a flag says."),
    usually(Mutation::R06Poison, "06-poison", "poison is looked at before a commit."),
    usually(
        Mutation::R06VolumePoison,
        "06-volume-poison",
        "a failed sync of the volume poisons the store.",
    ),
    usually(
        Mutation::R07Composed,
        "07-composed",
        "recovery composes again what a record only names the parts of.",
    ),
    usually(Mutation::R07Harden, "07-harden", "recovery writes the tail of the log again."),
    usually(
        Mutation::R07InPlace,
        "07-in-place",
        "recovery writes again the data in place that the last group lists.",
    ),
    usually(Mutation::R07Segments, "07-segments", "recovery writes logged segment bytes again."),
    entry(
        Mutation::R07Superblock,
        "07-superblock",
        "recovery writes the newest superblock again.",
        Shows::In("1795630811001220..1795630811001221"),
    ),
    usually(
        Mutation::R07Sync,
        "07-sync",
        "recovery syncs what it wrote before it moves the replay position.",
    ),
    usually(
        Mutation::R09AfterCommit,
        "09-after-commit",
        "what fails after the install is no failure of the commit.",
    ),
    usually(
        Mutation::R09Refused,
        "09-refused",
        "a call for many objects that fails half way fails the transaction.",
    ),
    usually(
        Mutation::R09Reservations,
        "09-reservations",
        "what a transaction has reserved is given back only if it failed.",
    ),
    usually(
        Mutation::R09TooLarge,
        "09-too-large",
        "a failed commit leaves what it would have freed.",
    ),
    usually(Mutation::R10Reserved, "10-reserved", "reserved pages are not free."),
    usually(Mutation::R10Waiting, "10-waiting", "pages waiting to be freed are not free."),
    usually(
        Mutation::R10Windows,
        "10-windows",
        "pages kept for objects that grow are free to who finds no others.",
    ),
    usually(Mutation::R11Deferred, "11-deferred", "a snapshot opens at the newest durable commit."),
    usually(Mutation::R12Both, "12-both", "both superblocks know the ceiling."),
    usually(
        Mutation::R12Ceiling,
        "12-ceiling",
        "unique numbers are taken out of the superblock before they are used.",
    ),
    usually(Mutation::R12Close, "12-close", "a clean close keeps the unique numbers."),
    usually(
        Mutation::R13DirectAgain,
        "13-direct-again",
        "a page that changes after it was handed over is written in place again.",
    ),
    entry(
        Mutation::R13DirectBoth,
        "13-direct-both",
        "before pages of a group that lists data in place change there, both superblocks say that it is durable.",
        Shows::In("29455..29457"),
    ),
    usually(
        Mutation::R13DirectDoubt,
        "13-direct-doubt",
        "what a checkpoint found durable is not doubted: its pages may have changed in place.",
    ),
    usually(
        Mutation::R13DirectEarly,
        "13-direct-early",
        "pages written in place before the end of their transaction are synced before the group.",
    ),
    usually(
        Mutation::R13DirectHeld,
        "13-direct-held",
        "segment data that waits to be written in place is written before the group.",
    ),
    usually(
        Mutation::R13DirectHolds,
        "13-direct-holds",
        "the last group counts only if the data in place that it lists is there.",
    ),
    usually(
        Mutation::R13DirectList,
        "13-direct-list",
        "a group lists all segment data that was written in place.",
    ),
    usually(
        Mutation::R13DirectWait,
        "13-direct-wait",
        "a group is acknowledged only when the data in place that it lists is synced too.",
    ),
    usually(
        Mutation::R13Emptied,
        "13-emptied",
        "a page that became empty is freed, not filled as a new one.",
    ),
    usually(
        Mutation::R13Entered,
        "13-entered",
        "data whose checksums left memory before the commit is synced before the group.",
    ),
    usually(
        Mutation::R13LoggedFree,
        "13-logged-free",
        "logged bytes of pages given back are not replayed.",
    ),
    usually(Mutation::R13Unread, "13-unread", "a new page is replayed without reading the disk."),
    usually(Mutation::R14Durable, "14-durable", "a checkpoint writes only durable commits."),
    usually(
        Mutation::R14Newest,
        "14-newest",
        "a checkpoint writes each page that is newer than in place.",
    ),
    entry(
        Mutation::R15Fallback,
        "15-fallback",
        "an old superblock whose log is gone is refused.",
        Shows::Never(
            "the other copy either has the same replay position and ceiling, or names a higher LSN in place, which rule 4 refuses.",
        ),
    ),
    usually(
        Mutation::R15Release,
        "15-release",
        "log space is used again only after the superblock is durable.",
    ),
    usually(
        Mutation::R15Slot,
        "15-slot",
        "the superblock is written to the slot that is not in force.",
    ),
    usually(
        Mutation::R15Sync,
        "15-sync",
        "pages in place are synced before the superblock moves on.",
    ),
    usually(
        Mutation::R16Bitmap,
        "16-bitmap",
        "what waits for a snapshot is what its bitmaps have.",
    ),
    usually(Mutation::R16Checkpoint, "16-checkpoint", "freed pages wait for a checkpoint."),
    usually(Mutation::R16Horizon, "16-horizon", "freed pages wait for open snapshots."),
    entry(
        Mutation::R17Checkpoint,
        "17-checkpoint",
        "a running checkpoint holds the horizon.",
        Shows::Never(
            "the run holds its pages in memory, and releases only up to the checkpoint before it.",
        ),
    ),
    entry(
        Mutation::R17Visible,
        "17-visible",
        "the newest durable state holds the horizon.",
        Shows::Never(
            "pages are released only up to the last checkpoint, which lies at or below the visible commit.",
        ),
    ),
    entry(
        Mutation::R18Register,
        "18-register",
        "a snapshot looks at the visible commit again after it is registered.",
        Shows::Never(
            "it needs two threads; cache/horizon.rs argues the order and the stress tests run it.",
        ),
    ),
    usually(
        Mutation::R19Base,
        "19-base",
        "a version that was evicted comes back before a newer one hides it.",
    ),
    usually(Mutation::R19Dirty, "19-dirty", "a page that is not in place stays in the pool."),
    usually(Mutation::R20Keep, "20-keep", "the version that a snapshot needs is kept."),
    usually(Mutation::R20Killed, "20-killed", "a snapshot that was given up says so."),
    usually(
        Mutation::R21Grown,
        "21-grown",
        "pages allocated have their place in the file, also after a crash.",
    ),
    usually(Mutation::R22Live, "22-live", "a stretch with live segments is not fresh."),
    usually(Mutation::R22Moved, "22-moved", "an info page changes with its segments only."),
    usually(Mutation::R22Waiting, "22-waiting", "a stretch with waiting segments is not fresh."),
    usually(Mutation::R23Bitmap, "23-bitmap", "the bitmap is what is reachable."),
    usually(
        Mutation::R24Flag,
        "24-flag",
        "the flag is set in the source in the same transaction as the copy.",
    ),
    usually(
        Mutation::R24Shared,
        "24-shared",
        "one path releases runs, and asks the tree of shared pages.",
    ),
    usually(Mutation::R25Classes, "25-classes", "a request leaves the reserve to later classes."),
    usually(
        Mutation::R26Change,
        "26-change",
        "every change of bytes or attributes gives the object another version.",
    ),
    usually(
        Mutation::R26Epoch,
        "26-epoch",
        "versions of one recovery epoch do not come back in a later one.",
    ),
    usually(Mutation::R26Time, "26-time", "every change of bytes or attributes notes its time."),
    entry(
        Mutation::R27Slots,
        "27-slots",
        "both superblocks name one replay position before anything is punched out.",
        Shows::Never(
            "a page freed before the newer position is punched out as it might be written over: what protects the older superblock from reuse (rule 15) protects it here.",
        ),
    ),
    usually(Mutation::R28Reserved, "28-reserved", "a run is reserved while it is punched out."),
    usually(Mutation::R29Blocks, "29-blocks", "a hole gets blocks before it is given out."),
    entry(
        Mutation::R29Replayed,
        "29-replayed",
        "recovery gives blocks to pages that the log allocates and does not write.",
        Shows::In("1970..1972"),
    ),
    usually(Mutation::R29Unknown, "29-unknown", "after an opening any free run may be a hole."),
    usually(
        Mutation::R30Claimed,
        "30-claimed",
        "the file is not cut below what is reserved in a space without a directory.",
    ),
    usually(Mutation::R30Grown, "30-grown", "the allocator's end is lowered with the file's."),
    usually(
        Mutation::R30Named,
        "30-named",
        "no superblock names more than the file has after a cut.",
    ),
    usually(
        Mutation::R31Compare,
        "31-compare",
        "what was moved is compared with what the object has at the commit.",
    ),
    usually(
        Mutation::R31Snapshot,
        "31-snapshot",
        "a mover whose snapshot was given up moves nothing.",
    ),
    usually(
        Mutation::R32Both,
        "32-both",
        "both superblocks name the log's new size before it is used.",
    ),
    usually(
        Mutation::R32Cut,
        "32-cut",
        "the log is cut only after both superblocks name its size.",
    ),
    usually(
        Mutation::R33Sync,
        "33-sync",
        "images are synced before the commit that names them enters the log.",
    ),
    usually(Mutation::R34Again, "34-again", "a committed image is never written again."),
    usually(
        Mutation::R35Entry,
        "35-entry",
        "a page that has a newer version has no image in that state.",
    ),
    usually(
        Mutation::R35Looked,
        "35-looked",
        "a state's tree of images is asked before memory is.",
    ),
    usually(Mutation::R36Base, "36-base", "replay begins at the image."),
    entry(
        Mutation::R36Place,
        "36-place",
        "where the image is gone, replay begins at the page's place.",
        Shows::Never("it needs a damaged newest superblock, and an image reused since the older."),
    ),
    usually(
        Mutation::R37Former,
        "37-former",
        "who takes a page home hands on what lies in its place.",
    ),
    usually(
        Mutation::R38Entered,
        "38-entered",
        "an old version is found in scratch before memory drops it.",
    ),
    usually(
        Mutation::R38Freed,
        "38-freed",
        "scratch is given back once no snapshot reads any of it.",
    ),
    entry(
        Mutation::R38Masked,
        "38-masked",
        "an old version in scratch cannot be taken for an image of its page.",
        Shows::In("6572..6573"),
    ),
    entry(
        Mutation::R39Kept,
        "39-kept",
        "a space that comes again meanwhile keeps its directory.",
        Shows::Never("only a check of an older state reads the directory that it had then."),
    ),
    entry(
        Mutation::R39Waits,
        "39-waits",
        "the directory of a space that was given up waits as a freed page does.",
        Shows::Never("no reader reads a directory; tests/moves_down.rs has the file's length."),
    ),
    usually(
        Mutation::R40Early,
        "40-early",
        "what is shown to readers of other processes is durable.",
    ),
    usually(
        Mutation::R41Forget,
        "41-forget",
        "a reader forgets pages that were given to others since its last state.",
    ),
    entry(
        Mutation::R41Info,
        "41-info",
        "a reader forgets info pages that are made anew in their places.",
        Shows::Never("no seed was found; tests/processes.rs shows it within seconds."),
    ),
    entry(
        Mutation::R41Late,
        "41-late",
        "what is read while a newer state is taken over is not kept.",
        Shows::Never("it needs two threads; a test of txn/beside.rs has it."),
    ),
    usually(
        Mutation::R41Passed,
        "41-passed",
        "a reader whose state a checkpoint passed opens the store again.",
    ),
    usually(Mutation::R42Ask, "42-ask", "what is newer in place than a held state is asked for."),
    usually(Mutation::R42Log, "42-log", "what a held state has in the log alone is made from it."),
    usually(
        Mutation::R50Counts,
        "50-counts",
        "what small collections count follows their records.",
    ),
    usually(
        Mutation::R50Number,
        "50-number",
        "a record among small collections' has its collection's number.",
    ),
    usually(
        Mutation::R51Handles,
        "51-handles",
        "objects of a collection that becomes large are led to by their handles.",
    ),
    usually(
        Mutation::R51Names,
        "51-names",
        "a collection takes its names along when it becomes large.",
    ),
    entry(
        Mutation::R51PutOff,
        "51-put-off",
        "a collection that cannot become large for lack of room stays small.",
        Shows::Never(
            "the full disk or the limit that fails the transaction then explains it to the simulation; tests/many_collections.rs has a put across the border without room.",
        ),
    ),
    usually(Mutation::R52Oid, "52-oid", "a lookup by OID asks the drop list."),
    usually(Mutation::R53Handles, "53-handles", "a dropped object's handle goes with its record."),
    usually(
        Mutation::R53List,
        "53-list",
        "a dropped collection enters the drop list with the commit that drops it.",
    ),
    usually(Mutation::R53Resume, "53-resume", "each emptying transaction notes what it left."),
    usually(Mutation::R54Numbers, "54-numbers", "no number of a collection is used twice."),
    usually(
        Mutation::R60Again,
        "60-again",
        "what a backup copied before it went on is copied again where it changed since its mark.",
    ),
    usually(Mutation::R60Before, "60-before", "a mark names the state before it."),
    entry(
        Mutation::R60Comes,
        "60-comes",
        "a space that comes again with its directory counts as changed.",
        Shows::In("1979..1980"),
    ),
    usually(
        Mutation::R60Info,
        "60-info",
        "the first segment data of a checksum group since the newest mark is noted.",
    ),
    usually(
        Mutation::R60Note,
        "60-note",
        "the first change of a granule since the newest mark is noted.",
    ),
    usually(Mutation::R61Memory, "61-memory", "what waits for a checkpoint comes from memory."),
    usually(
        Mutation::R61Newer,
        "61-newer",
        "a page that is newer in place comes from the snapshot.",
    ),
    usually(Mutation::R62Ahead, "62-ahead", "a restored store begins a lap ahead."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_core::mutation;

    #[test]
    fn names_are_unique_and_in_order() {
        assert!(ALL.windows(2).all(|w| w[0].name < w[1].name));
        assert!(ALL.iter().enumerate().all(|(i, e)| e.mutation as usize == i));
        assert!(cfg!(holdall_mutations) || ALL.iter().all(|e| !mutation::is(e.mutation)));
    }
}
