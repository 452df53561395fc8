//! Segment data in memory, unit by unit, within what pages leave of the pool's budget.
//!
//! Owns: [`Units`], a table of checked units of 4 KiB, found by their number in the volume.
//!
//! Invariants: what is kept for a unit has the checksum kept beside it. Who looks a unit up
//! says which checksum its state demands and gets those bytes or nothing: a copy from a
//! former life of the page is told from the present one exactly as bytes from the disk are,
//! so neither the order of keeping and reusing nor the age of the keeper's snapshot matters.
//! Who writes other data to a page also says so ([`Units::forget`]). Units and the pool's
//! pages together stay within the budget as far as pages do.
//!
//! Threads: sets of a few places, each under a lock of its own that is held for one copy.

use holdall_core::space_dir::UNIT_BYTES;
use parking_lot::RwLock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// Bytes of a unit.
const UNIT: usize = UNIT_BYTES;
/// Places of a set.
const WAYS: usize = 8;
/// Neighbouring units that share a set: those of a page of the default size.
const GROUP: u64 = 2;
/// Most sets: places for 8 GiB of units.
const MOST_SETS: usize = 1 << 18;
/// Sets in which what was used is spared when room is needed; in the next ones it is not, so
/// that who needs room does not look for long.
const PATIENCE: usize = 64;
/// Where no room is left, one of so many reads replaces what was not used.
const ONE_OF: usize = 8;
/// Where no room is left, one of so many sets tells how often what is looked for is found.
const SAMPLE: usize = 8;
/// All look-ups found: the scale of the rate.
const ALWAYS: u32 = 1 << 16;
/// Below this rate looking is taken to cost more than finding saves: at one in eight it did, at
/// two in five it did not (docs/design.md); where between is not known.
const WORTHWHILE: u32 = ALWAYS / 4;
/// So many look-ups make the rate.
const MEMORY: u32 = 256;
/// Long reads that are remembered.
const LONG: usize = 1 << 12;

/// How something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Only where there is room.
    InRoom,
    /// Also in place of what was not used lately.
    ForOther,
}

/// Units whose numbers lead to the same places.
#[derive(Debug, Default)]
struct Ways {
    /// Number of the unit plus one, 0 for none.
    keys: [u64; WAYS],
    sums: [u32; WAYS],
    bytes: [Option<Box<[u8; UNIT]>>; WAYS],
    /// A bit for each place whose unit was found since a replacement took it.
    used: AtomicU8,
    /// Where the next replacement looks first.
    next: u8,
}

/// On its own lines of the processors' caches.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set(RwLock<Ways>);

#[derive(Debug)]
struct Table {
    sets: Box<[Set]>,
    /// First units of long reads, shortened.
    long: Box<[AtomicU32]>,
}

/// Checked units of segment data.
#[derive(Debug)]
pub struct Units {
    /// Made when the first unit is kept.
    table: OnceLock<Table>,
    count: usize,
    budget: usize,
    /// Bytes of pages, which go before units.
    pages: AtomicUsize,
    bytes: AtomicUsize,
    turn: AtomicUsize,
    hand: AtomicUsize,
    /// How many of the look-ups in sampled sets found what they looked for, of [`ALWAYS`].
    rate: AtomicU32,
}

fn mixed(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl Units {
    /// Room for at most `budget` bytes. Takes no memory before the first unit is kept, then
    /// about 12 to 24 KiB per MiB of the budget; a budget beyond 8 GiB is not used up.
    pub(super) fn new(budget: usize) -> Self {
        // Twice as many places as units, so that few sets are full before the budget is.
        let sets = (budget / UNIT / WAYS).clamp(1, MOST_SETS / 2) * 2;
        Self {
            table: OnceLock::new(),
            count: sets.next_power_of_two(),
            budget,
            pages: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
            rate: AtomicU32::new(ALWAYS),
        }
    }

    /// Whether to look for this unit and to keep it. Where data is read that is much larger
    /// than the budget, most looks are in vain: only some sets are then looked at, to see
    /// whether that changes. They hold their share of the data, as all sets would.
    pub fn worthwhile(&self, unit: u64) -> bool {
        self.rate.load(Relaxed) >= WORTHWHILE
            || self.is_sampled(unit)
            || self.bytes() + 16 * UNIT <= self.limit()
    }

    fn is_sampled(&self, unit: u64) -> bool {
        (mixed(unit / GROUP) & (self.count - 1)).is_multiple_of(SAMPLE)
    }

    fn note_look(&self, unit: u64, found: bool) {
        if self.is_sampled(unit) {
            let rate = self.rate.load(Relaxed);
            let new = rate - rate / MEMORY + if found { ALWAYS / MEMORY } else { 0 };
            // One of two at once may be lost.
            self.rate.store(new.min(ALWAYS), Relaxed);
        }
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| Table {
            sets: (0..self.count).map(|_| Set::default()).collect(),
            long: (0..LONG).map(|_| AtomicU32::default()).collect(),
        })
    }

    fn set<'t>(&self, table: &'t Table, unit: u64) -> &'t RwLock<Ways> {
        // A power of two.
        &table.sets[mixed(unit / GROUP) & (table.sets.len() - 1)].0
    }

    /// Bytes kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(SeqCst)
    }

    fn limit(&self) -> usize {
        self.budget.saturating_sub(self.pages.load(SeqCst))
    }

    /// Whether nothing is kept, so that looking up is in vain.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Fills `out` from byte `skip` of unit `unit`, if it is here with checksum `sum`. Returns
    /// whether it is. Cost: a copy under a shared lock.
    pub fn copy(&self, unit: u64, sum: u32, skip: usize, out: &mut [u8]) -> bool {
        if !self.worthwhile(unit) {
            return false;
        }
        let found = self.find(unit, sum, skip, out);
        self.note_look(unit, found);
        found
    }

    fn find(&self, unit: u64, sum: u32, skip: usize, out: &mut [u8]) -> bool {
        let Some(table) = self.table.get() else { return false };
        let ways = self.set(table, unit).read();
        let Some(at) = ways.find(unit).filter(|at| ways.sums[*at] == sum) else { return false };
        let Some(bytes) = ways.bytes[at].as_ref().and_then(|b| b.get(skip..skip + out.len()))
        else {
            return false;
        };
        out.copy_from_slice(bytes);
        // Only where it changes: readers share the line.
        if ways.used.load(Relaxed) & 1 << at == 0 {
            ways.used.fetch_or(1 << at, Relaxed);
        }
        true
    }

    /// Whether unit `unit` is here with checksum `sum`.
    pub fn has(&self, unit: u64, sum: u32) -> bool {
        let Some(table) = self.table.get() else { return false };
        let ways = self.set(table, unit).read();
        ways.find(unit).is_some_and(|at| ways.sums[at] == sum)
    }

    /// How a read of `units` units that were not here is to be kept, if it is: where there is
    /// room, or now and then. So what is read once displaces little of what is read often.
    pub fn wants(&self, units: usize) -> Option<Keep> {
        let limit = self.limit();
        if self.bytes() + units * UNIT <= limit {
            return Some(Keep::InRoom);
        }
        let turn = limit >= UNIT && self.turn.fetch_add(1, Relaxed).is_multiple_of(ONE_OF);
        turn.then_some(Keep::ForOther)
    }

    /// How a long read that begins with unit `unit` is to be kept, if it is: where there is
    /// room and one of the last few thousand long reads began there too.
    pub fn wants_long(&self, unit: u64, units: usize) -> Option<Keep> {
        if self.bytes() + units * UNIT > self.limit() {
            return None;
        }
        let mark = (unit as u32).max(1);
        let place = &self.table().long[mixed(unit) % LONG];
        (place.swap(mark, Relaxed) == mark).then_some(Keep::InRoom)
    }

    /// Keeps unit `unit`, whose bytes have checksum `sum`, if its set and the budget have room,
    /// or else, if it may, in place of one that was not used lately. What is not a whole unit
    /// is not kept.
    pub fn keep(&self, unit: u64, sum: u32, bytes: &[u8], how: Keep) {
        let Ok(bytes): Result<&[u8; UNIT], _> = bytes.try_into() else { return };
        let Some(key) = unit.checked_add(1).filter(|_| self.worthwhile(unit)) else { return };
        let mut ways = self.set(self.table(), unit).write();
        let at = match ways.find(unit) {
            Some(at) if ways.sums[at] == sum => return,
            Some(at) => at,
            None => match ways.find_key(0).filter(|_| self.reserve()) {
                Some(at) => at,
                None if how == Keep::InRoom => return,
                None => match ways.unused() {
                    Some(at) => at,
                    None => return,
                },
            },
        };
        match &mut ways.bytes[at] {
            Some(place) => **place = *bytes,
            place => *place = boxed(bytes),
        }
        (ways.keys[at], ways.sums[at]) = (key, sum);
        // Not used yet: what is read once is replaced by what is read once.
        *ways.used.get_mut() &= !(1 << at);
    }

    /// Forgets `count` units from `first` on: other data was written there. Not for what is
    /// right, which the checksum tells, but for what chance or an ill will could make of two
    /// contents with one CRC-32C. Cost: a look at a set for each unit, where anything is kept.
    pub fn forget(&self, first: u64, count: u64) {
        let Some(table) = self.table.get() else { return };
        for unit in first..first.saturating_add(count) {
            if self.is_empty() {
                return;
            }
            let set = self.set(table, unit);
            // Most are not here.
            if set.read().find(unit).is_none() {
                continue;
            }
            let mut ways = set.write();
            if let Some(at) = ways.find(unit) {
                ways.keys[at] = 0;
                ways.bytes[at] = None;
                self.bytes.fetch_sub(UNIT, SeqCst);
            }
        }
    }

    /// Counts one more unit, where the limit lets it. Whoever changes one of the two counts
    /// looks at the other afterwards, so that one of two at once sees both changes.
    fn reserve(&self) -> bool {
        let bytes = self.bytes.fetch_add(UNIT, SeqCst) + UNIT;
        let fits = bytes <= self.limit();
        if !fits {
            self.bytes.fetch_sub(UNIT, SeqCst);
        }
        fits
    }

    /// Pages of `bytes` bytes came. Cost: units that are now too many are dropped, those not
    /// used lately first.
    pub(super) fn pages_came(&self, bytes: usize) {
        self.pages.fetch_add(bytes, SeqCst);
        let limit = self.limit();
        if self.bytes() > limit {
            self.shrink(limit);
        }
    }

    /// Pages of `bytes` bytes went.
    pub(super) fn pages_went(&self, bytes: usize) {
        self.pages.fetch_sub(bytes, SeqCst);
    }

    fn shrink(&self, limit: usize) {
        let Some(table) = self.table.get() else { return };
        for step in 0..table.sets.len() + PATIENCE {
            if self.bytes() <= limit {
                return;
            }
            let hand = self.hand.fetch_add(1, Relaxed) & (table.sets.len() - 1);
            let mut ways = table.sets[hand].0.write();
            let used = std::mem::take(ways.used.get_mut());
            let spared = if step < PATIENCE { used } else { 0 };
            for at in 0..WAYS {
                if spared & 1 << at == 0 && ways.keys[at] != 0 && self.bytes() > limit {
                    ways.keys[at] = 0;
                    ways.bytes[at] = None;
                    self.bytes.fetch_sub(UNIT, SeqCst);
                }
            }
        }
    }
}

impl Ways {
    fn find(&self, unit: u64) -> Option<usize> {
        self.find_key(unit.checked_add(1)?)
    }

    fn find_key(&self, key: u64) -> Option<usize> {
        self.keys.iter().position(|k| *k == key)
    }

    /// A place that was not used lately, those replaced last coming last. Where all were, one
    /// mark is taken, so that what is used often loses its place only where all of a set is.
    fn unused(&mut self) -> Option<usize> {
        let (used, next) = (self.used.get_mut(), usize::from(self.next));
        let mut places = (0..WAYS).map(|i| (next + i) % WAYS).filter(|at| self.keys[*at] != 0);
        let first = places.clone().next()?;
        let found = places.find(|at| *used & 1 << at == 0);
        if found.is_none() {
            *used &= !(1 << first);
        }
        self.next = (found.unwrap_or(first) + 1) as u8;
        found
    }
}

/// A copy on the heap, without one on the stack.
fn boxed(bytes: &[u8; UNIT]) -> Option<Box<[u8; UNIT]>> {
    let copy: Box<[u8]> = bytes.as_slice().into();
    copy.try_into().ok()
}

#[cfg(test)]
mod tests;
