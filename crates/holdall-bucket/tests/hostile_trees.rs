//! Trees and lists made by somebody who can write blobs: nodes that lead to themselves, levels that
//! do not fall, lists that name lists. Reading, changing and collecting end, with an error or without.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use async_trait::async_trait;
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::format::{
    BlobId, BlobKind, BlobRef, Blobs, Id, Named, Part, Record, Retired, Sizes, encode_blob,
    encode_list, encode_node, keys, reference,
};
use holdall_bucket::store::Options;
use holdall_bucket::{BucketStore, CollectOptions, Splice};
use holdall_core::segment_tree::{Child, Node, NodeRef, Slice, Top, Tree};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// More requests than any call here may make.
const ENDLESS: u64 = 10_000;

/// A bucket in memory that counts, and fails the test where a call makes requests without end.
#[derive(Debug, Default)]
struct Watched {
    memory: Memory,
    gets: AtomicU64,
    deleted: Mutex<Vec<String>>,
}

#[async_trait]
impl Backend for Watched {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        assert!(self.gets.fetch_add(1, Relaxed) < ENDLESS, "requests without end: {key}");
        self.memory.get(key, range, unless).await
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.memory.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.memory.put_if(key, expected, bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.deleted.lock().unwrap().push(key.to_owned());
        self.memory.delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.memory.delete_if(key, tag).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.memory.list(prefix, after, folders, limit).await
    }

    fn features(&self) -> Features {
        self.memory.features()
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn id(number: u32) -> BlobId {
    BlobId { operation: Id([7; 16]), number }
}

/// A blob by its number, of that length.
fn blob(number: u32, len: u64) -> BlobRef {
    BlobRef { id: id(number), len }
}

/// A bucket with a store without grace.
struct Case {
    backend: Arc<Watched>,
    store: BucketStore,
}

impl Case {
    fn new() -> Self {
        let backend = Arc::new(Watched::default());
        let sizes = Sizes { fanout: 4, slices: 4, grace: 0, ..Sizes::default() };
        let store = run(Options::default().sizes(sizes).create(backend.clone())).unwrap();
        Self { backend, store }
    }

    fn write(&self, number: u32, kind: BlobKind, payload: &[u8]) -> BlobRef {
        let stored = encode_blob(id(number), kind, payload);
        run(self.backend.put_new(&keys::blob(id(number)), stored)).unwrap();
        blob(number, payload.len() as u64)
    }

    /// Writes an inner node of these children: blob and bytes below.
    fn inner(&self, number: u32, level: u8, children: &[(BlobRef, u64)]) -> BlobRef {
        let mut blobs = Blobs::default();
        let child = |(blob, bytes): &(BlobRef, u64)| Child {
            bytes: *bytes,
            node: NodeRef(blobs.alias(*blob)),
        };
        let children = children.iter().map(child).collect();
        let node = Node::Inner { level, children };
        self.write(number, BlobKind::Node, &encode_node(&node, &blobs).unwrap())
    }

    /// Writes a leaf of zeros.
    fn leaf(&self, number: u32, bytes: u64) -> BlobRef {
        let node = Node::Leaf(vec![Slice::zeros(bytes)]);
        self.write(number, BlobKind::Node, &encode_node(&node, &Blobs::default()).unwrap())
    }

    fn list(&self, number: u32, names: &[Named]) -> BlobRef {
        let entries: Vec<Retired> =
            names.iter().map(|named| Retired { named: *named, seconds: 1 }).collect();
        self.write(number, BlobKind::List, &encode_list(&entries).unwrap())
    }

    fn record(&self, record: Record) {
        let record = Record { collection: "default".into(), name: "a".into(), ..record };
        let key = keys::record("default", "a").unwrap();
        let put = run(self.backend.put_if(&key, None, record.encode().unwrap())).unwrap();
        assert!(matches!(put, Put::Done(_)), "{put:?}");
    }

    fn root(&self, root: BlobRef, height: u8, size: u64) {
        let mut blobs = Blobs::default();
        let node = NodeRef(blobs.alias(root));
        let tree = Tree { size, top: Top::Root { node, height } };
        self.record(Record { tree, blobs, ..Record::default() });
    }

    fn retired(&self, names: &[Named]) {
        let entry = |named: &Named| Retired { named: *named, seconds: 1 };
        self.record(Record { retired: names.iter().map(entry).collect(), ..Record::default() });
    }

    fn collect(&self, full: bool) -> Result<u64> {
        let options = CollectOptions { full, ..CollectOptions::default() };
        run(self.store.collect(options, &mut |_| ())).map(|report| report.blobs)
    }

    /// The numbers of the blobs that were deleted, in their order.
    fn deleted(&self) -> Vec<u32> {
        let keys = self.backend.deleted.lock().unwrap();
        keys.iter().filter_map(|key| keys::parse_blob(key)).map(|blob| blob.number).collect()
    }

    fn gets(&self) -> u64 {
        self.backend.gets.swap(0, Relaxed)
    }

    /// Reads, changes, copies and collects: all end, and what reads all of it calls it damage.
    fn is_damaged(&self) {
        corrupt(run(self.store.get("a")));
        let all: u64 = 1 << 40;
        let edits = [Splice::SetLen(3), Splice::SetLen(all), Splice::Replace(1..2, "xyz".into())];
        for edit in edits {
            let _ = run(self.store.edit("a", vec![edit]));
        }
        let _ = run(self.store.copy("a", "b"));
        let _ = run(self.store.remove("a"));
        let _ = (self.collect(false), self.collect(true));
        self.gets();
    }
}

fn named(blob: BlobRef, part: Part) -> Named {
    Named { blob, part }
}

fn corrupt<T: std::fmt::Debug>(read: Result<T>) -> String {
    match read {
        Err(Error::Corrupt { detail, .. }) => detail,
        other => panic!("not reported as damage: {other:?}"),
    }
}

/// The length of the payload of a node that `write` makes of its own length.
fn own_len(write: impl Fn(u64) -> u64) -> u64 {
    (1..1000).find(|len| write(*len) == *len).unwrap()
}

#[test]
fn a_node_that_names_itself() {
    let case = Case::new();
    let len = own_len(|len| case.inner(1, 1, &[(blob(1, len), 100)]).len);
    let root = case.inner(1, 1, &[(blob(1, len), 100)]);
    case.root(root, 1, 100);
    assert!(corrupt(run(case.store.get_range("a", 0..1))).contains("used twice"));
    case.is_damaged();
}

#[test]
fn two_nodes_that_name_each_other() {
    let case = Case::new();
    let other = case.inner(2, 1, &[(blob(1, 25), 100)]);
    let root = case.inner(1, 2, &[(other, 100)]);
    // Its length, as the other says it: a wrong one would be noticed first.
    let other = case.inner(2, 1, &[(root, 100)]);
    assert_eq!(case.inner(1, 2, &[(other, 100)]), root);
    case.root(root, 2, 100);
    assert!(corrupt(run(case.store.get_range("a", 0..1))).contains("used twice"));
    case.is_damaged();
}

#[test]
fn a_node_that_names_a_child_twice() {
    let case = Case::new();
    let leaf = case.leaf(2, 100);
    let root = case.inner(1, 1, &[(leaf, 100), (leaf, 100)]);
    case.root(root, 1, 200);
    assert_eq!(run(case.store.get_range("a", 10..20)).unwrap().unwrap(), vec![0; 10]);
    assert!(corrupt(run(case.store.get("a"))).contains("used twice"));
    case.is_damaged();
}

#[test]
fn a_tree_of_few_nodes_that_claims_much() {
    // Each level names the one below a thousand times: 1000^4 leaves, of five blobs.
    let case = Case::new();
    let mut node = (case.leaf(9, 1), 1);
    for level in 1..5 {
        node = (case.inner(u32::from(level), level, &vec![node; 1000]), node.1 * 1000);
    }
    case.root(node.0, 4, node.1);
    assert!(corrupt(run(case.store.get_range("a", 0..2000))).contains("used twice"));
    assert!(case.gets() < 20);
    run(case.store.remove("a")).unwrap();
    assert_eq!(case.collect(false).unwrap(), 5);
    assert_eq!(case.deleted(), [9, 1, 2, 3, 4]);
    assert!(case.gets() < 60);
}

#[test]
fn levels_that_do_not_fall() {
    for (height, below) in [(2, 2), (2, 3), (1, 1), (3, 1), (63, 63)] {
        let case = Case::new();
        let leaf = case.leaf(3, 100);
        let child = case.inner(2, below, &[(leaf, 100)]);
        let root = case.inner(1, height, &[(child, 100)]);
        case.root(root, height, 100);
        corrupt(run(case.store.get("a")));
        case.is_damaged();
    }
    // A record that says another height than its root has.
    for height in [0, 2, 63] {
        let case = Case::new();
        let leaf = case.leaf(2, 100);
        let root = case.inner(1, 1, &[(leaf, 100)]);
        case.root(root, height, 100);
        case.is_damaged();
    }
}

#[test]
fn bytes_below_that_are_not_there() {
    for (size, below, bytes) in
        [(100, 100, 99), (100, 99, 99), (100, 101, 101), (1 << 40, 1 << 40, 5)]
    {
        let case = Case::new();
        let leaf = case.leaf(2, bytes);
        let root = case.inner(1, 1, &[(leaf, below)]);
        case.root(root, 1, size);
        corrupt(run(case.store.get_range("a", 0..200)));
    }
    // A segment or a list in a node's place.
    for kind in [BlobKind::Segment, BlobKind::List] {
        let case = Case::new();
        let other = case.write(2, kind, b"not a node");
        let root = case.inner(1, 1, &[(other, 10)]);
        case.root(root, 1, 10);
        assert!(corrupt(run(case.store.get("a"))).contains("is of kind"));
        case.is_damaged();
    }
}

#[test]
fn a_list_that_names_itself() {
    let case = Case::new();
    let len = own_len(|len| case.list(1, &[named(blob(1, len), Part::List)]).len);
    let list = case.list(1, &[named(blob(1, len), Part::List)]);
    case.retired(&[named(list, Part::List)]);
    for full in [false, true] {
        assert!(corrupt(case.collect(full)).contains("leads to itself"));
    }
    assert_eq!(case.deleted(), [0; 0]);
    // It is of no concern to those who use the object.
    run(case.store.put("a", "new")).unwrap();
    assert_eq!(run(case.store.get("a")).unwrap().unwrap(), "new");
    corrupt(case.collect(false));
}

#[test]
fn lists_that_name_each_other_and_more() {
    let case = Case::new();
    let segment = case.write(9, BlobKind::Segment, b"bytes");
    let names = |other| [named(segment, Part::Segment), named(other, Part::List)];
    let first = case.list(1, &names(blob(2, 27)));
    let second = case.list(2, &names(first));
    let third = case.list(3, &names(second));
    case.retired(&[named(third, Part::List), named(segment, Part::Segment)]);
    assert!(corrupt(case.collect(false)).contains("leads to itself"));
    assert_eq!(case.deleted(), [0; 0]);
    assert!(case.gets() < 20);
}

#[test]
fn a_long_chain_of_lists_is_collected_from_its_end() {
    let case = Case::new();
    let mut last = named(case.write(100, BlobKind::Segment, b"bytes"), Part::Segment);
    for number in (0..100).rev() {
        last = named(case.list(number, &[last]), Part::List);
    }
    case.retired(&[last]);
    assert_eq!(case.collect(false).unwrap(), 101);
    assert_eq!(case.deleted(), (0..=100).rev().collect::<Vec<_>>());
    // Each was read once to be found, with a few requests beside.
    assert!(case.gets() < 120);
}

#[test]
fn lists_that_name_all_behind_them_are_read_once() {
    let case = Case::new();
    let mut all = vec![named(case.write(60, BlobKind::Segment, b"bytes"), Part::Segment)];
    for number in (0..60).rev() {
        all.push(named(case.list(number, &all), Part::List));
    }
    case.retired(&all);
    assert_eq!(case.collect(false).unwrap(), 61);
    assert_eq!(case.deleted(), (0..=60).rev().collect::<Vec<_>>());
    // Sixty lists, by each of 61 entries.
    assert!(case.gets() < 60 * 61);
}

#[test]
fn what_is_named_alone_in_one_place_and_with_all_below_in_another() {
    // The node is an entry itself, and named by a list below another: what leads to it goes after it.
    let case = Case::new();
    let mut blobs = Blobs::default();
    let segment = case.write(9, BlobKind::Segment, b"bytes");
    let slice = Slice::run(reference(blobs.alias(segment), 0), 5);
    let payload = encode_node(&Node::Leaf(vec![slice]), &blobs).unwrap();
    let node = case.write(5, BlobKind::Node, &payload);
    let inner = case.list(2, &[named(node, Part::Node)]);
    let outer = case.list(1, &[named(inner, Part::List), named(node, Part::Tree(0))]);
    case.retired(&[named(outer, Part::List)]);
    assert_eq!(case.collect(false).unwrap(), 4);
    assert_eq!(case.deleted(), [9, 5, 2, 1]);
}
