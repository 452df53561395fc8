//! What the report says.
//!
//! Owns: the public types. Sizes are bytes, unless a name says pages.

use holdall_core::Oid;

/// How fragmented a store is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FragReport {
    /// What the pages of the volume are.
    pub geometry: Geometry,
    /// Runs of free pages.
    pub free_runs: FreeRuns,
    /// Large objects and their pieces.
    pub objects: ObjectPieces,
    /// Heap pages.
    pub heap: HeapReport,
    /// The promise on space.
    pub contract: Contract,
    /// How well the store lies.
    pub score: Score,
    /// What helps, one for each figure that costs more than a hundredth of the score.
    pub remedies: Vec<Remedy>,
    /// The volume as cells.
    pub map: VolumeMap,
}

/// The pages of the volume by what they are. All kinds together are the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Geometry {
    /// Bytes of a page.
    pub page_size: u64,
    /// Pages of the volume.
    pub volume_pages: u64,
    /// Bytes of blocks that the file takes.
    pub block_bytes: u64,
    /// Free pages, holes included.
    pub free_pages: u64,
    /// Free pages without blocks.
    pub hole_pages: u64,
    /// Whether the place of some holes is assumed: their number follows from the file's blocks.
    pub holes_assumed: bool,
    /// Pages freed that wait for a checkpoint or a snapshot.
    pub waiting_pages: u64,
    /// Pages among them that only a snapshot keeps.
    pub pinned_pages: u64,
    /// Pages reserved by transactions under way.
    pub reserved_pages: u64,
    /// Pages of directories, checksums, maps, handles, names and tree nodes.
    pub metadata_pages: u64,
    /// Pages of heap files, those for later records included.
    pub heap_pages: u64,
    /// Pages of large objects' bytes; shared ones count once.
    pub segment_pages: u64,
}

impl Geometry {
    /// Pages in use.
    pub fn used_pages(&self) -> u64 {
        self.metadata_pages + self.heap_pages + self.segment_pages
    }

    /// Bytes of that many pages.
    pub fn bytes(&self, pages: u64) -> u64 {
        pages.saturating_mul(self.page_size)
    }
}

/// A class of a histogram: sizes from `least` to below twice that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SizeClass {
    /// The least size, a power of two.
    pub least: u64,
    /// Members.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Runs of neighbouring free pages, with and without blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FreeRuns {
    /// How many.
    pub runs: u64,
    /// Bytes of the longest.
    pub longest_bytes: u64,
    /// By bytes; classes without members are left out.
    pub classes: Vec<SizeClass>,
}

/// Large objects and their pieces: parts that lie in neighbouring pages.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ObjectPieces {
    /// Objects with pieces.
    pub large: u64,
    /// Objects wholly in heap records.
    pub small: u64,
    /// Bytes in pieces, by object: shared ones count for each.
    pub bytes: u64,
    /// Pieces.
    pub pieces: u64,
    /// The fewest possible, a piece of up to 16 MiB counting as one.
    pub fewest: u64,
    /// Pieces beyond the fewest, object by object.
    pub excess: u64,
    /// The same as a mean over objects, weighted by bytes.
    pub mean_excess: f64,
    /// Bytes of objects with more pieces than the fewest.
    pub cut_bytes: u64,
    /// By pieces of an object; classes without members are left out.
    pub classes: Vec<SizeClass>,
    /// The ten with most pieces beyond the fewest.
    pub most_cut: Vec<CutObject>,
    /// Bytes of pages that more than one slice refers to, each counted once.
    pub shared_bytes: u64,
    /// Bytes of pages that this sharing saves.
    pub saved_bytes: u64,
}

/// A large object with more pieces than needed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutObject {
    /// Its collection.
    pub collection: String,
    /// Its id.
    pub oid: Oid,
    /// Its name, if it has one.
    pub name: Option<Vec<u8>>,
    /// Its bytes in pieces.
    pub bytes: u64,
    /// Its pieces.
    pub pieces: u64,
    /// The fewest possible.
    pub fewest: u64,
}

impl CutObject {
    /// Pieces beyond the fewest.
    pub fn excess(&self) -> u64 {
        self.pieces.saturating_sub(self.fewest)
    }
}

/// Heap files.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct HeapReport {
    /// Used share of all formatted pages.
    pub utilization: f64,
    /// Bytes that emptying sparse pages would free, with the others filled to 94 %.
    pub slack_bytes: u64,
    /// Bytes of records that would move for it, estimated.
    pub slack_cost: u64,
    /// Each collection.
    pub collections: Vec<CollectionHeap>,
}

/// The heap file of one collection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CollectionHeap {
    /// The collection's name.
    pub name: String,
    /// Records, a divided one counted once.
    pub records: u64,
    /// Formatted pages.
    pub pages: u64,
    /// Pages for later records, which hold nothing.
    pub fresh_pages: u64,
    /// Used share of the formatted pages.
    pub utilization: f64,
    /// Bytes that emptying sparse pages would free.
    pub slack_bytes: u64,
}

/// The promise on space: `left_bytes` is at most `right_bytes` once maintenance has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Contract {
    /// Bytes of blocks that the file takes.
    pub left_bytes: u64,
    /// `factor` · (data + metadata) + waiting + kept + constant.
    pub right_bytes: u64,
    /// Whether it holds.
    pub holds: bool,
    /// [`Options::space_factor`](crate::Options::space_factor).
    pub factor: f64,
    /// Bytes of all objects; shared ones count once, those never written not at all.
    pub stored_bytes: u64,
    /// Bytes of names and attributes.
    pub name_bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Pages of large objects' bytes, and the most heap pages that the records of all collections
    /// may take.
    pub data_bytes: u64,
    /// The most pages that names, collections, handles, maps, nodes of large objects, references
    /// of copies, directories and checksums may take.
    pub metadata_bytes: u64,
    /// Bytes of pages that wait for a checkpoint or a snapshot, or are reserved.
    pub waiting_bytes: u64,
    /// Free pages in runs under 16 KiB, which keep their blocks until
    /// [`Store::defrag`](crate::Store::defrag); all free pages if the file system is known not
    /// to punch holes.
    pub kept_bytes: u64,
    /// 1 MiB, what [`Tuning::spare_bytes`](crate::Tuning::spare_bytes) keeps, and a 64th of the
    /// volume.
    pub constant_bytes: u64,
}

/// How well the store lies, from 0 to 1; [`Store::frag`](crate::Store::frag) has the formula.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Score {
    /// The product of the two below.
    pub value: f64,
    /// The fewest pieces ÷ pieces, by bytes.
    pub pieces: f64,
    /// The needed share of the space.
    pub space: f64,
    /// Bytes of pages in use, without the heap's slack.
    pub needed_bytes: u64,
    /// Free bytes with blocks beyond the spare.
    pub excess_free_bytes: u64,
    /// Free bytes that keep their blocks for the next writes.
    pub spare_bytes: u64,
}

/// What can be done about a bad figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remedy {
    /// What.
    pub action: Action,
    /// Bytes that it would give back, estimated.
    pub gain_bytes: u64,
    /// Pieces that it would join.
    pub gain_pieces: u64,
    /// Bytes that it would write, estimated.
    pub cost_bytes: u64,
}

/// A remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Joins the pieces of objects.
    JoinPieces,
    /// Empties sparse heap pages.
    EmptyHeapPages,
    /// Moves what lies at the end of the file to the front, and cuts the file.
    Compact,
    /// Lets the oldest snapshot go.
    CloseOldestReader,
}

/// The volume in order, cut into cells of equal length.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct VolumeMap {
    /// Pages of a cell; the last may have fewer.
    pub pages_per_cell: u64,
    /// At most 4,096.
    pub cells: Vec<Cell>,
}

/// Pages of one cell by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Cell {
    /// Of large objects' bytes.
    pub segment: u64,
    /// Of heap files.
    pub heap: u64,
    /// Of everything else in use.
    pub metadata: u64,
    /// Freed but not yet reusable, or reserved.
    pub waiting: u64,
    /// Free, with blocks.
    pub free: u64,
    /// Free, without blocks.
    pub hole: u64,
    /// Whether a piece of an object with more pieces than needed lies here.
    pub cut: bool,
}
