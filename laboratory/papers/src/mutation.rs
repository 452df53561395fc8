//! Named breakages of the papers' rules, for the tests of those rules.
//!
//! Owns: [`Mutation`], one for each rule that a paper states. A rule whose breakage no test
//! notices is untested: `make lab-mutants` activates one after the other and expects the tests
//! named `rules` to fail. Where a mutation stands in the code, the code asks [`is`], which is
//! the constant `false` unless the build has `--cfg holdall_mutations`. Threads: any.

macro_rules! mutations {
    ($($name:ident $rule:literal)*) => {
        /// What takes one rule away; the text is the rule, with its section.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutation { $(#[doc = $rule] $name,)* }

        /// All of them, with their names and rules.
        pub const ALL: &[(Mutation, &str, &str)] =
            &[$((Mutation::$name, stringify!($name), $rule),)*];
    };
}

mutations! {
    AreaVisits "Biliris §3.1: the superdirectory spares visits to spaces that cannot serve."
    AreaForgets "Biliris §3.1: a visit to a space corrects the superdirectory."
    PoolNewest "Biliris §3.2: the least recently used page goes first."
    PoolDirty "Biliris §3.2: clean pages go before dirty ones."
    ReadSegment "Biliris §3.2: up to four pages are read into the pool in one access."
    ReadPooled "Biliris §3.2: more than four pages are not buffered."
    ReadSteps "Biliris §3.2: a large range off page borders is read in three steps."
    RootFlush "Biliris §3.3: the root is not flushed."
    IndexFlush "Biliris §3.3: other index pages are flushed when the operation ends."
    IndexShadow "Biliris §3.3: an index page that changes is shadowed."
    LeafShadow "Biliris §3.3: an update that overwrites useful bytes shadows the leaf."
    AppendInPlace "Biliris §3.3: bytes behind the useful ones are written in place."
    EsmNeighbour "Biliris §3.4: an insert takes a neighbour where that saves a leaf."
    EsmEven "Biliris §3.4: the bytes of an overflow are spread evenly."
    EsmDirty "Biliris §3.4: only pages with useful bytes are written."
    EsmFull "Biliris §4.2: an append leaves all but the last two leaves full."
    EsmHalf "Biliris §2.1: a leaf is at least half full."
    BurstDouble "Biliris §2.2: segments double while the size is unknown."
    BurstTrim "Biliris §2.2: the last segment is trimmed."
    BurstFrom "Biliris §3.5: segments before the change are not copied."
    BurstBuffer "Biliris §3.5: copies go through 512 KiB."
    EosThreshold "Biliris §2.3: no two neighbours that fit in one, one of them below T pages."
    EosShuffle "Biliris §2.3, §3.4: bytes alone on a page beside an edit go along if that saves a page."
    EosGrow "Biliris §4.2: appends go behind the last byte, in the segment's own pages."
    Guarantee "McAuliffe §3.2: only pages whose bucket guarantees the room are considered."
    AoRecent "McAuliffe §3.2: AO(n) has the n pages most recently added."
    AoExact "McAuliffe §3.2: AO(n) knows the free bytes of its pages."
    AoDeleted "McAuliffe §3.2: AO(n) never looks again at a page that left."
    FfBeginning "McAuliffe §3.2: FF searches from the beginning of the file."
    Db2Smaller "McAuliffe §4: FF of DB2/2 begins anew for a smaller request only."
    NfCursor "McAuliffe §3.2: NF begins at the page last used."
    NfWrap "McAuliffe §3.2: NF goes on at the beginning of the file."
    NfHistogram "McAuliffe §3.2: NF(H) does not search if no page can serve."
    WitnessFirst "McAuliffe §3.2: a known witness spares the search."
    WitnessMoved "McAuliffe §3.2: a witness that changes its bucket is forgotten there."
    WitnessSeen "McAuliffe §3.2: a search picks up witnesses on its way."
    WitnessCursor "McAuliffe §3.2: the cursor is the page last used for an allocation."
    BfFullest "McAuliffe §4: BF takes the fullest page that can hold the object."
    HyDense "McAuliffe §3.2: HY does not search while the file is fuller than u."
    HyEmptier "McAuliffe §3.2: HY considers only pages emptier than u."
    HyFullestLeaves "McAuliffe §3.2: the fullest page leaves HY's cache, for an emptier one."
    HyDeleted "McAuliffe §3.3: a deletion puts its page into HY's cache."
    HyRefused "McAuliffe §3.3: a page refused for reserved space leaves HY's cache."
    Reserved "McAuliffe §3.3: reserved space is its transaction's alone."
    LazyTold "McAuliffe §3.3: lazy release tells the inventory at the deletion."
    EagerTold "McAuliffe §3.3: eager release tells the inventory at commit."
    TunedSplit "Eickler §3.1.2: an over-full node gives only its last entry to the new one."
    LeafPrefix "Eickler §3.1.2: the bytes that all keys of a leaf begin with are kept once."
    NearLeaf "Eickler §4.1.1: the OID of a new object falls into the leaf of a related one."
    HashCollision "Eickler §6.3, Litwin: a full bucket that is met makes the next bucket split."
    HashLoad "Litwin: under load control a bucket splits once the load is exceeded."
    HashAddress "Litwin: buckets below the split pointer are addressed by the next function."
    HashEmpty "Litwin: an overflow page that becomes empty leaves its chain."
    UniqueField "Eickler §3.2: the unique field of a removed object's slot is incremented."
    UniqueEnd "Eickler §1: no OID is given out twice, though the unique field runs out."
    FreeSlot "Eickler §3.2: the slot of a removed object is used again."
    MatrixFile "Eickler §4.1.2: the n-th object of each data page goes to the n-th file."
    LinearNear "Eickler §4.1.2: linear placement puts a handle beside that of a related object."
    KeptPages "Eickler §6.3: the pages that took new mappings last stay in the buffer."
    KeptNodes "Eickler §6.3: so do the inner nodes above the last leaf."
    Forward "Eickler §1: an object that moves by its physical OID leaves a forward."
    QuickExact "Iyengar §2.4.1: a small request takes the first block of just its size."
    TailFirst "Iyengar §2.4.1: the tail comes before lists of larger blocks."
    Waste "Iyengar §2.4: a block within the acceptable waste is not split."
    MiscFirst "Iyengar §2.4.1: a large request takes the first block within the waste."
    MiscSmallest "Iyengar §2.4.1: else the smallest larger block of the list is split."
    Deferred "Iyengar §2.4: free blocks are combined only when nothing fits."
    GrowsLast "Iyengar §2.4.1: the file grows only if combining free blocks makes no room."
    Serious "Iyengar §2.4, footnote 3: serious fragmentation has free blocks combined."
    ListHead "Iyengar §2.4.2: a freed block goes to the head of its list."
    AreaWhole "Iyengar §2.1: headers of an area are read in few accesses."
    SplitHeader "Iyengar §2.1: what is split off has a header of its own on disk."
    TailPointer "Iyengar §2.4.3: the tail pointer goes to disk at checkpoints only."
    TailWalk "Iyengar §2.4.3: after a crash the tail is found by walking."
    CodeBytes "Iyengar §2.4.3: code bytes tell blocks from bytes of somebody else's."
    PflDrop "Iyengar §2.3: after a crash allocated blocks leave the heads of PFL's lists."
    PflLink "Iyengar §2.3: by PFL a freed block leads to the one that was first."
    ObaLargest "Iyengar §2.5: a batch serves its largest requests first."
    ObaBest "Iyengar §2.5: a batch takes the best fit."
    ObaSmall "Iyengar §2.5: a batch leaves blocks below T alone."
    ObaAddress "Iyengar §2.5: a batch writes in the order of addresses."
    HtodGiveBack "Iyengar §3: an item replaced is given back when nothing leads to it."
    HtodDouble "Iyengar §3: above its ratio of keys to buckets the index doubles."
    SiteStale "Iyengar §4.2: what an event reaches is assembled anew, not taken from its cache."
    HtodRestart "Iyengar §3: doubling goes on where a crash broke it off."
}

#[cfg(holdall_mutations)]
static ACTIVE: std::sync::LazyLock<Option<Mutation>> = std::sync::LazyLock::new(|| {
    let wanted = std::env::var("HOLDALL_LAB_MUTATION").ok()?;
    ALL.iter().find(|(_, name, _)| *name == wanted).map(|(mutation, ..)| *mutation)
});

/// Whether this mutation is active: the one that `HOLDALL_LAB_MUTATION` names.
#[cfg(holdall_mutations)]
#[inline]
pub fn is(mutation: Mutation) -> bool {
    *ACTIVE == Some(mutation)
}

/// Whether this mutation is active: never in this build.
#[cfg(not(holdall_mutations))]
#[inline(always)]
pub const fn is(_: Mutation) -> bool {
    false
}
