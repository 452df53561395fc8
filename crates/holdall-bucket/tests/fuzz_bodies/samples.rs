//! Valid things that the bodies begin with, as an input says.

use super::Input;
use holdall::Attributes;
use holdall_bucket::format::{
    BlobId, BlobRef, Blobs, EMBEDDED, Head, Id, Intent, IntentKind, IntentState, Named, Part,
    Record, Retired, Sizes, reference,
};
use holdall_core::segment_tree::{Child, Node, NodeRef, Slice, Top, Tree};

pub fn id(n: u8) -> Id {
    Id([n; Id::BYTES])
}

/// One of few blobs; a number has always the same length.
pub fn blob(n: u8) -> BlobRef {
    let number = u32::from(n >> 2) << (n & 24);
    let len = 1 + u64::from(number) % (8 << 20);
    BlobRef { id: BlobId { operation: id(n & 3), number }, len }
}

fn text(input: &mut Input<'_>) -> String {
    let len = usize::from(input.u8() & 15);
    String::from_utf8_lossy(input.take(len)).into_owned()
}

fn named(input: &mut Input<'_>) -> Named {
    let (blob, kind) = (blob(input.u8()), input.u8());
    let part = match kind & 3 {
        0 => Part::Segment,
        1 => Part::Node,
        2 => Part::Tree(kind >> 2),
        _ => Part::List,
    };
    Named { blob, part }
}

pub fn retired(input: &mut Input<'_>, least: usize) -> Vec<Retired> {
    let count = least.max(usize::from(input.u8() & 7));
    let seconds = |input: &mut Input<'_>| u64::from(input.u32());
    (0..count).map(|_| Retired { named: named(input), seconds: seconds(input) }).collect()
}

/// Slices of blobs, of zeros, and of `embedded` bytes.
fn slices(input: &mut Input<'_>, least: usize, blobs: &mut Blobs, embedded: u64) -> Vec<Slice> {
    let count = least.max(usize::from(input.u8() & 15));
    let one = |_| {
        let how = input.u8();
        let part = |whole: u64, cut: u8| {
            (u64::from(cut & 15) % whole, whole - u64::from(cut & 15) % whole)
        };
        match how & 3 {
            0 => Slice::zeros(1 + u64::from(input.u32())),
            1 if embedded > 0 => {
                let (from, len) = part(embedded, how >> 4);
                Slice::run(reference(EMBEDDED, from), len)
            }
            _ => {
                let blob = blob(input.u8());
                let (from, len) = part(blob.len, how >> 4);
                Slice::run(reference(blobs.alias(blob), from), len)
            }
        }
    };
    (0..count).map(one).collect()
}

pub fn record(input: &mut Input<'_>) -> Record {
    let how = input.u8();
    let gone = how & 7 == 0;
    let (mut blobs, mut embedded, mut tree) = (Blobs::default(), Vec::new(), Tree::empty());
    let mut attributes = Attributes::new();
    if !gone {
        let len = usize::from(input.u8() & 31);
        embedded = input.take(len).to_vec();
        if how & 8 == 0 {
            let all = slices(input, 0, &mut blobs, embedded.len() as u64);
            tree = Tree { size: all.iter().map(|s| s.len).sum(), top: Top::Inline(all) };
        } else {
            let node = NodeRef(blobs.alias(blob(input.u8())));
            let top = Top::Root { node, height: input.u8() & 63 };
            tree = Tree { size: 1 + u64::from(input.u32()), top };
        }
        for _ in 0..how >> 4 & 3 {
            attributes.insert(text(input), text(input).into_bytes());
        }
    }
    Record {
        gone,
        shared: how & 128 != 0,
        nonce: id(input.u8()),
        operation: id(input.u8()),
        incarnation: id(input.u8()),
        change: u64::from(input.u32()),
        created: u64::from(input.u32()),
        modified: u64::from(input.u32()),
        recent: (0..input.u8() & 15).map(u64::from).collect(),
        collection: text(input),
        name: text(input),
        attributes,
        tree,
        blobs,
        embedded: embedded.into(),
        retired: retired(input, 0),
    }
}

pub fn node(input: &mut Input<'_>) -> (Node, Blobs) {
    let mut blobs = Blobs::default();
    let level = input.u8() & 3;
    if level == 0 {
        let all = slices(input, 1, &mut blobs, 0);
        return (Node::Leaf(all), blobs);
    }
    let count = 1 + (input.u8() & 15);
    let child = |_| {
        let node = NodeRef(blobs.alias(blob(input.u8())));
        Child { bytes: 1 + u64::from(input.u32()), node }
    };
    let children = (0..count).map(child).collect();
    (Node::Inner { level, children }, blobs)
}

pub fn intent(input: &mut Input<'_>) -> Intent {
    let how = input.u8();
    Intent {
        nonce: id(input.u8()),
        state: [IntentState::Open, IntentState::Condemned, IntentState::Resolved]
            [usize::from(how % 3)],
        kind: [IntentKind::Write, IntentKind::Share, IntentKind::Hold][usize::from(how / 3 % 3)],
        collection: text(input),
        name: text(input),
        shared: (0..input.u8() & 15).map(|_| named(input)).collect(),
        cycle: u64::from(input.u32()),
        ends: u64::from(input.u32()),
    }
}

pub fn head(input: &mut Input<'_>) -> Head {
    let sizes = Sizes {
        embedded: u64::from(input.u16()),
        segment: u64::from(input.u16()).max(1 << 16),
        slices: 2048 + usize::from(input.u8()),
        fanout: 4 + usize::from(input.u8()),
        retired: 1 + usize::from(input.u8()),
        grace: u64::from(input.u32()),
    };
    Head::new(id(input.u8()), sizes)
}
