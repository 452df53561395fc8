//! Walking a large object: its tree, its segments, their bytes.
//!
//! Owns: no state but that of one object. Memory: 16 bytes per segment of the object.

use super::bits::Runs;
use super::report::ProblemKind;
use super::walk_state::{Walk, damage};
use crate::object::tail_limit;
use crate::segment_tree::{DEFAULT_THRESHOLD, MAX_INLINE, TreeRead};
use crate::space::check_segment;
use holdall_core::page::{self, PageKind};
use holdall_core::segment_tree::{
    self, CheckOptions, Descriptor, MAY_HOLD_SHARED_RUNS, Problem, Slice, Visit,
};
use holdall_core::space_dir::SpaceDir;
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Oid, PageNo, PageRead, PageRun, Result};

/// Pages of data checked between two calls of the progress function.
const PAGES_PER_REPORT: u64 = 1024;

/// The object being walked.
struct Object<'o> {
    owner: u64,
    /// Whether its descriptor says that runs may be shared.
    shared: bool,
    /// Bytes up to here have been accounted for.
    at: u64,
    /// A node was lost from `at` on; why.
    gap: Option<String>,
    what: &'o dyn Fn() -> String,
}

impl Walk<'_> {
    /// Checks a large object; `what` names it.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn large(
        &mut self,
        oid: Oid,
        d: &Descriptor,
        what: &dyn Fn() -> String,
    ) -> Result<()> {
        self.large.insert(oid.page);
        let pages = self.pages;
        let owner = u64::from(oid.page) << 16 | u64::from(oid.slot);
        let shared = d.flags & MAY_HOLD_SHARED_RUNS != 0;
        let mut object = Object { owner, shared, at: 0, gap: None, what };
        segment_tree::walk(&TreeRead(pages), &d.tree, &mut |visit| match visit {
            Visit::Node { node, .. } => self.node(PageNo(node.0), &object),
            Visit::Unreadable { node, error, .. } => {
                let (place, detail) = damage(error)?;
                let place = place.unwrap_or_else(|| format!("node {node}"));
                object.gap.get_or_insert(format!("{place}: {detail}"));
                self.complete = false;
                Ok(())
            }
            Visit::Slice { start, slice } => {
                self.tell_gap(&mut object, start);
                object.at = start.saturating_add(slice.len);
                self.slice(&object, start, &slice)
            }
        })?;
        self.tell_gap(&mut object, d.tree.size);
        self.structure(d, what)
    }

    /// Tells of the bytes below nodes that could not be read, which end at byte `end`.
    fn tell_gap(&mut self, object: &mut Object<'_>, end: u64) {
        if let Some(why) = object.gap.take() {
            let detail = format!("bytes {}..{end} cannot be found: {why}", object.at);
            self.found.add(ProblemKind::Object, (object.what)(), detail);
        }
    }

    fn node(&mut self, no: PageNo, object: &Object<'_>) -> Result<()> {
        if self.reach(no, &|| format!("tree of {}", (object.what)())) {
            let bytes = self.pages.page(no, PageKind::SegmentNode)?;
            let own = page::owner(&bytes);
            if own != object.owner {
                let detail = format!("has owner {own}, not {}", object.owner);
                self.bad_page(no, &format!("tree of {}", (object.what)()), detail);
            }
        }
        Ok(())
    }

    /// The invariants of the tree as such.
    fn structure(&mut self, d: &Descriptor, what: &dyn Fn() -> String) -> Result<()> {
        let page_size = self.layout.page_size();
        let options = CheckOptions {
            page_size,
            threshold: DEFAULT_THRESHOLD,
            max_segment_pages: u64::from(self.layout.space_pages()),
            max_inline: MAX_INLINE,
            max_tail: tail_limit(page_size, d.flags, d.size()),
        };
        let report = segment_tree::check(&TreeRead(self.pages), d, &options)?;
        for problem in report.problems {
            let kind = match &problem {
                // Told by the walk.
                Problem::Unreadable(..) | Problem::PageTwice(_) => continue,
                other if other.is_damage() => ProblemKind::Object,
                _ => ProblemKind::Note,
            };
            self.found.add(kind, what(), tell(&problem));
        }
        Ok(())
    }

    fn slice(&mut self, object: &Object<'_>, start: u64, slice: &Slice) -> Result<()> {
        if !slice.is_run() {
            return Ok(());
        }
        let size = self.layout.page_size() as u64;
        let what = || format!("{}, bytes {start}..{}", (object.what)(), start + slice.len);
        let run = PageRun::new(PageNo(slice.reference), slice.pages(size));
        for (part, shared) in self.shared.split(run) {
            // Pages reached before were read with the other slice.
            let new = if shared { self.refer(part, object.shared, &what) } else { vec![part] };
            for part in new {
                if !self.reach_segment(part, &what) {
                    continue;
                }
                if !object.shared && part.start == run.start {
                    self.owner_hint(run.start, object)?;
                }
                if self.options.data {
                    self.check_run(object, start, slice, part)?;
                }
            }
        }
        Ok(())
    }

    /// Reads the pages `run` of a slice and reports what is damaged.
    fn check_run(
        &mut self,
        object: &Object<'_>,
        start: u64,
        slice: &Slice,
        run: PageRun,
    ) -> Result<()> {
        let size = self.layout.page_size() as u64;
        let mut bad = Bad { runs: Runs::default(), first: None, why: String::new() };
        let mut at = run.start.0;
        while at < run.end() {
            let n = PAGES_PER_REPORT.min(run.end() - at);
            self.pages.count(n * size);
            if self.data(PageRun::new(PageNo(at), n))?.is_some() {
                // Which of them: one by one.
                for page in at..at + n {
                    if let Some(why) = self.data(PageRun::new(PageNo(page), 1))? {
                        bad.push(page, why);
                    } else {
                        self.tell_bad(&mut bad, object, start, slice);
                    }
                }
            } else {
                self.tell_bad(&mut bad, object, start, slice);
            }
            at += n;
        }
        self.tell_bad(&mut bad, object, start, slice);
        Ok(())
    }

    /// Checks the data of neighbouring pages; what is wrong with it, if anything.
    fn data(&mut self, run: PageRun) -> Result<Option<String>> {
        let result = check_segment(self.pages, &self.layout, self.pages.disk(), run.start, run.len);
        match result {
            Ok(()) => Ok(None),
            Err(e) => {
                let (place, detail) = damage(e)?;
                Ok(Some(place.map_or(detail.clone(), |p| format!("{p}: {detail}"))))
            }
        }
    }

    /// Tells of the damaged pages gathered, as bytes of the object.
    fn tell_bad(&mut self, bad: &mut Bad, object: &Object<'_>, start: u64, slice: &Slice) {
        let Some(first) = bad.first.take() else { return };
        let size = self.layout.page_size() as u64;
        let pages = std::mem::take(&mut bad.runs);
        let byte = |page: u64| {
            let inside = (page - slice.reference) * size;
            start + inside.saturating_sub(u64::from(slice.offset)).min(slice.len)
        };
        let (from, to) = (byte(first), byte(first + pages.pages()));
        let detail = format!("bytes {from}..{to} are damaged (page {pages}): {}", bad.why);
        self.found.add(ProblemKind::Object, (object.what)(), detail);
    }

    /// The owner noted for a run is a hint: a wrong one is no damage.
    fn owner_hint(&mut self, first: PageNo, object: &Object<'_>) -> Result<()> {
        let (space, index) = self.layout.split(first)?;
        let (stretch, place) = self.layout.stretch_of(index);
        let read = || {
            let dir = self.pages.page(self.layout.dir_page(space), PageKind::SpaceDir)?;
            let info = SpaceDir::open(self.layout, space, &*dir)?.info_page(stretch)?;
            let bytes = self.pages.page(info, PageKind::SpaceInfo)?;
            SpaceInfo::open(self.layout, space, stretch, &*bytes)?.owner(place)
        };
        match read() {
            Ok(own) if own == 0 || own == object.owner => {}
            Ok(own) => {
                let detail = format!("page {first} is noted as owned by {own}");
                self.found.add(ProblemKind::Note, (object.what)(), detail);
            }
            // Told with the info page, or with the data.
            Err(e) => drop(damage(e)?),
        }
        Ok(())
    }
}

/// Neighbouring damaged pages.
struct Bad {
    runs: Runs,
    first: Option<u64>,
    why: String,
}

impl Bad {
    fn push(&mut self, page: u64, why: String) {
        if self.first.is_none() {
            (self.first, self.why) = (Some(page), why);
        }
        self.runs.push(page);
    }
}

/// A problem of a tree in words.
fn tell(problem: &Problem) -> String {
    let node = |n: &Option<segment_tree::NodeRef>| match n {
        Some(n) => format!("tree node in page {n}"),
        None => "the descriptor".to_owned(),
    };
    match problem {
        Problem::Sum { node: n, expected, found } => {
            format!("{} holds {found:?} bytes instead of {expected}", node(n))
        }
        Problem::Fill { node: n, level, count } => {
            format!("{} of level {level} has {count} entries", node(&Some(*n)))
        }
        Problem::Slice(at, why) => format!("the segment at byte {at} cannot be: {why}"),
        Problem::Inline(count) => format!("{count} segments are listed in the wrong place"),
        Problem::Tail(bytes) => format!("{bytes} bytes are kept in the record"),
        Problem::Threshold { at, pages: [a, b] } => {
            format!("the segments of {a} and {b} pages before and behind byte {at} should be one")
        }
        Problem::Unreadable(n, why) => format!("tree node in page {n}: {why}"),
        Problem::PageTwice(page) => format!("page {page} belongs to two segments"),
    }
}
