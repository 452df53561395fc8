//! The table of pairs: who may meet whom, what protects it, and whether a run made them meet.
//!
//! What loses data is seldom one mechanism, but two that meet. Owns: [`ACTORS`], one row for each
//! mechanism that changes or frees something, or relies on what others leave alone, with the rules
//! of docs/recovery.md that protect each pair; and [`Met`], which counts the meetings of a run.
//! `docs/testing.md` has the table as [`table`] writes it, and the tests fail if a pair of it was
//! not met.

use std::fmt::Write;

/// A mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
#[expect(missing_docs, reason = "their names are in `ACTORS`")]
pub enum Actor {
    Put,
    Staged,
    Edit,
    Copy,
    Remove,
    Drop,
    Checkpoint,
    Growth,
    Punch,
    Cut,
    Mover,
    Snapshot,
    Expiry,
    Verify,
    Close,
    Recovery,
    Full,
    LogSize,
    Spill,
    Home,
    Scratch,
    Emptying,
    Border,
    Spaces,
    Follower,
    Held,
    Backup,
    Window,
}

/// How many there are.
pub const COUNT: usize = 28;

/// A mechanism's row.
#[derive(Debug)]
pub struct Row {
    /// Which one.
    pub actor: Actor,
    /// Its name.
    pub name: &'static str,
    /// What others may change while it works, and what it relies on.
    pub under_it: &'static str,
    /// The operations of the simulation in which it acts.
    pub steps: &'static str,
    /// For each mechanism up to itself the rules that protect the pair. Pairs with a `°` exclude
    /// each other: one can only follow upon the other.
    pub rules: &'static [&'static str],
}

const fn row(
    actor: Actor,
    name: &'static str,
    (under_it, steps): (&'static str, &'static str),
    rules: &'static [&'static str],
) -> Row {
    Row { actor, name, under_it, steps, rules }
}

/// All rows, in the order of [`Actor`].
pub const ACTORS: [Row; COUNT] = [
    row(
        Actor::Put,
        "put",
        (
            "Free space and the horizon change; pages do not, since one transaction writes at a time.",
            "Put, Create, Many; WriteAround",
        ),
        &["10"],
    ),
    row(
        Actor::Staged,
        "staged put",
        (
            "Everything but its reserved runs, which may lie in spaces without a directory.",
            "Stage, Push, Staged; Stream",
        ),
        &["10", "10"],
    ),
    row(
        Actor::Edit,
        "edit",
        (
            "As a put; what it copies stays where it lay until a checkpoint after its commit.",
            "Edit, Rename, SetAttributes",
        ),
        &["10", "10", "10"],
    ),
    row(
        Actor::Copy,
        "copy",
        ("As an edit; runs get a second owner in the same transaction.", "Copy, CopyRange"),
        &["24", "10", "24", "24"],
    ),
    row(
        Actor::Remove,
        "remove",
        (
            "As a put; what it frees waits for a checkpoint and for snapshots.",
            "DeleteName, DeleteOid",
        ),
        &["10", "16", "16", "24", "10"],
    ),
    row(
        Actor::Drop,
        "drop of a collection",
        ("As a remove.", "DropCollection"),
        &["10", "16", "16", "24", "10", "10"],
    ),
    row(
        Actor::Checkpoint,
        "checkpoint",
        (
            "Commits go on; it writes the states that are durable when it begins.",
            "Checkpoint, CheckpointWith",
        ),
        &["14", "9", "16", "16", "16", "16", "15°"],
    ),
    row(
        Actor::Growth,
        "growth",
        ("Under the allocator's lock: nothing.", "whatever writes"),
        &["21", "21", "21", "21", "16", "16", "21", "21°"],
    ),
    row(
        Actor::Punch,
        "punch",
        ("Whatever is not the reserved run that it punches out.", "Checkpoint, Defrag, Close"),
        &["28", "28", "28", "28", "27", "27", "28°", "29°", "28°"],
    ),
    row(
        Actor::Cut,
        "cut",
        (
            "Data comes to reserved runs in front of the new end; else nothing, under the allocator's lock.",
            "Checkpoint, Defrag, Close",
        ),
        &["30", "30", "30", "30", "30", "30", "30°", "30°", "28°", "30°"],
    ),
    row(
        Actor::Mover,
        "defragmentation",
        (
            "Objects are replaced, edited and removed, its snapshot is given up, its pages are reused.",
            "Defrag, DefragAtCopies",
        ),
        &["31", "10", "31", "31", "31", "31", "14", "31", "28", "30", "31°"],
    ),
    row(
        Actor::Snapshot,
        "snapshot",
        ("Everything, in newer versions and in places freed before it.", "OpenReader, CheckReader"),
        &["18", "16", "20", "16", "16", "16", "17", "21", "27", "30", "31", "18"],
    ),
    row(
        Actor::Expiry,
        "expiry of a snapshot",
        (
            "Pages are reused from that moment on, even if somebody still reads them.",
            "commits under pinned_bytes, old_version_bytes, max_bytes",
        ),
        &["20", "20", "20", "20", "20", "20", "17", "20", "16", "16", "31", "20", "20°"],
    ),
    row(
        Actor::Verify,
        "verification",
        ("As a snapshot; bitmaps are compared in its state.", "Check, VerifyBeside"),
        &["23", "23", "23", "24", "23", "23", "19", "23", "23", "23", "23°", "20", "20", "23°"],
    ),
    row(
        Actor::Close,
        "close",
        (
            "Nothing is committed; staged bytes still come to runs that were reserved before.",
            "Close",
        ),
        &[
            "10°", "30", "10°", "10°", "16°", "16°", "15°", "30°", "28°", "30°", "31°", "20",
            "20°", "20°", "15°",
        ],
    ),
    row(
        Actor::Recovery,
        "recovery",
        (
            "Nothing runs beside it; what was reserved is free, commits before it are whole or absent.",
            "Crash, Arm",
        ),
        &[
            "13", "10", "16", "16", "16", "16", "4 15", "21", "27 29", "30°", "31", "11", "20°",
            "23°", "5°", "2 7",
        ],
    ),
    row(
        Actor::Full,
        "full disk",
        ("Others free space; nothing but removals finds some until then.", "Arm(Full), max_bytes"),
        &[
            "25", "25", "25", "25", "25", "25", "29", "21", "29", "30", "31", "20", "20", "23°",
            "25°", "29", "25°",
        ],
    ),
    row(
        Actor::LogSize,
        "change of the log's size",
        (
            "Nothing is committed, and the log is empty; staged bytes come to their runs.",
            "whatever writes; Wait",
        ),
        &[
            "32°", "10", "32°", "32°", "32°", "32°", "32°", "32°", "32°", "32°", "32°", "32",
            "32°", "23°", "32°", "32", "32", "32°",
        ],
    ),
    row(
        Actor::Spill,
        "transaction that writes images",
        (
            "As a put; what it spills lies in reserved pages, where nobody looks. Info pages may change first.",
            "whatever writes, under transaction_bytes",
        ),
        &[
            "33", "10", "33", "33", "33", "33", "34", "21", "28", "30", "33", "35", "35", "35",
            "33°", "33", "25", "32°", "33°",
        ],
    ),
    row(
        Actor::Home,
        "page that comes home",
        ("Snapshots of before read its place, those of between its image.", "whatever writes"),
        &[
            "35", "10", "35", "35", "35", "35", "36", "21", "27", "30", "35", "37", "35", "23",
            "35°", "36", "29", "32°", "34", "35°",
        ],
    ),
    row(
        Actor::Scratch,
        "old versions in scratch",
        (
            "The snapshot that reads them is given up or closed, and others take the run.",
            "commits beside OpenReader, under old_version_bytes",
        ),
        &[
            "38", "10", "38", "38", "38", "38", "38", "38", "28", "30", "38", "38", "38", "38",
            "38°", "38", "38", "32°", "38", "38", "38",
        ],
    ),
    row(
        Actor::Emptying,
        "emptying of what was dropped",
        (
            "As a remove; nobody but snapshots sees what it frees.",
            "EmptyDropped; Defrag, max_bytes",
        ),
        &[
            "53°", "10", "53°", "24°", "53°", "53°", "16", "21°", "27", "30", "52", "52", "20",
            "53", "53°", "53°", "25", "32°", "33", "35", "38", "53°",
        ],
    ),
    row(
        Actor::Border,
        "collection that becomes large or small",
        (
            "As a put; its objects' records move, and their segments stay.",
            "whatever writes, under small_collections; Defrag",
        ),
        &[
            "51", "51", "51", "51", "51", "51", "14", "51", "28", "30", "51", "50", "20", "50",
            "51°", "51°", "51", "32°", "33", "35", "38", "53°", "51°",
        ],
    ),
    row(
        Actor::Spaces,
        "spaces given up",
        (
            "Staged data takes runs in them, a commit makes them again, a snapshot reads what they were.",
            "Defrag",
        ),
        &[
            "39", "39", "39", "39", "39", "39", "39", "39", "39", "39", "39", "39", "39", "39",
            "39°", "39", "39", "39°", "39", "39", "39", "39", "39", "39°",
        ],
    ),
    row(
        Actor::Follower,
        "reader in another process",
        ("Everything: it holds nothing back, and notices what its state lost to others.", "Follow"),
        &[
            "41", "40", "41", "41", "41", "41", "40", "41", "40", "40", "41", "40", "40", "40",
            "40", "40", "40", "40", "41", "41", "40", "41", "41", "41", "40",
        ],
    ),
    row(
        Actor::Held,
        "snapshot held for another process",
        ("As a snapshot; its reader looks at places while the writer writes there.", "Hold"),
        &[
            "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42",
            "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42", "42",
        ],
    ),
    row(
        Actor::Backup,
        "backup, increment",
        ("Places, directories and info pages: it tells by their bytes what they are.", "Backup"),
        &[
            "61", "61", "60", "61", "60", "60", "61", "60", "61", "61", "61", "60", "61", "61",
            "61°", "62", "62", "61", "61", "61", "60", "61", "61", "61", "60", "61", "61",
        ],
    ),
    row(
        Actor::Window,
        "window behind an object that grows",
        (
            "Everything: its pages are free, nobody writes there, and requests that are short of space take them.",
            "Edit(Append); Stream and Stage that expect more",
        ),
        &[
            "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10",
            "10°", "10°", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10", "10",
        ],
    ),
];

/// The rules of a pair, and whether the two exclude each other.
#[must_use]
pub fn rules(a: Actor, b: Actor) -> (&'static str, bool) {
    let (a, b) = (a as usize, b as usize);
    let cell = ACTORS[a.max(b)].rules.get(a.min(b)).copied().unwrap_or_default();
    (cell.trim_end_matches('°'), cell.ends_with('°'))
}

/// The table as it stands in docs/testing.md.
#[must_use]
pub fn table() -> String {
    let mut text =
        String::from("| | while it works, or until it ends | operations |\n|---|---|---|\n");
    for (i, row) in (1..).zip(&ACTORS) {
        let _ = writeln!(text, "| {i} {} | {} | {} |", row.name, row.under_it, row.steps);
    }
    text.push_str("\n| |");
    for i in 1..=COUNT {
        let _ = write!(text, " {i} |");
    }
    text.push_str("\n|---|");
    text.push_str(&"---|".repeat(COUNT));
    for (i, row) in (1..).zip(&ACTORS) {
        let _ = write!(text, "\n| {i} {} |", row.name);
        // Cells that are missing at the end are empty ones.
        for rules in row.rules {
            let _ = write!(text, " {rules} |");
        }
    }
    text.push('\n');
    text
}

type Actors = [bool; COUNT];
type Counts = [[u64; COUNT]; COUNT];

/// Meetings counted in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met {
    /// One acted while the other was under way, or both in one transaction.
    during: Counts,
    /// One acted in the operation after the other's.
    after: Counts,
    /// Acted in the operation before, and in this one.
    before: Actors,
    now: Actors,
}

impl Met {
    /// A new operation begins.
    pub(crate) fn turn(&mut self) {
        // One in which nobody acts parts nobody.
        if self.now != Actors::default() {
            self.before = std::mem::take(&mut self.now);
        }
    }

    /// `actor` acts, while `under_way` have begun and not ended.
    pub(crate) fn act(&mut self, actor: Actor, under_way: &[Actor]) {
        for other in under_way {
            self.during[*other as usize][actor as usize] += 1;
        }
        for i in 0..COUNT {
            self.during[i][actor as usize] += u64::from(self.now[i]);
            self.after[i][actor as usize] += u64::from(self.before[i]);
        }
        self.now[actor as usize] = true;
    }

    /// Adds the meetings of another run.
    pub fn add(&mut self, other: &Self) {
        for i in 0..COUNT {
            for j in 0..COUNT {
                self.during[i][j] += other.during[i][j];
                self.after[i][j] += other.after[i][j];
            }
        }
    }

    /// The pairs of the table that were not met as it says.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for a in &ACTORS {
            for b in ACTORS.iter().take(a.actor as usize + 1) {
                let (i, j) = (a.actor as usize, b.actor as usize);
                let both = |counts: &Counts| counts[i][j] + counts[j][i];
                let (_, excluded) = rules(a.actor, b.actor);
                let (during, after) = (both(&self.during), both(&self.after));
                if during == 0 && (!excluded || after == 0) {
                    missing.push(format!("{} and {} ({after} apart)", b.name, a.name));
                }
            }
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        for (i, row) in ACTORS.iter().enumerate() {
            assert_eq!((row.actor as usize, row.rules.len()), (i, i + 1), "{}", row.name);
            assert!(row.rules.iter().all(|rules| !rules.is_empty()));
        }
    }

    #[test]
    fn a_meeting_is_counted_and_a_pair_that_never_met_is_missing() {
        let mut met = Met::default();
        let all = met.missing().len();
        assert_eq!(all, COUNT * (COUNT + 1) / 2);
        met.act(Actor::Put, &[Actor::Staged]);
        met.act(Actor::Edit, &[]);
        assert_eq!(met.missing().len(), all - 2, "put and staged, put and edit");
        met.turn();
        met.act(Actor::Close, &[]);
        assert_eq!(met.missing().len(), all - 4, "these exclude each other");
        met.act(Actor::Staged, &[]);
        assert_eq!(met.missing().len(), all - 5, "after is not during, but for the close");
    }
}
