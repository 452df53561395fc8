//! What is believed about the free space of every space (Biliris 1992 §3.1).
//!
//! Owns: [`SuperDirectory`], in memory only: for each space the largest order believed
//! free. A new entry is optimistic and a visit to the space corrects it, so that a wrong
//! belief costs one visit. A belief that is too high costs a visit; one that is too low
//! hides space: the code that frees pages must call [`SuperDirectory::set`] or
//! [`SuperDirectory::raise`].
//!
//! Invariant: `groups[g]` is the largest of its 128 entries, so that 16,384 full spaces are
//! passed over in 128 steps. Not for use by two threads at once.

const GROUP: usize = 128;

/// Largest order believed free, per space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuperDirectory {
    /// Order + 1; 0 = nothing free.
    believed: Vec<u8>,
    groups: Vec<u8>,
}

impl SuperDirectory {
    /// `spaces` spaces, each believed to have a free block of order `order`.
    pub fn new(spaces: u32, order: u8) -> Self {
        let mut all = Self { believed: Vec::new(), groups: Vec::new() };
        all.resize(spaces, order);
        all
    }

    /// Number of spaces.
    pub fn spaces(&self) -> u32 {
        // `resize` is the only way to add spaces.
        self.believed.len() as u32
    }

    /// Follows the number of spaces: new ones are believed to have a block of order `order`.
    pub fn resize(&mut self, spaces: u32, order: u8) {
        let (old, new) = (self.believed.len(), spaces as usize);
        self.believed.resize(new, order.saturating_add(1));
        self.groups.resize(new.div_ceil(GROUP), 0);
        for group in old.min(new) / GROUP..self.groups.len() {
            self.refresh(group);
        }
    }

    /// The largest order believed free in `space`; `None` if it is believed full or does
    /// not exist.
    pub fn get(&self, space: u32) -> Option<u8> {
        self.believed.get(space as usize)?.checked_sub(1)
    }

    /// Records what a visit to `space` found, `None` for nothing free. Unknown spaces are
    /// ignored. Cost: at most one group.
    pub fn set(&mut self, space: u32, order: Option<u8>) {
        let at = space as usize;
        if let Some(entry) = self.believed.get_mut(at) {
            *entry = order.map_or(0, |k| k.saturating_add(1));
            self.refresh(at / GROUP);
        }
    }

    /// Records that pages of `space` were given back without a look at its tree: it has at
    /// least a free block of `order`.
    pub fn raise(&mut self, space: u32, order: u8) {
        if self.get(space).is_none_or(|k| k < order) {
            self.set(space, Some(order));
        }
    }

    /// The first space from `from` on believed to have a free block of `order` or larger.
    /// Cost: two groups and one step per group between.
    pub fn next_from(&self, from: u32, order: u8) -> Option<u32> {
        let least = order.saturating_add(1);
        let mut at = from as usize;
        while at < self.believed.len() {
            let end = (at / GROUP + 1) * GROUP;
            if self.groups[at / GROUP] >= least {
                let group = &self.believed[at..end.min(self.believed.len())];
                if let Some(i) = group.iter().position(|&b| b >= least) {
                    return Some((at + i) as u32);
                }
            }
            at = end;
        }
        None
    }

    /// The last space before `before` believed to have a free block of `order` or larger.
    /// Cost: as [`SuperDirectory::next_from`].
    pub fn last_before(&self, before: u32, order: u8) -> Option<u32> {
        let least = order.saturating_add(1);
        let mut end = (before as usize).min(self.believed.len());
        while let Some(last) = end.checked_sub(1) {
            let start = last / GROUP * GROUP;
            if self.groups[last / GROUP] >= least {
                let group = &self.believed[start..end];
                if let Some(i) = group.iter().rposition(|&b| b >= least) {
                    return Some((start + i) as u32);
                }
            }
            end = start;
        }
        None
    }

    /// Spaces that may serve a block of `order`, from `start` on and then round from 0.
    pub fn candidates(&self, start: u32, order: u8) -> Candidates {
        let start = if start < self.spaces() { start } else { 0 };
        Candidates { order, up: start, up_end: u32::MAX, down: start, way: Way::Round }
    }

    /// Spaces that may serve a block of `order`, those nearest to `goal` first; of two at
    /// the same distance the higher one.
    pub fn nearest(&self, goal: u32, order: u8) -> Candidates {
        Candidates { order, up: goal, up_end: u32::MAX, down: goal, way: Way::Near(goal) }
    }

    fn refresh(&mut self, group: usize) {
        let start = group * GROUP;
        let end = (start + GROUP).min(self.believed.len());
        let largest = self.believed[start..end].iter().copied().max();
        self.groups[group] = largest.unwrap_or(0);
    }
}

/// Which space to visit next. Does not borrow the directory, so that each visit can correct
/// it; names each space at most once, as long as no space is added meanwhile.
#[derive(Debug, Clone)]
pub struct Candidates {
    order: u8,
    /// The next space upwards to look at, and where upwards ends.
    up: u32,
    up_end: u32,
    /// One past the next space downwards to look at; for [`Way::Round`] the start.
    down: u32,
    way: Way,
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Round,
    Near(u32),
}

impl Candidates {
    /// The next space that is now believed to serve, `None` after the last.
    pub fn next(&mut self, all: &SuperDirectory) -> Option<u32> {
        match self.way {
            Way::Round => self.next_round(all),
            Way::Near(goal) => self.next_near(all, goal),
        }
    }

    fn next_round(&mut self, all: &SuperDirectory) -> Option<u32> {
        let found = all.next_from(self.up, self.order).filter(|&s| s < self.up_end);
        if let Some(space) = found {
            self.up = space + 1;
            return found;
        }
        if self.up_end == u32::MAX {
            // The upper part is done; the lower one ends where the upper began.
            (self.up, self.up_end) = (0, self.down);
            return self.next_round(all);
        }
        None
    }

    fn next_near(&mut self, all: &SuperDirectory, goal: u32) -> Option<u32> {
        let above = all.next_from(self.up, self.order);
        let below = all.last_before(self.down, self.order);
        let take_above = match (above, below) {
            (Some(a), Some(b)) => a.abs_diff(goal) <= b.abs_diff(goal),
            (above, _) => above.is_some(),
        };
        if take_above {
            self.up = above? + 1;
            above
        } else {
            self.down = below?;
            below
        }
    }
}
