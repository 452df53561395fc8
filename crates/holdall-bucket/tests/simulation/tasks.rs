//! What tasks do, and what each of their changes must have done.

use crate::check::{Content, Version};
use crate::holds;
use crate::world::{Shared, lock};
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_bucket::store::{ListNames, Object, ObjectInfo, ObjectVersion, PutMode, PutOptions};
use holdall_bucket::{BucketStore, CollectOptions, Splice};
use rand::Rng;
use rand::rngs::SmallRng;
use std::ops::Range;

/// Names that tasks meet at.
pub const NAMES: [&str; 4] = ["a", "b", "c/d", "c/e"];

/// Listings of a task before the one that is looked at.
const LISTINGS: usize = 4;

/// What a task is to do.
#[derive(Debug, Clone)]
pub enum Task {
    Put(usize, Bytes, PutMode),
    Stream(usize, Bytes),
    Edit(usize, Vec<Edit>),
    Attributes(usize),
    Copy(usize, usize),
    CopyRange(usize, usize, f64, f64, f64),
    Concat(usize, usize, usize),
    Rename(usize, usize),
    Remove(usize),
    Get(usize),
    Read(usize),
    List,
    Collect(bool),
    Compact,
    Verify,
    /// Holds an object for some steps and for as many again, or not; its clock is slow by some.
    Hold {
        name: usize,
        steps: u64,
        extends: bool,
        slow: u64,
    },
}

/// An edit whose place is a share of the object's size, since that is not known before.
#[derive(Debug, Clone)]
pub enum Edit {
    Append(Bytes),
    SetLen(u64),
    WriteAt(u64, Bytes),
    /// Refused where the object is shorter.
    Replace(Range<u64>, Bytes),
    Zeros(Range<u64>, u64),
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    /// The change was made by this operation, if anything was to be changed.
    Changed(Option<ObjectVersion>),
    /// This was read.
    Read(usize, Content),
    /// These were listed, from this step on.
    Listed(u64, Vec<ObjectInfo>),
    /// This many objects were compacted.
    Compacted(u64),
    /// Nothing is to be known of it.
    Nothing,
    /// It failed.
    Failed(Error),
}

fn bytes(rng: &mut SmallRng, most: usize) -> Bytes {
    let len = rng.random_range(0..=most);
    (0..len).map(|_| rng.random::<u8>()).collect::<Vec<u8>>().into()
}

impl Task {
    /// Draws one. A profile prefers some: all alike, copies and cycles, edits with few cycles, or edits
    /// that leave blobs of which little is named, beside those who compact and collect.
    pub fn draw(rng: &mut SmallRng, profile: u64) -> Self {
        let (a, b) = (rng.random_range(0..NAMES.len()), rng.random_range(0..NAMES.len()));
        let c = rng.random_range(0..NAMES.len());
        let kind = match profile {
            1 if rng.random_bool(0.8) => {
                [15, 55, 60, 60, 60, 77, 77, 83, 94, 94][rng.random_range(0..10)]
            }
            2 => match rng.random_range(0..100) {
                // A cycle now and then, when much has changed.
                98.. => 94,
                kind => kind % 92,
            },
            3 => [15, 15, 22, 30, 30, 30, 30, 30, 80, 86, 94, 94, 98, 98, rng.random_range(0..100)]
                [rng.random_range(0..15)],
            _ => rng.random_range(0..100),
        };
        match kind {
            0..8 => Self::Put(a, bytes(rng, 64), PutMode::Overwrite),
            8..10 => Self::Put(a, bytes(rng, 200), PutMode::Create),
            10..22 => Self::Put(a, bytes(rng, 1500), PutMode::Overwrite),
            22..26 => Self::Stream(a, bytes(rng, 4000)),
            26..54 => {
                let count = rng.random_range(1..4);
                Self::Edit(a, (0..count).map(|_| Edit::draw(rng, profile == 3)).collect())
            }
            54 => Self::Attributes(a),
            55 => Self::hold(rng, a),
            56..68 => Self::Copy(a, b),
            68..73 => Self::CopyRange(a, b, rng.random(), rng.random(), rng.random()),
            73..76 => Self::Concat(a, b, c),
            76..80 => Self::Rename(a, b),
            80..86 => Self::Remove(a),
            86..89 => Self::Get(a),
            89 => Self::List,
            90..92 => Self::Read(a),
            92..97 => Self::Collect(false),
            97 => Self::Collect(true),
            98 => Self::Compact,
            _ => Self::Verify,
        }
    }

    fn hold(rng: &mut SmallRng, name: usize) -> Self {
        let slow = [0, 0, 1_000_000, 100_000_000][rng.random_range(0..4)];
        Self::Hold { name, steps: rng.random_range(20..400), extends: rng.random(), slow }
    }

    /// By how many milliseconds the clock of who does it is slow. Others' may only be so by less than
    /// the grace.
    pub fn slow(&self) -> u64 {
        if let Self::Hold { slow, .. } = self { *slow } else { 0 }
    }

    /// Does it.
    pub async fn run(self, store: BucketStore, world: &Shared) -> Outcome {
        let done = match self {
            Self::Hold { name, steps, extends, .. } => {
                holds::read(store, world, name, steps, extends).await
            }
            Self::List => list(store, world).await,
            other => other.try_run(store).await,
        };
        done.unwrap_or_else(Outcome::Failed)
    }

    async fn try_run(self, store: BucketStore) -> Result<Outcome> {
        let changed = |version| Ok(Outcome::Changed(Some(version)));
        match self {
            Self::Put(a, bytes, mode) => {
                let options = PutOptions { mode, ..PutOptions::default() };
                changed(store.put_with(NAMES[a], bytes, options).await?)
            }
            Self::Stream(a, bytes) => {
                let mut writer = store.writer(NAMES[a], PutOptions::default())?;
                for part in bytes.chunks(300) {
                    writer.push(part).await?;
                }
                changed(writer.finish().await?)
            }
            Self::Edit(a, edits) => {
                let splices = edits.iter().map(Edit::splice).collect();
                store.edit(NAMES[a], splices).await?;
                Ok(Outcome::Changed(None))
            }
            Self::Attributes(a) => {
                let attributes = [("kind".to_owned(), b"x".to_vec())].into();
                changed(store.set_attributes(NAMES[a], attributes).await?)
            }
            Self::Copy(..) | Self::CopyRange(..) | Self::Concat(..) | Self::Rename(..) => {
                self.copy(store).await
            }
            Self::Remove(a) => {
                store.remove(NAMES[a]).await?;
                Ok(Outcome::Changed(None))
            }
            Self::Get(a) => Ok(Outcome::Read(a, store.get(NAMES[a]).await?)),
            Self::Read(a) => {
                let object: Option<Object> = store.open(NAMES[a]).await?;
                let Some(mut object) = object else { return Ok(Outcome::Read(a, None)) };
                let mut all = Vec::new();
                while (all.len() as u64) < object.size() {
                    let at = all.len() as u64;
                    all.extend(object.read(at..at + 333).await?);
                }
                Ok(Outcome::Read(a, Some(all.into())))
            }
            Self::Collect(full) => {
                let options = CollectOptions { full, ..CollectOptions::default() };
                store.collect(options, &mut |_| {}).await?;
                Ok(Outcome::Nothing)
            }
            Self::Compact => Ok(Outcome::Compacted(store.compact(&mut |_| {}).await?.rewritten)),
            Self::Verify => {
                let found = store.verify(&mut |_| {}).await?;
                match found.problems.first() {
                    None => Ok(Outcome::Nothing),
                    Some(problem) => Err(Error::corrupt("verified", format!("{problem:?}"))),
                }
            }
            Self::Hold { .. } | Self::List => Ok(Outcome::Nothing),
        }
    }

    async fn copy(self, store: BucketStore) -> Result<Outcome> {
        let changed = |version| Ok(Outcome::Changed(Some(version)));
        match self {
            Self::Copy(a, b) => changed(store.copy(NAMES[a], NAMES[b]).await?),
            Self::CopyRange(a, b, x, y, z) => {
                let size =
                    |info: Option<holdall_bucket::store::ObjectInfo>| info.map_or(0, |i| i.size);
                let from = size(store.info(NAMES[a]).await?) as f64;
                let to = size(store.info(NAMES[b]).await?) as f64;
                let range = (from * x.min(y)) as u64..(from * x.max(y)) as u64;
                store.copy_range(NAMES[a], range, NAMES[b], (to * z) as u64).await?;
                Ok(Outcome::Changed(None))
            }
            Self::Concat(a, b, c) => changed(store.concat(&[NAMES[a], NAMES[b]], NAMES[c]).await?),
            Self::Rename(a, b) => {
                store.rename(NAMES[a], NAMES[b]).await?;
                Ok(Outcome::Changed(None))
            }
            _ => Ok(Outcome::Nothing),
        }
    }

    /// Whether a change of `name` from one content to another is one that this task may make.
    /// `contents` gives all that a name ever had.
    pub fn explains(
        &self,
        name: usize,
        before: &Content,
        after: &Content,
        contents: &dyn Fn(usize) -> Vec<Content>,
    ) -> bool {
        match self {
            Self::Put(a, bytes, mode) => {
                let free = *mode != PutMode::Create || before.is_none();
                *a == name && free && after.as_ref() == Some(bytes)
            }
            Self::Stream(a, bytes) => *a == name && after.as_ref() == Some(bytes),
            Self::Edit(a, edits) => {
                *a == name && before.is_some() && *after == edited(before, edits)
            }
            Self::Attributes(a) => *a == name && before == after && before.is_some(),
            Self::Copy(a, b) => *b == name && after.is_some() && contents(*a).contains(after),
            Self::CopyRange(a, b, ..) => {
                let (Some(before), Some(after)) = (before, after) else { return false };
                *b == name
                    && contents(*a).iter().flatten().any(|from| inserted(before, after, from))
            }
            Self::Concat(a, b, c) => {
                let Some(after) = after else { return false };
                let of = |name: usize| contents(name).into_iter().flatten().collect::<Vec<_>>();
                let seconds = of(*b);
                *c == name
                    && of(*a).iter().any(|first| {
                        let rest = after.strip_prefix(&first[..]);
                        rest.is_some_and(|rest| seconds.iter().any(|second| second == rest))
                    })
            }
            Self::Rename(a, b) => {
                let copied = *b == name && after.is_some() && contents(*a).contains(after);
                copied || (*a == name && before.is_some() && after.is_none())
            }
            Self::Remove(a) => *a == name && before.is_some() && after.is_none(),
            Self::Get(_)
            | Self::Read(_)
            | Self::List
            | Self::Collect(_)
            | Self::Compact
            | Self::Verify
            | Self::Hold { .. } => false,
        }
    }

    /// Whether a failure of it means that nothing was changed.
    pub fn fails_whole(&self) -> bool {
        !matches!(self, Self::Rename(..))
    }
}

/// Whether `after` is `before` with a part of `from` put in.
fn inserted(before: &Bytes, after: &Bytes, from: &Bytes) -> bool {
    let Some(len) = after.len().checked_sub(before.len()) else { return false };
    (0..=before.len()).any(|at| {
        before[..at] == after[..at]
            && before[at..] == after[at + len..]
            && (len == 0 || from.windows(len).any(|part| *part == after[at..at + len]))
    })
}

impl Edit {
    fn draw(rng: &mut SmallRng, thins: bool) -> Self {
        if thins && rng.random_bool(0.5) {
            // Most of a blob or two.
            let at = rng.random_range(0..900);
            return Self::Replace(at..at + rng.random_range(130..400), Bytes::new());
        }
        let at = rng.random_range(0..600);
        let end = at + rng.random_range(0..200);
        let most = if rng.random_bool(0.2) { 700 } else { 40 };
        match rng.random_range(0..10) {
            0..3 => Self::Append(bytes(rng, most)),
            3 => Self::SetLen(end),
            4 => Self::WriteAt(at, bytes(rng, most)),
            5..8 => Self::Replace(at..at, bytes(rng, most)),
            8 => Self::Replace(at..end, bytes(rng, most)),
            _ => Self::Zeros(at..end, rng.random_range(0..200)),
        }
    }

    fn splice(&self) -> Splice {
        match self.clone() {
            Self::Append(bytes) => Splice::Append(bytes),
            Self::SetLen(len) => Splice::SetLen(len),
            Self::WriteAt(at, bytes) => Splice::WriteAt(at, bytes),
            Self::Replace(range, bytes) => Splice::Replace(range, bytes),
            Self::Zeros(range, len) => Splice::Zeros(range, len),
        }
    }
}

/// What edits make of a content; `None` if one is refused.
fn edited(before: &Content, edits: &[Edit]) -> Content {
    let mut now = before.as_ref()?.to_vec();
    for edit in edits {
        match edit {
            Edit::Append(bytes) => now.extend(bytes),
            Edit::SetLen(len) => now.resize(*len as usize, 0),
            Edit::WriteAt(at, bytes) => {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                now.resize(now.len().max(end).max(at), 0);
                now[at..end].copy_from_slice(bytes);
            }
            Edit::Replace(range, bytes) => {
                let range = range.start as usize..range.end as usize;
                now.get(range.clone())?;
                now.splice(range, bytes.iter().copied());
            }
            Edit::Zeros(range, len) => {
                let range = range.start as usize..range.end as usize;
                now.get(range.clone())?;
                now.splice(range, std::iter::repeat_n(0, *len as usize));
            }
        }
    }
    Some(now.into())
}

/// Whether a read content is one that was there between two steps.
pub fn was_there(history: &[Version], from: u64, read: &Content) -> bool {
    let first = history.iter().rposition(|version| version.step <= from);
    let initial = first.is_none() && read.is_none();
    let start = first.unwrap_or(0);
    initial || history[start..].iter().any(|version| version.content == *read)
}

/// Lists again and again: what earlier listings left at hand must not be shown once it has changed.
async fn list(store: BucketStore, world: &Shared) -> Result<Outcome> {
    let what = ListNames::default();
    for _ in 0..LISTINGS {
        store.list_infos(&what, |_| true).await?;
    }
    let from = lock(world).steps;
    let page = store.list_infos(&what, |_| true).await?;
    Ok(Outcome::Listed(from, page.objects))
}

/// Whether what a listing shows of a name is what was there between two steps.
pub fn was_listed(history: &[Version], from: u64, listed: Option<&ObjectInfo>) -> bool {
    let first = history.iter().rposition(|version| version.step <= from);
    let initial = first.is_none() && listed.is_none();
    let is = |version: &Version| match (&version.content, listed) {
        (Some(content), Some(info)) => {
            version.operation == info.version.operation() && content.len() as u64 == info.size
        }
        (content, info) => content.is_none() && info.is_none(),
    };
    initial || history[first.unwrap_or(0)..].iter().any(is)
}
