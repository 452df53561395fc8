//! Reading ahead: the bytes of a range in order, while requests for those behind are under way.
//!
//! Owns: [`Ahead`]. It plans a window of eight segments at a time, in which it asks for each blob once;
//! the requests of the next window begin before the last of this one are read.

use super::inner::{Inner, TOGETHER};
use super::layout::{Layout, Part};
use super::missing::missing_blob;
use crate::backend::Body;
use crate::format::{BlobId, BlobRef, Stretch};
use futures::future::BoxFuture;
use futures::stream::FuturesOrdered;
use futures::{FutureExt, StreamExt};
use holdall::Result;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A blob is read in one request if that gives at most this many bytes for each one wanted.
const WASTE: u64 = 4;
/// A blob of at most this many bytes is small,
const SMALL: u64 = 256 << 10;
/// and this much of small ones is kept for the windows behind.
const MOST_KEPT: u64 = 16 << 20;
/// Most bytes given at once.
const PART: u64 = 1 << 20;

/// What was read of a part.
#[derive(Debug)]
pub(crate) enum Given {
    /// As [`Part::Embedded`].
    Embedded(Range<usize>),
    /// Zeros, their number.
    Zeros(u64),
    /// These payload bytes of what a server gave, which is not verified yet.
    Stored { stretch: Stretch, stored: Body, range: Range<u64> },
}

impl Given {
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// [`Error::Corrupt`](holdall::Error::Corrupt).
    pub(crate) fn append(self, layout: &Layout, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Embedded(range) => out.extend_from_slice(layout.embedded(range)?),
            Self::Zeros(len) => out.resize(out.len() + len as usize, 0),
            Self::Stored { stretch, stored, range } => {
                out.reserve((range.end - range.start) as usize);
                stretch.append(stored.parts(), range, out)?;
            }
        }
        Ok(())
    }
}

/// A part whose request, if it has one, is known by number.
#[derive(Debug)]
enum Planned {
    Embedded(Range<usize>),
    Zeros(u64),
    Of { request: u64, range: Range<u64> },
}

/// A request.
#[derive(Debug, Clone, Copy)]
struct Request {
    number: u64,
    stretch: Stretch,
}

/// A request that was answered.
#[derive(Debug, Clone)]
struct Answer {
    request: Request,
    stored: Body,
}

/// The plan of a range, and its requests under way.
pub(crate) struct Ahead {
    /// What no plan covers yet.
    rest: Range<u64>,
    parts: VecDeque<Planned>,
    requests: VecDeque<Request>,
    drawn: u64,
    under_way: FuturesOrdered<BoxFuture<'static, Result<Answer>>>,
    answers: HashMap<u64, Answer>,
    /// Parts that a request is still to bring; being kept is one.
    uses: HashMap<u64, usize>,
    kept: Kept,
}

/// Small blobs, which many edits left and all windows of a long read want: read whole, and kept.
#[derive(Debug, Default)]
struct Kept {
    /// Whether there are more windows than one.
    is_long: bool,
    requests: HashMap<BlobId, u64>,
    bytes: u64,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let planned = (&self.rest, self.parts.len(), self.under_way.len());
        f.debug_tuple("Ahead").field(&planned).finish()
    }
}

impl Ahead {
    pub(crate) fn new(range: Range<u64>) -> Self {
        Self {
            rest: range,
            uses: HashMap::new(),
            kept: Kept::default(),
            parts: VecDeque::new(),
            requests: VecDeque::new(),
            drawn: 0,
            under_way: FuturesOrdered::new(),
            answers: HashMap::new(),
        }
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    /// Those of [`Object::read`](super::Object::read), but for what a missing blob means.
    pub(crate) async fn next(&mut self, layout: &mut Layout) -> Result<Option<Given>> {
        self.begin(layout).await?;
        Ok(match self.parts.pop_front() {
            None => None,
            Some(Planned::Embedded(range)) => Some(Given::Embedded(range)),
            Some(Planned::Zeros(len)) => {
                let now = len.min(PART);
                if now < len {
                    self.parts.push_front(Planned::Zeros(len - now));
                }
                Some(Given::Zeros(now))
            }
            Some(Planned::Of { request, range }) => {
                let Answer { request: Request { stretch, .. }, stored } =
                    self.answer(layout, request).await?;
                self.used(request);
                Some(Given::Stored { stretch, stored, range })
            }
        })
    }

    async fn answer(&mut self, layout: &mut Layout, request: u64) -> Result<Answer> {
        loop {
            if let Some(answer) = self.answers.get(&request) {
                return Ok(answer.clone());
            }
            let Some(answer) = self.under_way.next().await else {
                return Err(layout.damaged("a part of it was asked for twice"));
            };
            let answer = answer?;
            self.answers.insert(answer.request.number, answer);
            self.begin(layout).await?;
        }
    }

    /// Plans and sends requests, until enough are under way.
    async fn begin(&mut self, layout: &mut Layout) -> Result<()> {
        while self.under_way.len() < TOGETHER {
            if let Some(request) = self.requests.pop_front() {
                self.under_way.push_back(fetch(layout.store.clone(), request));
            } else if !self.rest.is_empty()
                && self.answers.len() < TOGETHER + self.kept.requests.len()
            {
                let window = layout.store.sizes().segment * TOGETHER as u64;
                self.kept.is_long |= self.rest.end - self.rest.start > window;
                let end = self.rest.end.min(self.rest.start.saturating_add(window));
                let window = self.rest.start..end;
                let parts = layout.parts(window).await?;
                self.plan(parts);
                self.rest.start = end;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn plan(&mut self, parts: Vec<Part>) {
        let mut wants: BTreeMap<BlobRef, Vec<Range<u64>>> = BTreeMap::new();
        for part in &parts {
            if let Part::Of(blob, range) = part {
                wants.entry(*blob).or_default().push(range.clone());
            }
        }
        let stretches: HashMap<BlobRef, Vec<Stretch>> =
            wants.into_iter().map(|(blob, wants)| (blob, stretches(blob, wants))).collect();
        self.make_room();
        let mut known: HashMap<(BlobRef, usize), u64> = HashMap::new();
        for part in parts {
            match part {
                Part::Embedded(range) => self.parts.push_back(Planned::Embedded(range)),
                Part::Zeros(len) => self.parts.push_back(Planned::Zeros(len)),
                Part::Of(blob, range) => {
                    let of = &stretches[&blob];
                    let which = of.partition_point(|s| s.payload().start <= range.start) - 1;
                    let number = match self.kept.is_long && blob.len <= SMALL {
                        true => self.whole(blob),
                        false => {
                            *known.entry((blob, which)).or_insert_with(|| self.request(of[which]))
                        }
                    };
                    self.push(number, range);
                }
            }
        }
    }
}

impl Ahead {
    /// Cuts what a request brings into parts that a processor's cache holds.
    fn push(&mut self, request: u64, range: Range<u64>) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / PART + 1) * PART);
            *self.uses.entry(request).or_default() += 1;
            self.parts.push_back(Planned::Of { request, range: start..end });
            start = end;
        }
    }

    fn request(&mut self, stretch: Stretch) -> u64 {
        self.drawn += 1;
        self.requests.push_back(Request { number: self.drawn, stretch });
        self.drawn
    }

    /// The request for all of a small blob.
    fn whole(&mut self, blob: BlobRef) -> u64 {
        if let Some(number) = self.kept.requests.get(&blob.id) {
            return *number;
        }
        let number = self.request(Stretch::whole(blob));
        self.kept.requests.insert(blob.id, number);
        self.uses.insert(number, 1);
        self.kept.bytes += blob.len;
        number
    }

    /// Forgets small blobs if there are too many.
    fn make_room(&mut self) {
        if self.kept.bytes <= MOST_KEPT {
            return;
        }
        let kept = std::mem::take(&mut self.kept);
        self.kept.is_long = kept.is_long;
        kept.requests.into_values().for_each(|number| self.used(number));
    }

    /// An answer is forgotten with its last use.
    fn used(&mut self, request: u64) {
        if let Some(left) = self.uses.get_mut(&request) {
            *left -= 1;
            if *left == 0 {
                self.uses.remove(&request);
                self.answers.remove(&request);
            }
        }
    }
}

fn fetch(store: Arc<Inner>, request: Request) -> BoxFuture<'static, Result<Answer>> {
    async move {
        let stored = store.read_stretch(request.stretch).await?;
        let stored = stored.ok_or_else(|| missing_blob(request.stretch.blob().id))?;
        Ok(Answer { request, stored })
    }
    .boxed()
}

/// The stretches that hold what is wanted of a blob, in order: one, unless that would read much else.
fn stretches(blob: BlobRef, mut wants: Vec<Range<u64>>) -> Vec<Stretch> {
    wants.sort_by_key(|want| want.start);
    let start = wants.first().map_or(0, |want| want.start);
    let end = wants.iter().map(|want| want.end).max().unwrap_or(start);
    let wanted: u64 = wants.iter().map(|want| want.end - want.start).sum();
    let cover = Stretch::around(blob, start..end);
    let Range { start, end } = cover.stored();
    if end - start <= wanted.saturating_mul(WASTE).max(1 << 20) {
        return vec![cover];
    }
    let mut all: Vec<Stretch> = Vec::new();
    for want in wants {
        let stretch = Stretch::around(blob, want.clone());
        match all.last_mut() {
            Some(last) if stretch.payload().start <= last.payload().end => {
                let start = last.payload().start;
                *last = Stretch::around(blob, start..want.end.max(last.payload().end));
            }
            _ => all.push(stretch),
        }
    }
    all
}
