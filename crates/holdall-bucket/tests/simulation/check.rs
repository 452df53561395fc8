//! What must hold after each effect: no record names what is not there, and each change of a record is
//! one that a task was to make.

use bytes::Bytes;
use holdall_bucket::backend::Found;
use holdall_bucket::format::{
    BlobId, BlobKind, Blobs, EMBEDDED, Id, Intent, Named, Part, Record, alias_of, byte_of,
    decode_node, decode_stored, keys,
};
use holdall_core::segment_tree::{Node, Slice, Top};
use std::collections::{BTreeMap, BTreeSet};

/// A state of a name: `None` if there is no object.
pub type Content = Option<Bytes>;

/// A change of a name.
#[derive(Debug, Clone)]
pub struct Version {
    /// When.
    pub step: u64,
    /// By which operation.
    pub operation: Id,
    /// What was there since.
    pub content: Content,
}

/// All changes so far.
#[derive(Debug, Default)]
pub struct Checker {
    /// By key.
    pub history: BTreeMap<String, Vec<Version>>,
    live: BTreeMap<String, BTreeSet<BlobId>>,
    /// When a blob was dropped that a record had named, in milliseconds.
    dropped: BTreeMap<BlobId, u64>,
    /// Blobs that readers hold, and until when in milliseconds.
    pub held: BTreeMap<Id, (BTreeSet<BlobId>, u64)>,
    /// For how many milliseconds it stays since.
    pub grace: u64,
}

impl Checker {
    /// Looks at a record that was just written.
    pub fn wrote(
        &mut self,
        keys: &BTreeMap<String, Found>,
        key: &str,
        step: u64,
        now: u64,
    ) -> Result<(), String> {
        let stored = &keys[key].bytes;
        let record = Record::decode(&stored.whole(), key).map_err(|e| format!("{key}: {e}"))?;
        let mut named = BTreeSet::new();
        let content = content(keys, &record, &mut named)
            .map_err(|what| format!("{key}, written by {:?}: {what}", record.operation))?;
        // A client that stalls writes a time that has passed.
        let said = now.min(record.modified / 1_000_000);
        let before = self.live.insert(key.to_owned(), named.clone()).unwrap_or_default();
        self.dropped.extend(before.difference(&named).map(|id| (*id, said)));
        let history = self.history.entry(key.to_owned()).or_default();
        let (operation, before) = match history.last() {
            Some(last) => (last.operation, last.content.clone()),
            None => (Id::default(), None),
        };
        if record.operation == operation || record.operation == Id::default() {
            if before != content {
                return Err(format!("{key} changed without an operation"));
            }
            return Ok(());
        }
        history.push(Version { step, operation: record.operation, content });
        Ok(())
    }

    /// Looks at a deletion.
    pub fn deleted(&mut self, key: &str, step: u64, now: u64) -> Result<(), String> {
        if let Some(blob) = keys::parse_blob(key) {
            // Times are kept in seconds.
            if let Some(at) = self.dropped.get(&blob).filter(|at| now + 2000 < **at + self.grace) {
                return Err(format!("{key} is deleted {} ms after it was dropped", now - at));
            }
            let reader =
                self.held.iter().find(|(_, (held, ends))| held.contains(&blob) && now < *ends);
            if let Some((hold, _)) = reader {
                return Err(format!("{key} is deleted, which {hold} holds"));
            }
            let naming = self.live.iter().find(|(_, named)| named.contains(&blob));
            return naming.map_or(Ok(()), |(name, _)| Err(format!("{name} names {key}, deleted")));
        }
        let hold = keys::parse_intent(key).and_then(|id| self.held.get(&id));
        if hold.is_some_and(|(_, ends)| now < *ends) {
            return Err(format!("the hold {key} is removed, which has not ended"));
        }
        if key.starts_with(keys::RECORDS) {
            self.live.remove(key);
            let history = self.history.entry(key.to_owned()).or_default();
            if history.last().is_some_and(|last| last.content.is_some()) {
                return Err(format!("the record {key} was deleted with its object"));
            }
            history.push(Version { step, operation: Id::default(), content: None });
        }
        Ok(())
    }

    /// Notes what the intent of a hold names, for as long as its reader may expect that.
    pub fn holds(
        &mut self,
        keys: &BTreeMap<String, Found>,
        hold: Id,
        ends: u64,
    ) -> Result<(), String> {
        let (mut held, key) = (BTreeSet::new(), keys::intent(hold));
        let Some(found) = keys.get(&key) else { return Err(format!("{key} is not there")) };
        if let Some((_, before)) = self.held.get_mut(&hold) {
            *before = ends;
            return Ok(());
        }
        let intent = Intent::decode(&found.bytes.whole(), &key).map_err(|e| e.to_string())?;
        let mut open = intent.shared;
        while let Some(Named { blob, part }) = open.pop() {
            held.insert(blob.id);
            let Part::Tree(level) = part else {
                payload(keys, blob.id, BlobKind::Segment)?;
                continue;
            };
            let (payload, mut blobs) = (payload(keys, blob.id, BlobKind::Node)?, Blobs::default());
            let below =
                match decode_node(&payload, &mut blobs, "a node").map_err(|e| e.to_string())? {
                    Node::Leaf(slices) => {
                        let runs = slices.iter().filter(|s| s.is_run());
                        runs.map(|s| (alias_of(s.reference), Part::Segment)).collect::<Vec<_>>()
                    }
                    Node::Inner { children, .. } => {
                        let children = children.iter();
                        children.map(|child| (child.node.0, Part::Tree(level - 1))).collect()
                    }
                };
            let named = below
                .into_iter()
                .filter_map(|(alias, part)| Some(Named { blob: blobs.get(alias)?, part }));
            open.extend(named);
        }
        self.held.insert(hold, (held, ends));
        Ok(())
    }

    /// All blobs that records name.
    pub fn named(&self) -> BTreeSet<BlobId> {
        self.live.values().flatten().copied().collect()
    }
}

/// The bytes that a record stands for.
fn content(
    keys: &BTreeMap<String, Found>,
    record: &Record,
    named: &mut BTreeSet<BlobId>,
) -> Result<Content, String> {
    let mut blobs = record.blobs.clone();
    let mut slices: Vec<Slice> = Vec::new();
    let mut open = Vec::new();
    match &record.tree.top {
        Top::Inline(own) => slices.extend(own),
        Top::Root { node, height } => open.push((*node, *height)),
    }
    while let Some((node, level)) = open.pop() {
        let blob = blobs.get(node.0).ok_or("a node without a blob")?;
        named.insert(blob.id);
        let payload = payload(keys, blob.id, BlobKind::Node)?;
        let read = decode_node(&payload, &mut blobs, "a node").map_err(|e| e.to_string())?;
        if read.level() != level {
            return Err(format!("{} has another level than its parent says", blob.id));
        }
        match read {
            Node::Leaf(own) => slices.extend(own),
            Node::Inner { children, .. } => {
                open.extend(children.iter().rev().map(|child| (child.node, level - 1)));
            }
        }
    }
    let mut bytes = Vec::new();
    for slice in slices {
        let alias = alias_of(slice.reference);
        let range =
            byte_of(slice.reference) as usize..(byte_of(slice.reference) + slice.len) as usize;
        if !slice.is_run() {
            bytes.resize(bytes.len() + slice.len as usize, 0);
        } else if alias == EMBEDDED {
            bytes.extend(&record.embedded[range]);
        } else {
            let blob = blobs.get(alias).ok_or("a slice without a blob")?;
            named.insert(blob.id);
            bytes.extend(&payload(keys, blob.id, BlobKind::Segment)?[range]);
        }
    }
    if bytes.len() as u64 != record.tree.size {
        return Err(format!("{} bytes, {} are said", bytes.len(), record.tree.size));
    }
    Ok((!record.gone).then(|| bytes.into()))
}

fn payload(keys: &BTreeMap<String, Found>, id: BlobId, kind: BlobKind) -> Result<Vec<u8>, String> {
    let found = keys.get(&keys::blob(id)).ok_or(format!("names {id}, which is not there"))?;
    decode_stored(id, kind, &found.bytes.whole()).map_err(|e| e.to_string())
}

/// What a record says, for traces.
pub fn summary(key: &str, stored: &Bytes) -> String {
    if !key.starts_with(keys::RECORDS) {
        return String::new();
    }
    let Ok(record) = Record::decode(stored, key) else { return "?".into() };
    let retired: Vec<String> =
        record.retired.iter().map(|e| format!("{:?} {}", e.named.part, e.named.blob.id)).collect();
    let slices = match &record.tree.top {
        Top::Inline(slices) => {
            let blobs = slices.iter().filter_map(|s| record.blobs.get(alias_of(s.reference)));
            format!("{:?}", blobs.map(|b| b.id.to_string()).collect::<Vec<_>>())
        }
        Top::Root { node, height } => format!("root {:?} {height}", record.blobs.get(node.0)),
    };
    format!(
        "nonce {:?} op {:?} change {} {} {} size {} {slices} retired {retired:?}",
        record.nonce,
        record.operation,
        record.change,
        if record.gone { "gone" } else { "" },
        if record.shared { "shared" } else { "" },
        record.tree.size,
    )
}
