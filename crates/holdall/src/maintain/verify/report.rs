//! What verification says: problems, notes, counts, and how far it is.
//!
//! Owns: [`VerifyReport`]; [`Problems`], which keeps it bounded: of each kind of problem a
//! number is listed, the rest counted in one more.

/// How far a long task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes of pages looked at.
    pub done: u64,
    /// Bytes of pages there are; 0 as long as they are not counted.
    pub total: u64,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// What is damaged: an object and its bytes, a page, a part of the file.
    pub place: String,
    /// What was found against what was expected, and what to do.
    pub detail: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.detail)
    }
}

/// The result of a full check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Pages in use, those of segments included.
    pub pages: u64,
    /// Pages among them that are allocated for later and hold nothing yet, and places of pages
    /// that lie elsewhere: what lies there is never read, so it was not checked.
    pub blank_pages: u64,
    /// Objects found.
    pub objects: u64,
    /// Objects among them whose record lies in two pages.
    pub divided: u64,
    /// Bytes held against a checksum.
    pub bytes_checked: u64,
    /// Objects held against the sums of [`Options::debug_sums`](crate::Options::debug_sums);
    /// `None` without it. The others' versions have no sum.
    pub compared: Option<u64>,
    /// What is wrong; empty for a sound store. Of one kind the first 1,000 are listed and one
    /// more says how many there are.
    pub problems: Vec<Problem>,
    /// What could be laid out better but is right, listed as the problems are.
    pub notes: Vec<Problem>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Kinds of problems; each has its own limit and its own advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemKind {
    /// A page or a structure of pages.
    Page,
    /// One object.
    Object,
    /// Names, handles and records that contradict each other.
    Reference,
    /// Pages used but free.
    Space,
    /// Pages or counts that only waste room or misreport figures.
    Waste,
    /// A copy of the superblock.
    Superblock,
    /// Not a problem.
    Note,
}

const KINDS: usize = 7;
/// Problems of one kind that are listed.
const LISTED_OF_A_KIND: u64 = 1000;

impl ProblemKind {
    fn advice(self) -> &'static str {
        match self {
            Self::Page => "export what can still be read and restore the rest from a copy",
            Self::Object => "restore this object from a copy",
            Self::Reference => "export the objects into a new store",
            Self::Space => "do not write to this store; export the objects into a new one",
            Self::Waste => "no object is affected; export into a new store to be rid of it",
            Self::Superblock => {
                "the other copy serves; the next change to the store renews this one"
            }
            Self::Note => "no damage",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Page => "pages",
            Self::Object => "objects",
            Self::Reference => "references",
            Self::Space => "space",
            Self::Waste => "waste",
            Self::Superblock => "superblock",
            Self::Note => "notes",
        }
    }
}

const ALL: [ProblemKind; KINDS] = [
    ProblemKind::Page,
    ProblemKind::Object,
    ProblemKind::Reference,
    ProblemKind::Space,
    ProblemKind::Waste,
    ProblemKind::Superblock,
    ProblemKind::Note,
];

/// Collects what is found.
#[derive(Debug, Default)]
pub(super) struct Problems {
    problems: Vec<Problem>,
    notes: Vec<Problem>,
    counts: [u64; KINDS],
}

impl Problems {
    /// Adds something wrong.
    pub(super) fn add(
        &mut self,
        kind: ProblemKind,
        place: impl Into<String>,
        detail: impl AsRef<str>,
    ) {
        let count = &mut self.counts[kind as usize];
        *count += 1;
        if *count <= LISTED_OF_A_KIND {
            let detail = format!("{}; {}", detail.as_ref(), kind.advice());
            let list = if kind == ProblemKind::Note { &mut self.notes } else { &mut self.problems };
            list.push(Problem { place: place.into(), detail });
        }
    }

    /// Whether more of this kind would only be counted.
    pub(super) fn is_full(&self, kind: ProblemKind) -> bool {
        self.counts[kind as usize] >= LISTED_OF_A_KIND
    }

    /// Problems and notes, with one more for each kind that was cut.
    pub(super) fn finish(mut self) -> (Vec<Problem>, Vec<Problem>) {
        for kind in ALL {
            let count = self.counts[kind as usize];
            if count > LISTED_OF_A_KIND {
                let detail =
                    format!("{} more like the {LISTED_OF_A_KIND} listed", count - LISTED_OF_A_KIND);
                let list =
                    if kind == ProblemKind::Note { &mut self.notes } else { &mut self.problems };
                list.push(Problem { place: kind.title().into(), detail });
            }
        }
        (self.problems, self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_problems_of_a_kind_are_counted_not_listed() {
        let mut found = Problems::default();
        for i in 0..2500 {
            found.add(ProblemKind::Object, format!("object {i}"), "gone");
        }
        found.add(ProblemKind::Page, "page 7", "torn");
        found.add(ProblemKind::Note, "here", "fine");
        let (problems, notes) = found.finish();
        assert_eq!((problems.len(), notes.len()), (1002, 1));
        assert!(problems.iter().any(|p| p.detail.starts_with("1500 more")), "{problems:?}");
        assert!(problems.iter().any(|p| p.place == "page 7"));
    }
}
