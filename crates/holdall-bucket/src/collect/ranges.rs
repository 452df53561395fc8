//! How a listing is cut into ranges that are listed together, by keys alone.
//!
//! Owns: [`Ranges`], which says what to ask for next and takes the answers. What keys look like nobody
//! tells. So a range that gave a page is cut behind a place where its keys were seen to differ, between
//! the key that was last and its end, at a character seen in keys. If there is something behind the cut,
//! the next one goes nearer to the beginning of keys, so that ranges grow; if there is not, nearer to
//! their end. A cut costs a request at most: one that finds nothing, or the rest of a page.

use crate::backend::{Listed, Page};
use std::collections::{BTreeMap, BTreeSet};

/// Cuts at the beginning, and useful pages for each one more: what bounds requests in vain.
const CUTS: u64 = 16;
const PAGES_A_CUT: u64 = 8;
/// Keys of a page whose characters are noted.
const SAMPLES: usize = 8;

/// A request: the range that it is of, and where it begins.
pub(crate) type Ask = (u64, Option<String>);

/// The keys behind `after` up to `until`, both as far as they are known.
#[derive(Debug, Default)]
struct Range {
    after: Option<String>,
    until: Option<String>,
    asked: bool,
    /// Pages since it was cut.
    pages: u64,
    /// How many characters all keys of its last page begin with.
    shared: usize,
    /// How many characters the next cut leaves as they are.
    depth: usize,
    /// The range that it was cut from, until it gives a page.
    cut_from: Option<u64>,
}

/// A listing under way.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Characters of what all keys begin with.
    prefix: usize,
    open: BTreeMap<u64, Range>,
    drawn: u64,
    seen: BTreeSet<char>,
    useful: u64,
    cuts: u64,
}

impl Ranges {
    /// Of all keys that begin with `prefix`.
    pub(crate) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.chars().count(),
            open: [(0, Range::default())].into(),
            drawn: 0,
            seen: BTreeSet::new(),
            useful: 0,
            cuts: 0,
        }
    }

    /// What to ask for beside what was asked; `None` if that is nothing now.
    pub(crate) fn ask(&mut self) -> Option<Ask> {
        let waiting = self.open.iter().find(|(_, range)| !range.asked).map(|(id, _)| *id);
        let id = waiting.or_else(|| self.cut())?;
        let range = self.open.get_mut(&id)?;
        range.asked = true;
        Some((id, range.after.clone()))
    }

    /// Takes an answer, and gives the keys that nobody else gives.
    pub(crate) fn answered(&mut self, id: u64, page: Page) -> Vec<Listed> {
        let Some(range) = self.open.get_mut(&id) else { return Vec::new() };
        let Page { mut keys, next, .. } = page;
        let behind = |key: &String| range.until.as_ref().is_some_and(|until| key > until);
        keys.truncate(keys.partition_point(|listed| !behind(&listed.key)));
        // Nothing is behind what a range ends with, as far as it is concerned.
        let ended = match (&next, &range.until) {
            (Some(next), Some(until)) => next >= until,
            (next, _) => next.is_none(),
        };
        (range.after, range.asked) = (next, false);
        let cut_from = range.cut_from.take();
        if let (Some(first), Some(last)) = (keys.first(), keys.last()) {
            self.useful += 1;
            let begins = range.pages == 0 && cut_from.is_none() && range.depth == 0;
            range.pages += 1;
            range.shared = shared(&first.key, &last.key);
            let depth = if begins { range.shared } else { range.depth };
            if begins || cut_from.is_some() {
                range.depth = depth.saturating_sub(1);
            }
            let samples = keys.iter().step_by(keys.len().div_ceil(SAMPLES));
            let chars = samples.flat_map(|listed| listed.key.chars().skip(self.prefix));
            self.seen.extend(chars);
        } else if let Some(first) = cut_from.and_then(|id| self.open.get_mut(&id)) {
            first.depth += 1;
        }
        if ended {
            self.open.remove(&id);
        }
        keys
    }

    /// Cuts the range that gives pages for the longest time; returns the part behind the cut.
    fn cut(&mut self) -> Option<u64> {
        if self.cuts >= CUTS + self.useful / PAGES_A_CUT {
            return None;
        }
        loop {
            let longest = self.open.iter_mut().max_by_key(|(_, range)| range.pages);
            let (id, range) = longest.filter(|(_, range)| range.pages > 0)?;
            range.pages = 0;
            let Some((depth, at)) = place(range, self.prefix, &self.seen) else { continue };
            range.depth = depth;
            let until = range.until.replace(at.clone());
            let cut_from = Some(*id);
            self.cuts += 1;
            self.drawn += 1;
            let part = Range { after: Some(at), until, depth, cut_from, ..Range::default() };
            self.open.insert(self.drawn, part);
            return Some(self.drawn);
        }
    }
}

/// Characters that both begin with.
fn shared(first: &str, last: &str) -> usize {
    first.chars().zip(last.chars()).take_while(|(a, b)| a == b).count()
}

/// A cut of a range: how many characters are those of its key, and what the part behind begins
/// after. `None` if a page may hold all that is between such places.
fn place(range: &Range, prefix: usize, seen: &BTreeSet<char>) -> Option<(usize, String)> {
    let last: Vec<char> = range.after.as_ref()?.chars().collect();
    let deepest = range.shared.min(last.len());
    let depth = range.depth.min(deepest).max(prefix);
    let deeper = depth..=deepest;
    let nearer = (prefix..depth).rev();
    deeper.chain(nearer).find_map(|depth| {
        let stem: String = last[..depth].iter().collect();
        let ends = |c: char| format!("{stem}{c}");
        let bigger = seen.iter().filter(|c| last.get(depth).is_none_or(|own| *c > own));
        let inside = |at: &String| range.until.as_ref().is_none_or(|until| at < until);
        let places: Vec<String> = bigger.map(|c| ends(*c)).filter(inside).collect();
        let middle = places.len().checked_sub(1)? / 2;
        Some((depth, places[middle].clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Tag;
    use std::ops::Bound;

    const AT_ONCE: usize = 16;

    fn page(keys: &BTreeSet<String>, after: Option<&str>, limit: usize) -> Page {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = keys.range::<str, _>((from, Bound::Unbounded)).cloned();
        let listed = |key| Listed { key, len: 0, tag: Tag(String::new()), date: 0 };
        let keys: Vec<Listed> = behind.by_ref().take(limit).map(listed).collect();
        let next = behind.next().and(keys.last().map(|listed| listed.key.clone()));
        Page { keys, folders: Vec::new(), next }
    }

    /// Lists all in pages of `limit`, and returns how many requests it took, and how many turns if all
    /// that are under way are answered in one.
    fn list(keys: &BTreeSet<String>, prefix: &str, limit: usize) -> (u64, u64) {
        let mut ranges = Ranges::new(prefix);
        let (mut requests, mut turns, mut found) = (0, 0, Vec::new());
        let mut under_way = Vec::new();
        loop {
            while under_way.len() < AT_ONCE
                && let Some((id, after)) = ranges.ask()
            {
                requests += 1;
                under_way.push((id, page(keys, after.as_deref(), limit)));
            }
            if under_way.is_empty() {
                break;
            }
            turns += 1;
            for (id, page) in under_way.drain(..) {
                found.extend(ranges.answered(id, page).into_iter().map(|listed| listed.key));
            }
        }
        found.sort();
        assert!(found.iter().eq(keys), "not all keys came once");
        (requests, turns)
    }

    /// Numbers by chance: splitmix64.
    fn numbers(seed: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
    }

    /// Kinds of keys that programs give, all behind `n/`.
    fn kinds(count: u64, seed: u64) -> Vec<(&'static str, BTreeSet<String>)> {
        let wide = |n: u64| char::from_u32(0x4e00 + (n % 5000) as u32).unwrap_or('x');
        let long = "very/long/folder/that/all/keys/have/in/common/".repeat(10);
        let of = |key: &dyn Fn(u64) -> String| -> BTreeSet<String> {
            numbers(seed).take(count as usize).map(|n| format!("n/{}!", key(n))).collect()
        };
        vec![
            ("random hex", of(&|n| format!("default/{n:016x}"))),
            ("numbers", (0..count).map(|n| format!("n/default/img-{n:09}.jpg!")).collect()),
            ("plain numbers", (0..count).map(|n| format!("n/c/{n}!")).collect()),
            ("long prefix", of(&|n| format!("c/{long}{n:016x}"))),
            ("folders", of(&|n| format!("c/{}/{}/{:x}", n % 37, n / 37 % 11, n >> 20))),
            ("dates", of(&|n| format!("log/20{:02}/{:02}/{:08x}", n % 27, n / 27 % 12, n >> 32))),
            ("wide", of(&|n| format!("c/{}{}{}", wide(n), wide(n >> 16), wide(n >> 32)))),
            ("skewed", of(&|n| format!("c/{}{:x}", "a".repeat((n % 200) as usize), n >> 40))),
            ("collections", of(&|n| format!("c{}/{:x}", n % 3000, n >> 32))),
            ("blobs", of(&|n| format!("{:02x}/{n:016x}/{}", n >> 56, n % 5))),
        ]
    }

    #[test]
    fn all_keys_come_once_and_few_requests_are_in_vain() {
        for (count, limit) in [(0, 7), (1, 7), (7, 7), (8, 7), (100, 7), (5000, 7), (40_000, 20)] {
            for (kind, keys) in kinds(count, count + 1) {
                let (requests, turns) = list(&keys, "n/", limit);
                let pages = keys.len().div_ceil(limit) as u64;
                assert!(requests * 10 <= pages * 12 + 320, "{kind}: {requests} for {pages} pages");
                // Where most keys lie deeper and deeper behind one character, cuts find little.
                let cut_well = turns * 6 < pages || kind == "skewed";
                assert!(pages < 2000 || cut_well, "{kind}: {turns} turns for {pages} pages");
                assert!(pages > 1 || requests == 1, "{kind}: one page");
            }
        }
    }

    #[test]
    fn keys_of_any_characters_and_pages_of_any_length() {
        for seed in 0..300 {
            let mut random = numbers(seed);
            let mut draw = |most: u64| random.next().unwrap_or(0) % most;
            let alphabet: Vec<char> =
                "!%/0a~\u{7f}\u{e9}\u{ffff}\u{10fffe}\u{10ffff}".chars().collect();
            let (used, longest) = (1 + draw(alphabet.len() as u64), 1 + draw(12));
            let keys: BTreeSet<String> = (0..draw(3000))
                .map(|_| {
                    let text = (0..draw(longest + 1)).map(|_| alphabet[draw(used) as usize]);
                    format!("p{}", text.collect::<String>())
                })
                .collect();
            let limit = 1 + draw(30) as usize;
            let (requests, _) = list(&keys, "p", limit);
            let pages = keys.len().div_ceil(limit) as u64;
            assert!(requests * 10 <= pages * 12 + 320, "{seed}: {requests} for {pages} pages");
        }
    }
}
