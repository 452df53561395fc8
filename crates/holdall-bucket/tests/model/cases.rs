//! The small cases that are tried exhaustively.
//!
//! Owns: the cases. Each is as small as the danger that it is about.

use crate::exhaustive::{Case, Found, Object, Order, search};
use crate::faults::Fate;
use crate::process::Script;
use crate::record::{Name, Op};
use std::time::Instant;

pub const A: Name = Name(0);
pub const B: Name = Name(1);
pub const C: Name = Name(2);
/// Who wrote the objects that are there.
const BEFORE: Op = Op(900);

const PUT: Script = Script::Put { name: A, blobs: 1, intent_first: false, renew: false };
/// Its intent is written before the base is read.
const PUT_EARLY: Script = Script::Put { name: A, blobs: 1, intent_first: true, renew: false };
const PUT_RENEWED: Script = Script::Put { name: A, blobs: 1, intent_first: false, renew: true };
const SMALL: Script = Script::PutSmall(A);
const EDIT: Script = Script::Edit { name: A, keep: u8::MAX, blob: false };
const EDIT_BLOB: Script = Script::Edit { name: A, keep: 0, blob: true };
const COPY: Script = Script::Copy { from: A, to: B, rename: false };
const MOVE: Script = Script::Copy { from: A, to: B, rename: true };
const MOVE_ON: Script = Script::Copy { from: B, to: C, rename: true };
const HOLD: Script = Script::Hold { name: A, extends: false };
const HOLD_LONG: Script = Script::Hold { name: A, extends: true };
pub const GC: Script = Script::Gc;

pub const OWN: Object = Object { name: A, op: BEFORE, shared: false, gone: false, tree: false };
pub const SHARED: Object = Object { shared: true, ..OWN };
pub const SHARED_B: Object = Object { name: B, ..SHARED };
const GONE: Object = Object { gone: true, ..SHARED };
/// A name that once shared the blob, so that gc thinks of deleting it.
const GONE_C: Object = Object { name: C, ..GONE };

/// A put whose requests go wrong.
pub const PUT_FAULTS: Case =
    Case { faults: 2, silence: true, ..Case::new("a put with two faults, gc", &[PUT, GC]) };
pub const PUT_TWICE: Case =
    Case { silence: true, ..Case::new("two puts of a name, gc", &[PUT, PUT_EARLY, GC]) };
pub const PUT_TWICE_FAULT: Case =
    Case { faults: 1, ..Case::new("two puts of a name with a fault, gc", &[PUT, PUT_EARLY, GC]) };
pub const PUT_RENEW: Case =
    Case { faults: 1, ..Case::new("a put that renews its intent, gc", &[PUT_RENEWED, GC]) };
pub const PUT_COLLECTED: Case = Case::new("a put, two gcs", &[PUT, GC, GC]);
pub const PUT_FULL: Case = Case::new("a put, gc --full, gc", &[PUT, Script::Full, GC]);
/// The recent list forgets the put at the edit.
pub const FORGOTTEN: Case =
    Case { recent: 1, ..Case::new("a put, an edit, gc, a short recent list", &[PUT, EDIT, GC]) };
pub const EDITED: Case = Case {
    objects: &[OWN],
    silence: true,
    ..Case::new("an edit with a blob, an edit without, gc", &[EDIT_BLOB, EDIT, GC])
};
pub const DELETED: Case = Case {
    objects: &[OWN],
    silence: true,
    ..Case::new("a deletion, gc", &[Script::Delete(A), GC])
};
/// Small objects come and go, and creates arrive late.
pub const CREATED: Case = Case {
    faults: 2,
    ..Case::new(
        "two small puts with two faults, a deletion, gc",
        &[SMALL, SMALL, Script::Delete(A), GC],
    )
};
/// The second put's placeholder was written, its answer lost; the first put has read it, and gc
/// removed it.
pub const CREATED_AGAIN: Case = Case {
    before: &[
        (1, 1, Fate::Normal),
        (1, 1, Fate::Unanswered),
        (0, 1, Fate::Normal),
        (2, 7, Fate::Normal),
    ],
    ..Case::new("a placeholder sent again, two gcs", &[PUT, PUT, GC, GC])
};
pub const COPIED: Case = Case {
    objects: &[OWN],
    ..Case::new("a copy, a deletion of its source, two gcs", &[COPY, Script::Delete(A), GC, GC])
};
pub const COPIED_FAULT: Case = Case {
    objects: &[OWN],
    faults: 1,
    silence: true,
    ..Case::new("a copy with a fault, a deletion of its source, gc", &[COPY, Script::Delete(A), GC])
};
pub const COPIED_FLAGGED: Case = Case {
    objects: &[SHARED],
    ..Case::new(
        "a copy of a flagged object, a deletion of its source, gc",
        &[COPY, Script::Delete(A), GC],
    )
};
/// The target has the blob already.
pub const COPIED_BACK: Case = Case {
    objects: &[SHARED, SHARED_B],
    silence: true,
    ..Case::new("a copy over a copy, a deletion, gc", &[COPY, Script::Delete(B), GC])
};
pub const MOVED: Case = Case {
    objects: &[SHARED, GONE_C],
    faults: 1,
    silence: true,
    ..Case::new("a rename with a fault, gc", &[MOVE, GC])
};
pub const MOVED_COLLECTED: Case =
    Case { objects: &[SHARED, GONE_C], ..Case::new("a rename, two gcs", &[MOVE, GC, GC]) };
pub const MOVED_ON: Case = Case {
    objects: &[OWN],
    ..Case::new("a rename, a rename of its target, two gcs", &[MOVE, MOVE_ON, GC, GC])
};
/// The newest of three cycles has listed the names; the others have only begun.
pub const MOVED_THREE: Case = Case {
    objects: &[SHARED, GONE_C],
    before: &[(1, 1, Fate::Normal), (2, 1, Fate::Normal), (3, 5, Fate::Normal)],
    ..Case::new("a rename, three gcs", &[MOVE, GC, GC, GC])
};
/// The oldest of them has.
pub const MOVED_STALE: Case = Case {
    objects: &[SHARED, GONE_C],
    before: &[(1, 5, Fate::Normal), (2, 1, Fate::Normal), (3, 1, Fate::Normal)],
    ..Case::new("a rename, an old gc, two gcs", &[MOVE, GC, GC, GC])
};
pub const MOVED_FULL: Case = Case {
    objects: &[SHARED],
    before: &[(1, 4, Fate::Normal)],
    ..Case::new("a rename, gc --full, two gcs", &[MOVE, Script::Full, GC, GC])
};
/// The cycle of `gc --full` is newer than one of the others.
pub const MOVED_FULL_NEW: Case = Case {
    objects: &[SHARED, GONE_C],
    before: &[(2, 1, Fate::Normal), (1, 4, Fate::Normal)],
    ..Case::new("a rename, an old gc, gc --full", &[MOVE, Script::Full, GC])
};
/// The object that the blob was written for is gone, and its writer's intent is not.
pub const LEFT: Case = Case {
    objects: &[GONE, SHARED_B],
    intents: &[(Op(900), C)],
    faults: 1,
    silence: true,
    ..Case::new("an intent that was left, gc with a fault", &[GC])
};

pub const HELD: Case = Case {
    objects: &[OWN],
    faults: 1,
    silence: true,
    ..Case::new("a hold with a fault, a deletion, gc", &[HOLD, Script::Delete(A), GC])
};
pub const HELD_SHARED: Case = Case {
    objects: &[SHARED],
    silence: true,
    ..Case::new(
        "a hold of a flagged object, a deletion, two gcs",
        &[HOLD, Script::Delete(A), GC, GC],
    )
};
/// An editor deletes what its object retired.
pub const HELD_PURGED: Case = Case {
    objects: &[OWN],
    ..Case::new(
        "a hold, a deletion, an editor, gc",
        &[HOLD, Script::Delete(A), Script::Purge(A), GC],
    )
};
/// The object is deleted, and another that had its blob is, too.
pub const HELD_MOVED: Case =
    Case { objects: &[SHARED, GONE_C], ..Case::new("a hold, a rename, gc", &[HOLD, MOVE, GC]) };
/// Time passes while the hold is made, and while it is made longer.
pub const HELD_LONG: Case = Case {
    objects: &[OWN],
    silence: true,
    ..Case::new(
        "a long hold, a deletion, time, gc",
        &[HOLD_LONG, Script::Delete(A), Script::Clock, GC],
    )
};

/// Two cycles look at a hold while it is made longer.
pub const HELD_TWICE: Case = Case {
    objects: &[SHARED],
    ..Case::new(
        "a long hold, a deletion, time, two gcs",
        &[HOLD_LONG, Script::Delete(A), Script::Clock, GC, GC],
    )
};

/// Cases with the least number of states that they have: one that is no longer tried must not
/// pass.
const CASES: [(Case, usize); 28] = [
    (PUT_FAULTS, 10_000),
    (PUT_TWICE, 50_000),
    (PUT_TWICE_FAULT, 900_000),
    (PUT_RENEW, 2_000),
    (PUT_COLLECTED, 40_000),
    (PUT_FULL, 15_000),
    (FORGOTTEN, 500),
    (EDITED, 2_000),
    (DELETED, 20),
    (CREATED, 40_000),
    (CREATED_AGAIN, 15_000),
    (COPIED, 350_000),
    (COPIED_FAULT, 12_000),
    (COPIED_FLAGGED, 500),
    (COPIED_BACK, 1_200),
    (MOVED, 2_500),
    (MOVED_COLLECTED, 80_000),
    (MOVED_THREE, 1_000_000),
    (MOVED_STALE, 800_000),
    (MOVED_FULL, 400_000),
    (MOVED_FULL_NEW, 1_500),
    (LEFT, 40),
    (HELD, 6_000),
    (HELD_SHARED, 30_000),
    (HELD_PURGED, 2_500),
    (HELD_MOVED, 5_000),
    (HELD_LONG, 7_000),
    (HELD_TWICE, 300_000),
];

/// Cases that take minutes and gigabytes. Some are tried only in part.
const LARGE: [Case; 8] = [
    Case { faults: 1, ..HELD_TWICE },
    MOVED_ON,
    Case { faults: 1, silence: true, ..COPIED },
    Case { faults: 1, ..MOVED_COLLECTED },
    Case {
        objects: &[OWN],
        ..Case::new("a rename, a put, gc --full, gc", &[MOVE, PUT_EARLY, Script::Full, GC])
    },
    Case { faults: 2, ..PUT_TWICE_FAULT },
    Case::new("two puts of a name, two gcs", &[PUT, PUT_EARLY, GC, GC]),
    Case { before: &[], ..MOVED_THREE },
];

/// Most requests tried in a case, and in a large one.
const MOST: usize = 10_000_000;
const MOST_LARGE: usize = 60_000_000;

#[test]
fn every_order() {
    try_each(&CASES);
    if std::env::var_os("HOLDALL_MODEL_LARGE").is_some() {
        for case in LARGE {
            try_all(case, MOST_LARGE);
        }
    }
}

/// Tries cases with the least number of states that each has.
pub fn try_each(cases: &[(Case, usize)]) {
    for (case, least) in cases {
        let found = try_all(*case, MOST);
        assert!(found.complete, "{}: more than {MOST} requests", case.name);
        assert!(found.states >= *least, "{}: {} states are too few", case.name, found.states);
    }
}

fn try_all(case: Case, most: usize) -> Found {
    let begun = Instant::now();
    let found = search(case, None, Order::Depth, most);
    let part = if found.complete { "all" } else { "the first" };
    let (states, depth) = (found.states, found.depth);
    println!("{}: {part} {states} states, {depth} deep, {:?}", case.name, begun.elapsed());
    if let Some((why, steps)) = &found.wrong {
        panic!("{}: {why}\n{}", case.name, steps.join("\n"));
    }
    found
}
