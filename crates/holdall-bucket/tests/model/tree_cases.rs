//! The small cases of trees and of several sources, tried exhaustively.

use crate::cases::{A, B, C, GC, OWN, SHARED, SHARED_B, try_each};
use crate::exhaustive::{Case, Object};
use crate::faults::Fate;
use crate::process::Script;
use crate::tree::Plan;

/// A tree of two blobs below a node.
const TREE: Object = Object { tree: true, ..OWN };
const TREE_SHARED: Object = Object { tree: true, ..SHARED };
/// A copy of it: the same node.
const TREE_B: Object = Object { tree: true, ..SHARED_B };

const PUT: Script = Script::Tree(Plan::Put { name: A, blobs: 1 });
/// Keeps the first blob of two.
const EDIT: Script = Script::Tree(Plan::Edit { name: A, keep: 1, blob: false });
const EDIT_BLOB: Script = Script::Tree(Plan::Edit { name: A, keep: 1, blob: true });
const EDIT_B: Script = Script::Tree(Plan::Edit { name: B, keep: 2, blob: true });
const COPY: Script = Script::Copy { from: A, to: B, rename: false };
const PART: Script = Script::Tree(Plan::CopyPart { from: A, to: B, keep: 1 });
const JOIN: Script = Script::Tree(Plan::Join { parts: [A, B], to: C });
const DELETE: Script = Script::Delete(A);

pub const TREE_EDITED: Case = Case {
    objects: &[TREE],
    silence: true,
    ..Case::new("two edits of a tree, gc", &[EDIT_BLOB, EDIT, GC])
};
/// The tree is put, and its intent still there; a cycle has listed intents before. The edit keeps what
/// the put wrote, and the recent list forgets it.
pub const TREE_FORGOTTEN: Case = Case {
    before: &[(2, 2, Fate::Normal), (0, 6, Fate::Normal)],
    recent: 1,
    ..Case::new("a tree is put, and edited, two gcs, a short recent list", &[PUT, EDIT, GC, GC])
};
pub const TREE_DELETED: Case =
    Case { objects: &[TREE], silence: true, ..Case::new("a tree is deleted, gc", &[DELETE, GC]) };
pub const TREE_COPIED: Case = Case {
    objects: &[TREE],
    ..Case::new("a copy of a tree, a deletion of its source, two gcs", &[COPY, DELETE, GC, GC])
};
/// The copy's tree is edited: what it keeps lies below the node of both.
pub const TREE_COPY_EDITED: Case = Case {
    objects: &[TREE_SHARED, TREE_B],
    silence: true,
    ..Case::new("edits of a tree and of its copy, gc", &[EDIT, EDIT_B, GC])
};
pub const TREE_PART: Case = Case {
    objects: &[TREE_SHARED],
    silence: true,
    ..Case::new("a copy of a part of a tree, a deletion of its source, gc", &[PART, DELETE, GC])
};
pub const TREE_FULL: Case = Case {
    objects: &[TREE],
    ..Case::new("an edit of a tree, gc --full, gc", &[EDIT_BLOB, Script::Full, GC])
};
pub const JOINED: Case = Case {
    objects: &[SHARED, Object { op: crate::record::Op(902), ..SHARED_B }],
    ..Case::new(
        "a joint of two objects, a deletion of the second, gc",
        &[JOIN, Script::Delete(B), GC],
    )
};
const JOINED_TREE: Case = Case {
    objects: &[TREE, Object { op: crate::record::Op(902), ..TREE_B }],
    silence: true,
    ..Case::new("a joint of two trees, an edit of one, gc", &[JOIN, EDIT_B, GC])
};

/// Cases with the least number of states that they have.
const CASES: [(Case, usize); 9] = [
    (TREE_EDITED, 20_000),
    (TREE_FORGOTTEN, 15_000),
    (TREE_DELETED, 30),
    (TREE_COPIED, 900_000),
    (TREE_COPY_EDITED, 20_000),
    (TREE_PART, 900),
    (TREE_FULL, 75_000),
    (JOINED, 1_100),
    (JOINED_TREE, 25_000),
];

#[test]
fn every_order_of_trees() {
    try_each(&CASES);
}
