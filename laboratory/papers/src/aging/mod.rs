//! Sears 2006: large objects in files and databases as a store ages.
//!
//! Real stores on real volumes: nothing here is simulated. `bench` runs a `case` on a fresh
//! `volume`, if a store (`system`) ages (`aged`); `markers` and `places` count fragments in the
//! raw bytes; `figures` draw the curves and judge the claims.

mod aged;
mod bench;
mod case;
mod figures;
mod gaps;
mod markers;
mod places;
mod system;
#[cfg(test)]
mod tests;
mod volume;

use holdall_instrument::paper::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "sears",
    letter: 'S',
    citation: "Sears 2006",
    reference: "R. Sears, C. van Ingen, J. Gray: To BLOB or Not To BLOB: Large Object Storage in a Database \
                or a Filesystem? Technical Report MSR-TR-2006-45, Microsoft Research, 2006.",
    about: "large objects in files and databases as a store ages",
    question: "From which size on does an object belong in a file instead of a database, and how \
               does that change as a store ages? Objects are replaced whole, by safe writes, \
               until ten times the bytes of the store were written; markers in the objects tell \
               from the raw disk in how many fragments each lies.",
    bearing: "Objects of every size lie in one file, in segments from buddy spaces, and a writer \
              takes a size hint: figures 3, 5 and 6 show what that does to fragments as the \
              store ages, the interleaved appends what windows of room do.",
    experiments: figures::experiments,
};
