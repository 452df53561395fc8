//! The collector: intents, then retired blobs, then what no name needs, then gone records.
//!
//! Owns: [`Gc`], what a cycle has found so far. A cycle that dies leaves nothing that the next one
//! would have to know.

mod fence;

use crate::bucket::{Answer, Request, Tagged};
use crate::client::purge;
use crate::commit::rewrite;
use crate::hold;
use crate::process::{Asked, Halt, Stage, Talk};
use crate::record::{Blob, Blobs, Class, Intent, Name, Op, Record, State, Tag};
use crate::rules::Mutation;
use crate::tree::{Absent, deepest_first, reach};
pub use fence::condemn;
use fence::{Fence, fence};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Intents,
    Retired,
    Fenced,
    Roots,
    Sweep,
    Fences,
    Entries,
    Gone,
}

/// A cycle under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gc {
    cycle: u16,
    /// When it began, by the server's clock.
    began: u16,
    phase: Phase,
    /// Intents to look at.
    intents: Vec<(Op, Intent)>,
    /// Names to look at.
    names: Vec<(Name, Class, Tag)>,
    /// Operations that can never succeed.
    fenced: BTreeSet<Op>,
    /// Their blobs.
    blobs: Blobs,
    /// Flagged records that have retired blobs.
    candidates: BTreeMap<Name, Tagged>,
    /// What each of their retired entries stands for, and what their own trees name.
    reached: BTreeMap<Blob, Blobs>,
    own: BTreeMap<Name, Blobs>,
    /// Blobs that records name.
    roots: Blobs,
    /// Blobs that intents share.
    shares: Blobs,
    /// Names that open intents are about.
    awaited: BTreeSet<Name>,
    /// Gone records that nobody needs.
    gone: Vec<(Name, Tag)>,
    doomed: Vec<Blob>,
}

pub fn start(talk: &mut Talk<'_>) -> Asked<Stage> {
    let (cycle, began) = next_cycle(talk)?;
    let mut intents = talk.intents()?;
    // Rule 8: a cycle that began later may have read the records before the copy was written. It
    // must see the intent. Those that begin after this read see the record.
    let is_resolved = |intent: &Intent| matches!(intent.state, State::Resolved(_));
    if intents.iter().any(|(_, intent)| is_resolved(intent))
        && !talk.lacks(Mutation::R08Check)
        && !is_newest(talk, cycle)?
    {
        intents.retain(|(_, intent)| !is_resolved(intent));
    }
    intents.reverse();
    let gc = Gc {
        cycle,
        began,
        phase: Phase::Intents,
        intents,
        names: Vec::new(),
        fenced: BTreeSet::new(),
        blobs: Blobs::new(),
        candidates: BTreeMap::new(),
        reached: BTreeMap::new(),
        own: BTreeMap::new(),
        roots: Blobs::new(),
        shares: Blobs::new(),
        awaited: BTreeSet::new(),
        gone: Vec::new(),
        doomed: Vec::new(),
    };
    Ok(Stage::Gc(Box::new(gc)))
}

/// Begins a cycle: its number, and the server's time.
pub fn next_cycle(talk: &mut Talk<'_>) -> Asked<(u16, u16)> {
    match talk.ask(|| Request::NextCycle)? {
        Answer::Began(cycle, second) => Ok((cycle, second)),
        _ => Err(Halt::Stop),
    }
}

/// Whether no other cycle began. The number is read last before anything is deleted.
pub fn is_newest(talk: &mut Talk<'_>, cycle: u16) -> Asked<bool> {
    Ok(talk.ask(|| Request::ReadCycle)? == Answer::Cycle(cycle))
}

/// One intent, record or blob; or the way to the next phase.
pub fn run(talk: &mut Talk<'_>, gc: &Gc) -> Asked<Stage> {
    let mut next = Box::new(gc.clone());
    match gc.phase {
        Phase::Intents => next.intent(talk)?,
        Phase::Retired => next.retired(talk)?,
        Phase::Fenced => next.fenced_blobs(talk)?,
        Phase::Roots if !next.root(talk)? => return Ok(Stage::End),
        Phase::Roots => {}
        Phase::Sweep => next.sweep(talk)?,
        Phase::Fences => next.fences(talk)?,
        Phase::Entries => next.entries(talk)?,
        Phase::Gone => match next.gone.pop() {
            None => return Ok(Stage::End),
            Some((name, tag)) => {
                let tag = Some(tag).filter(|_| !talk.lacks(Mutation::R12Plain));
                talk.ask(|| Request::RemoveIf(name, tag))?;
            }
        },
    }
    Ok(Stage::Gc(next))
}

impl Gc {
    /// Rules 8 and 9.
    fn intent(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        let Some((op, intent)) = self.intents.pop() else {
            self.names = talk.names()?;
            self.names.reverse();
            self.phase = Phase::Retired;
            return Ok(());
        };
        if intent.ends.is_some() {
            return hold::collect(talk, op, &intent, self.began);
        }
        if let State::Resolved(cycle) = intent.state {
            if cycle < self.cycle || talk.lacks(Mutation::R08Newer) {
                talk.settle(|| Request::DeleteIntent(op))?;
            }
            return Ok(());
        }
        let Some(tag) = condemn(talk, op, &intent)? else { return Ok(()) };
        match (fence(talk, op, &intent)?, &intent.tops) {
            (Fence::Unclear, _) => {}
            (Fence::Shown, None) => drop(talk.settle(|| Request::DeleteIntent(op))?),
            (Fence::Never, None) => {
                self.fenced.insert(op);
            }
            (_, Some(_)) if talk.lacks(Mutation::R08Now) => {
                if is_newest(talk, self.cycle)? {
                    talk.settle(|| Request::DeleteIntent(op))?;
                }
            }
            (_, Some(_)) => {
                let state = State::Resolved(self.cycle);
                let resolved = Intent { tag: talk.tag(), state, ..intent };
                talk.ask(|| Request::PutIntentIf(op, tag, resolved))?;
            }
        }
        Ok(())
    }

    /// Rule 10 for records of their own; flagged ones are rule 11's.
    fn retired(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        let Some((name, class, _)) = self.names.pop() else {
            self.phase = Phase::Fenced;
            if talk.lacks(Mutation::R11Order) {
                self.list_shares(talk)?;
            }
            return Ok(());
        };
        if !matches!(class, Class::Retired | Class::GoneRetired | Class::Shared) {
            return Ok(());
        }
        let Some(found) = talk.read(name)? else { return Ok(()) };
        if !found.1.shared || talk.lacks(Mutation::R10Shared) {
            return purge(talk, name, &found);
        }
        let passed_over = found.1.gone && talk.lacks(Mutation::R11Gone);
        if !found.1.retired.is_empty() && !passed_over {
            for entry in &found.1.retired {
                let reached = reach(talk, &[*entry].into(), Absent::Skipped)?;
                self.reached.insert(*entry, reached);
            }
            self.own.insert(name, reach(talk, &found.1.live, Absent::Refused)?);
            self.candidates.insert(name, found);
        }
        Ok(())
    }

    /// What fenced operations wrote.
    fn fenced_blobs(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        for op in &self.fenced {
            let Answer::Blobs(found) = talk.ask(|| Request::ListBlobs(Some(*op)))? else {
                return Err(Halt::Stop);
            };
            self.blobs.extend(found);
        }
        self.names = talk.names()?;
        self.names.reverse();
        self.phase = Phase::Roots;
        let empty = [Class::Gone, Class::GoneRetired];
        let most = if talk.lacks(Mutation::R12Retired) { 2 } else { 1 };
        let gone = self.names.iter().filter(|(_, class, _)| empty[..most].contains(class));
        self.gone = gone.map(|(name, _, tag)| (*name, *tag)).collect();
        Ok(())
    }

    /// Rule 11: records, then share intents, then the cycle's number. Whether the cycle goes on.
    fn root(&mut self, talk: &mut Talk<'_>) -> Asked<bool> {
        if let Some((name, class, _)) = self.names.pop() {
            if class == Class::Shared {
                let live = talk.read(name)?.map(|found| found.1.live.clone()).unwrap_or_default();
                self.roots.extend(match talk.lacks(Mutation::R11Below) {
                    true => live.iter().map(|entry| entry.key()).collect(),
                    false => reach(talk, &live, Absent::Refused)?,
                });
            }
            return Ok(true);
        }
        if !talk.lacks(Mutation::R11Order) {
            self.list_shares(talk)?;
        }
        if !talk.lacks(Mutation::R11Cycle) && !is_newest(talk, self.cycle)? {
            return Ok(false);
        }
        let keeps = |blob: &Blob| self.roots.contains(blob) || self.shares.contains(blob);
        let leading = self.leading(talk);
        let retired = self.candidates.iter().flat_map(|(name, (_, record))| {
            let reached = record.retired.iter().filter_map(|entry| self.reached.get(entry));
            let own = |blob: &Blob| {
                !self.own[name].contains(blob) || talk.setting.lacks(Mutation::R11Live)
            };
            reached.flatten().copied().filter(move |blob| own(blob))
        });
        let retired = retired.filter(|blob| !leading.contains(blob));
        let retired = retired.filter(|blob| !keeps(blob) || talk.lacks(Mutation::R11Retired));
        let fenced = self.blobs.iter().copied();
        let fenced = fenced.filter(|blob| !keeps(blob) || talk.lacks(Mutation::R11Fenced));
        let doomed: Blobs = retired.chain(fenced).collect();
        let entries = self.reached.keys().copied().collect();
        self.doomed = deepest_first(talk, &doomed, &entries);
        self.doomed.reverse();
        if talk.lacks(Mutation::R12Open) {
            self.awaited.clear();
        }
        self.gone.retain(|(name, _)| !self.awaited.contains(name));
        self.phase = if talk.lacks(Mutation::R09First) { Phase::Fences } else { Phase::Sweep };
        Ok(true)
    }

    fn list_shares(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        for (_, intent) in talk.intents()? {
            if intent.state == State::Open && intent.ends.is_none() {
                self.awaited.insert(intent.target);
            }
            if hold::counts(talk, &intent, self.began) {
                let tops = intent.tops.unwrap_or_default();
                self.shares.extend(match talk.lacks(Mutation::R11Tops) {
                    true => tops.iter().map(|entry| entry.key()).collect(),
                    false => reach(talk, &tops, Absent::Skipped)?,
                });
            }
        }
        Ok(())
    }

    fn sweep(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        match self.doomed.pop() {
            Some(blob) => drop(talk.settle(|| Request::DeleteBlob(blob))?),
            None if talk.lacks(Mutation::R09First) => self.phase = Phase::Entries,
            None => self.phase = Phase::Fences,
        }
        Ok(())
    }

    /// Intents go after the blobs.
    fn fences(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        match self.fenced.pop_first() {
            Some(op) => drop(talk.settle(|| Request::DeleteIntent(op))?),
            None if talk.lacks(Mutation::R09First) && !self.doomed.is_empty() => {
                self.phase = Phase::Sweep;
            }
            None => self.phase = Phase::Entries,
        }
        Ok(())
    }

    /// Entries of blobs that are deleted, or that another record names.
    fn entries(&mut self, talk: &mut Talk<'_>) -> Asked<()> {
        let Some((name, found)) = self.candidates.pop_first() else {
            self.phase = Phase::Gone;
            return Ok(());
        };
        let record = found.1.as_ref();
        let stays = |entry: &&Blob| self.stays(talk, name, entry);
        let retired: Blobs = record.retired.iter().filter(stays).copied().collect();
        if retired.len() < record.retired.len() {
            rewrite(talk, name, &found, Record { retired, ..record.clone() })?;
        }
        Ok(())
    }
}

/// What is retired by records that share.
impl Gc {
    /// Whether an entry stays: an intent announces what it stands for, and no record sees to that.
    fn stays(&self, talk: &Talk<'_>, name: Name, entry: &Blob) -> bool {
        let waits = |blob: &Blob| match self.roots.contains(blob) {
            true => talk.lacks(Mutation::R11Entries),
            false => self.shares.contains(blob),
        };
        let own = |blob: &Blob| self.own.get(&name).is_some_and(|own| own.contains(blob));
        self.reached.get(entry).into_iter().flatten().any(|blob| !own(blob) && waits(blob))
    }

    /// The nodes of entries that stay: without them nobody would find what is below.
    fn leading(&self, talk: &Talk<'_>) -> Blobs {
        if talk.lacks(Mutation::R11Leading) {
            return Blobs::new();
        }
        let entries = self.candidates.iter().flat_map(|(name, (_, record))| {
            record.retired.iter().filter(|entry| entry.is_whole() && self.stays(talk, *name, entry))
        });
        entries.map(|entry| entry.key()).collect()
    }
}
