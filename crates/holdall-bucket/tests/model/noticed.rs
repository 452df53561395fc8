//! Who notices each rule that the real code can be built without.
//!
//! Owns: [`NOTICED`], the one table of that, a row for each of `holdall_bucket::mutation::ALL`. The
//! simulation notices all, which `make bucket-mutants` tries. Beside it a row names what breaks the
//! same rule here, or says why nothing here does, and what runs of real processes on a real server
//! showed (`make linearizable`, minutes each, by hand).

use crate::mutations::shows_in_a_case;
use crate::rules::Mutation as M;
use holdall_bucket::mutation::ALL;

/// What a run of real processes showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// It failed, as it should.
    Noticed,
    /// It passed, for this reason.
    Passed(&'static str),
    /// None was made.
    NotTried,
}

use Run::{NotTried, Noticed, Passed};

/// Name, the same here or why there is none, and what a run showed.
type Row = (&'static str, Result<&'static [M], &'static str>, Run);

const NOTICED: [Row; 25] = [
    ("01-nonce", Ok(&[M::R01Rewrite, M::R01Create]), NotTried),
    ("02-own", Ok(&[M::R02Recent, M::R02Own]), Noticed),
    ("02-recent", Ok(&[M::R02Recent]), Noticed),
    (
        "02-unknown",
        Ok(&[M::R02Proof, M::R02Conflict]),
        Passed(
            "an answer must be lost of a change that was made, and sixteen others follow before the record \
             is read",
        ),
    ),
    ("03-intent", Ok(&[M::R03Blob]), NotTried),
    ("04-absent", Ok(&[M::R04Absent]), NotTried),
    ("05-open", Ok(&[M::R05Check, M::R05Order]), NotTried),
    ("06-flag", Ok(&[M::R06Flag]), Noticed),
    ("06-reread", Ok(&[M::R06Read]), NotTried),
    ("07-retired", Ok(&[M::R07Change, M::R07Delete]), NotTried),
    ("07-unused", Err("who begins anew here writes no other blobs"), NotTried),
    ("09-condemn", Ok(&[M::R09Condemn]), NotTried),
    ("09-fence", Ok(&[M::R09Fence]), NotTried),
    ("09-named", Ok(&[M::R09Live, M::R09Below]), NotTried),
    ("10-shared", Ok(&[M::R10Shared]), NotTried),
    (
        "10-live",
        Err(
            "an entry here goes when its blob is named again, as bytes are not modelled: parts of one \
             blob are dropped one after another",
        ),
        Passed(
            "a record that shares is its own root by rule 11, and one that does not must drop two parts of a \
             blob, one a grace before a cycle and the other after it",
        ),
    ),
    ("11-records", Ok(&[M::R11Fenced, M::R11Retired]), NotTried),
    ("12-tag", Ok(&[M::R12Plain]), NotTried),
    ("14-order", Ok(&[M::R14Blobs]), NotTried),
    ("14-open", Ok(&[M::R14Intents]), NotTried),
    ("15-flag", Ok(&[M::R15Flag]), NotTried),
    ("15-clock", Ok(&[M::R15Clock]), NotTried),
    ("15-ends", Ok(&[M::R15Early]), NotTried),
    ("15-condemn", Ok(&[M::R15Condemn]), NotTried),
    ("15-holds", Ok(&[M::R15Intents]), NotTried),
];

#[test]
fn each_rule_of_the_real_code_has_who_notices_that_it_is_missing() {
    assert_eq!(NOTICED.map(|(name, ..)| name), ALL.map(|(_, name)| name));
    for (name, here, run) in NOTICED {
        match here {
            Ok(same) => {
                let shown = same.iter().all(|mutation| shows_in_a_case(*mutation));
                assert!(!same.is_empty() && shown, "{name}: {same:?} are argued, not shown");
            }
            Err(why) => assert!(!why.is_empty(), "{name}"),
        }
        if let Passed(why) = run {
            assert!(!why.is_empty(), "{name}");
        }
    }
}
