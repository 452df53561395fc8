//! What is measured: phases and sizes.
//!
//! Rows that share what a server holds form a phase: in each, every server gets a fresh directory,
//! and only one server runs at a time.

use super::content::Content;
use crate::data;
use bytes::Bytes;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::time::Duration;

/// Fewest keys with which a page of a listing is full.
pub(super) const LEAST_KEYS: u64 = 2_000;
/// Bytes of the pool that all objects are taken from.
const POOL: usize = 16 << 20;

/// Rows measured on one server after the other, each without a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Phase {
    /// Objects of 4 KB
    Small,
    /// Objects of 10 MB
    Large,
    /// Many keys: listing, starting
    Keys,
    /// Multipart uploads
    Complete,
    /// A change inside a large object
    Insert,
    /// Many large puts at once
    Memory,
}

impl Phase {
    /// All, in the order in which they run.
    pub const ALL: [Phase; 6] =
        [Phase::Small, Phase::Large, Phase::Keys, Phase::Complete, Phase::Insert, Phase::Memory];

    /// Its name on the command line of a part and in results.
    pub fn id(self) -> &'static str {
        match self {
            Phase::Small => "s3-small",
            Phase::Large => "s3-large",
            Phase::Keys => "s3-keys",
            Phase::Complete => "s3-complete",
            Phase::Insert => "s3-insert",
            Phase::Memory => "s3-memory",
        }
    }

    /// What it does.
    pub fn title(self, plan: &Plan) -> String {
        let mb = |bytes: u64| bytes / 1_000_000;
        match self {
            Phase::Small => "objects of 4 KB".into(),
            Phase::Large => "objects of 10 MB".into(),
            Phase::Keys => format!("{} keys", plan.keys),
            Phase::Complete => {
                format!("an upload of {} parts of {} MB", plan.parts, mb(plan.part_bytes))
            }
            Phase::Insert => format!("an object of {} MB changed", mb(plan.insert_bytes)),
            Phase::Memory => {
                format!("{} clients put {} MB each", plan.clients, mb(plan.client_bytes))
            }
        }
    }

    /// Whether the bare handler can take part.
    pub fn has_bare(self) -> bool {
        matches!(self, Phase::Small | Phase::Large)
    }

    /// Whether rows of it are of durable writes.
    pub fn writes(self) -> bool {
        self != Phase::Keys
    }
}

/// Sizes of a full run that can be chosen.
#[derive(Debug, Clone, Default, Args)]
pub struct Sizes {
    /// Keys to list and to start with [default: 100,000, with --quick 4,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(LEAST_KEYS..))]
    keys: Option<u64>,
    /// Clients of the row of memory [default: 256, with --quick 16]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    clients: Option<u16>,
    /// MB that each of these puts [default: 20, with --quick 8]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=5_000))]
    size: Option<u32>,
}

impl Sizes {
    /// As the command line says them again to the process of a part.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let named = [
            ("--keys", self.keys),
            ("--clients", self.clients.map(u64::from)),
            ("--size", self.size.map(u64::from)),
        ];
        let said = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        said.flat_map(|(name, value)| [name.into(), value.to_string().into()]).collect()
    }
}

/// How much of everything.
#[derive(Debug, Clone)]
pub struct Plan {
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
    /// Times that an object is put again if a server cannot insert.
    pub again: u64,
    /// Clients of the row of memory.
    pub clients: usize,
    /// Bytes that each of them puts.
    pub client_bytes: u64,
    /// Random bytes.
    pub pool: Bytes,
}

impl Plan {
    /// The sizes of a full or a quick run.
    pub fn new(quick: bool, sizes: &Sizes) -> Self {
        let pick = |full, short| if quick { short } else { full };
        let clients = if quick { 16 } else { 256 };
        Self {
            slice: Duration::from_millis(pick(10_000, 800)),
            small: pick(20_000, 1_000),
            large: pick(64, 8),
            keys: sizes.keys.unwrap_or(pick(100_000, 4_000)),
            starts: pick(5, 3),
            parts: pick(100, 8),
            part_bytes: pick(10_000_000, 6_000_000),
            insert_bytes: pick(1_000_000_000, 64_000_000),
            again: pick(3, 2),
            clients: sizes.clients.map_or(clients, usize::from),
            client_bytes: u64::from(sizes.size.unwrap_or(if quick { 8 } else { 20 })) * 1_000_000,
            pool: data::bytes(POOL, 1).into(),
        }
    }

    /// The bytes of object `n`: other ones for each, at no cost.
    pub fn content(&self, n: u64, len: u64) -> Content {
        Content::of(&self.pool, n.wrapping_mul(4099), len)
    }
}
