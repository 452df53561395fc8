//! What is measured: rows, phases, sizes.
//!
//! Rows that share what a server holds form a phase: in each, every server gets a fresh directory,
//! and only one server runs at a time.

use super::content::Content;
use bytes::Bytes;
use holdall_bench::data;
use std::time::Duration;

/// Bytes of the pool that all objects are taken from.
const POOL: usize = 16 << 20;

/// A row: its id on the command line and what it says.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The id.
    pub id: &'static str,
    /// What it measures.
    pub title: &'static str,
    /// Whether it writes: peers that do not sync stand apart there.
    pub writes: bool,
    /// The phase it belongs to.
    pub phase: Phase,
}

/// Rows measured on one server after the other, each without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Objects of 4 KB.
    Small,
    /// Objects of 10 MB.
    Large,
    /// Many keys.
    Keys,
    /// Multipart uploads.
    Complete,
    /// A change inside a large object.
    Insert,
    /// Many large puts at once.
    Memory,
}

impl Phase {
    /// All, in the order in which they run.
    pub const ALL: [Phase; 6] =
        [Phase::Small, Phase::Large, Phase::Keys, Phase::Complete, Phase::Insert, Phase::Memory];

    /// Whether the bare handler can take part.
    pub fn has_bare(self) -> bool {
        matches!(self, Phase::Small | Phase::Large)
    }

    /// Whether it runs in one round only, as what it needs takes long to make.
    pub fn once(self) -> bool {
        matches!(self, Phase::Keys | Phase::Memory)
    }
}

const fn row(id: &'static str, title: &'static str, writes: bool, phase: Phase) -> Row {
    Row { id, title, writes, phase }
}

/// All rows.
pub const ROWS: [Row; 10] = [
    row("put-small", "put 4 KB, 32 clients, durable", true, Phase::Small),
    row("get-small", "get 4 KB, 32 clients, hot", false, Phase::Small),
    row("put-large", "put 10 MB, 4 clients, durable", true, Phase::Large),
    row("get-large", "get 10 MB, 4 clients, hot", false, Phase::Large),
    row("get-cold", "get 10 MB, 4 clients, cold, after a restart", false, Phase::Large),
    row("list", "list 1,000 keys and prefixes, 1 client", false, Phase::Keys),
    row("start", "start to the first answer, with all these keys", false, Phase::Keys),
    row("complete", "complete a multipart upload", true, Phase::Complete),
    row("insert", "insert 1 KB in the middle; others: put the object again", true, Phase::Insert),
    row("memory", "memory while many clients put large objects", true, Phase::Memory),
];

/// How much of everything.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Rows that were asked for.
    pub rows: Vec<Row>,
    /// How long a loop lasts.
    pub slice: Duration,
    /// Objects of 4 KB that are got.
    pub small: u64,
    /// Objects of 10 MB that are got.
    pub large: u64,
    /// Keys to list.
    pub keys: u64,
    /// Starts of a server.
    pub starts: u64,
    /// Parts of an upload.
    pub parts: u64,
    /// Bytes of each part.
    pub part_bytes: u64,
    /// Bytes of the object that is changed.
    pub insert_bytes: u64,
    /// Times that an object is put again where a server cannot insert.
    pub again: u64,
    /// Clients of the row of memory.
    pub clients: usize,
    /// Bytes that each of them puts.
    pub client_bytes: u64,
    /// Random bytes.
    pub pool: Bytes,
}

impl Plan {
    /// The sizes of a full or a quick run, all rows.
    pub fn new(quick: bool) -> Self {
        let pick = |full, short| if quick { short } else { full };
        Self {
            rows: ROWS.to_vec(),
            slice: Duration::from_millis(pick(10_000, 800)),
            small: pick(20_000, 1_000),
            large: pick(64, 8),
            keys: pick(1_000_000, 4_000),
            starts: pick(5, 3),
            parts: pick(100, 8),
            part_bytes: pick(10_000_000, 6_000_000),
            insert_bytes: pick(1_000_000_000, 64_000_000),
            again: pick(3, 2),
            clients: if quick { 16 } else { 256 },
            client_bytes: pick(100_000_000, 8_000_000),
            pool: data::bytes(POOL, 1).into(),
        }
    }

    /// Whether a row was asked for.
    pub fn wants(&self, id: &str) -> bool {
        self.rows.iter().any(|row| row.id == id)
    }

    /// Whether any row of a phase was.
    pub fn wants_phase(&self, phase: Phase) -> bool {
        self.rows.iter().any(|row| row.phase == phase)
    }

    /// The bytes of object `n`: other ones for each, at no cost.
    pub fn content(&self, n: u64, len: u64) -> Content {
        Content::of(&self.pool, n.wrapping_mul(4099), len)
    }

    /// The sizes that differ between runs, for the report.
    pub fn sizes(&self) -> String {
        let mb = |bytes: u64| bytes / 1_000_000;
        format!(
            "{} keys; an upload of {} parts of {} MB; an object of {} MB changed; {} clients put \
             {} MB each",
            self.keys,
            self.parts,
            mb(self.part_bytes),
            mb(self.insert_bytes),
            self.clients,
            mb(self.client_bytes)
        )
    }
}
