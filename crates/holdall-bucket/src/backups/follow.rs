//! A backup that follows a store: an increment every few seconds.
//!
//! Owns: [`follow`]: when there is something to take, and what happens while the store or the bucket cannot
//! be reached. What takes long runs beside it: a whole backup when one is due, the removal of old ones.

use super::back_up::{BackedUp, Base, Settings};
use super::bucket::Bucket;
use super::keep::Keep;
use super::manifest::{Backups, Listed};
use super::prune::Pruned;
use holdall::{BackupSource, Error, Result};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Increments may have this many bytes before a whole backup is due, if the store is smaller.
const LEAST_WHOLE: u64 = 64 << 20;
/// Time between two looks at what may be removed, and before a whole backup that failed is tried again.
const PAUSE: Duration = Duration::from_secs(600);
/// Longest that is waited between two looks at whether to end.
const LOOK: Duration = Duration::from_millis(100);

/// How a store is followed.
#[derive(Debug, Clone, Copy)]
pub struct Follow {
    /// Time from the begin of an increment to that of the next.
    pub every: Duration,
    /// Whether each part is read once more.
    pub verify: bool,
    /// Most bytes a second that are copied.
    pub rate: Option<u64>,
    /// Which backups stay; all if not given.
    pub keep: Option<Keep>,
}

/// Where the store is reached.
#[derive(Debug)]
pub enum Followed<S> {
    /// Others may commit while a backup is taken.
    Shared(S),
    /// Nobody else has it open.
    Alone(S),
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A backup was added.
    Added(BackedUp),
    /// Backups were removed.
    Removed(Pruned),
    /// It did not work, and is tried again.
    Failed(Error),
}

/// The backups of the place, and the newest commit that is in them.
struct Following<'f> {
    bucket: &'f Bucket,
    settings: Follow,
    backups: Backups,
    newest: Option<Listed>,
    /// The newest commit that is in a backup.
    state: Option<u64>,
    /// Bytes of the last whole one, and of the increments since.
    whole: u64,
    since: u64,
}

/// What runs beside.
struct Beside<'s> {
    job: Option<ScopedJoinHandle<'s, Result<Event>>>,
    pruned: Option<Instant>,
    whole: Option<Instant>,
}

/// Adds what changed to the place, now and every few seconds, until `tell` ends it. Of a store that
/// the place does not know, or of another history of it, a whole backup comes first. Later ones are taken
/// beside the increments, when these have more bytes than the last. Cost: per turn with changes three
/// requests, and those of its parts; without changes none.
///
/// # Errors
/// What made the first turn fail. Later failures are events.
pub fn follow<S: BackupSource + Send>(
    bucket: &Bucket,
    settings: Follow,
    sources: &mut dyn FnMut() -> Result<Followed<S>>,
    tell: &mut dyn FnMut(Option<Event>) -> ControlFlow<()>,
) -> Result<()> {
    let ended = AtomicBool::new(false);
    let mut following = Following {
        bucket,
        settings,
        backups: Backups::default(),
        newest: None,
        state: None,
        whole: 0,
        since: 0,
    };
    std::thread::scope(|scope| {
        let mut beside = Beside { job: None, pruned: None, whole: None };
        let done = following.turns(scope, &ended, (sources, &mut beside), tell);
        // What runs beside ends soon.
        ended.store(true, Ordering::Relaxed);
        done
    })
}

impl<'f> Following<'f> {
    fn turns<'s, S: BackupSource + Send + 's>(
        &mut self,
        scope: &'s Scope<'s, '_>,
        ended: &'s AtomicBool,
        (sources, beside): (&mut dyn FnMut() -> Result<Followed<S>>, &mut Beside<'s>),
        tell: &mut dyn FnMut(Option<Event>) -> ControlFlow<()>,
    ) -> Result<()>
    where
        'f: 's,
    {
        let mut first = true;
        loop {
            let began = Instant::now();
            let mut stop = tell(self.done_beside(beside)).is_break();
            let turn = sources().and_then(|source| {
                self.turn(source, (scope, ended, beside), &mut || {
                    stop |= tell(None).is_break();
                    stop
                })
            });
            let event = match turn {
                Ok(added) => added.map(Event::Added),
                Err(_) if stop => return Ok(()),
                Err(e) if first => return Err(e),
                Err(e) => {
                    // What the place has is asked for anew.
                    self.newest = None;
                    Some(Event::Failed(e))
                }
            };
            first = false;
            if stop || tell(event).is_break() {
                return Ok(());
            }
            self.prune_beside(scope, ended, beside);
            while began.elapsed() < self.settings.every {
                std::thread::sleep(LOOK.min(self.settings.every.saturating_sub(began.elapsed())));
                if tell(None).is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Adds a backup if something changed.
    fn turn<'s, S: BackupSource + Send + 's>(
        &mut self,
        source: Followed<S>,
        (scope, ended, beside): (&'s Scope<'s, '_>, &'s AtomicBool, &mut Beside<'s>),
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<BackedUp>>
    where
        'f: 's,
    {
        let (mut source, shared) = match source {
            Followed::Shared(source) => (source, true),
            Followed::Alone(source) => (source, false),
        };
        let state = source.state()?;
        if self.newest.is_none() {
            self.look(state.store_id())?;
        }
        if self.newest.is_some() && self.state == Some(state.newest_commit()) {
            return Ok(None);
        }
        drop(state);
        let is_due = self.since > self.whole.max(LEAST_WHOLE);
        let base = match self.newest {
            Some(newest) if (shared || !is_due) && source.remembers(newest.id)? => Some(newest),
            _ => None,
        };
        let mut progress =
            |_| if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let Some(newest) = base else {
            let settings = self.settings(Base::None);
            let done = self.bucket.back_up(&mut source, settings, &mut progress)?;
            self.begins_at(&done);
            return Ok(Some(done));
        };
        let more = (self.settings(Base::Newest), &mut progress as _);
        let done = self.bucket.increment(&mut source, &self.backups, newest, more)?;
        (self.newest, self.state) = (Some(done.listed), Some(done.state));
        self.backups.insert(done.listed);
        self.since += done.bytes;
        let waits = beside.whole.is_some_and(|tried| tried.elapsed() < PAUSE);
        if is_due && !waits && beside.job.is_none() {
            beside.whole = Some(Instant::now());
            let (bucket, settings) = (self.bucket, self.settings(Base::None));
            beside.job = Some(scope.spawn(move || {
                let mut progress = |_| match ended.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
                bucket.back_up(&mut source, settings, &mut progress).map(Event::Added)
            }));
        }
        Ok(Some(done))
    }

    fn settings(&self, base: Base) -> Settings {
        Settings { base, verify: self.settings.verify, rate: self.settings.rate }
    }

    /// The next increment builds on this whole backup.
    fn begins_at(&mut self, whole: &BackedUp) {
        (self.newest, self.state) = (Some(whole.listed), Some(whole.state));
        self.backups.insert(whole.listed);
        (self.whole, self.since) = (whole.bytes, 0);
    }

    /// What came of what ran beside, if it has ended.
    fn done_beside(&mut self, beside: &mut Beside<'_>) -> Option<Event> {
        let job = beside.job.take_if(|job| job.is_finished())?;
        let panicked = |_| Err(Error::Invalid("what ran beside the increments panicked".into()));
        match job.join().unwrap_or_else(panicked) {
            Ok(Event::Added(whole)) => {
                self.begins_at(&whole);
                beside.whole = None;
                Some(Event::Added(whole))
            }
            Ok(Event::Removed(gone)) => {
                self.newest = None;
                (!gone.backups.is_empty()).then_some(Event::Removed(gone))
            }
            Ok(other) => Some(other),
            Err(e) => Some(Event::Failed(e)),
        }
    }

    fn prune_beside<'s>(
        &self,
        scope: &'s Scope<'s, '_>,
        ended: &'s AtomicBool,
        beside: &mut Beside<'s>,
    ) where
        'f: 's,
    {
        let Some(keep) = self.settings.keep else { return };
        if beside.job.is_some() || beside.pruned.is_some_and(|pruned| pruned.elapsed() < PAUSE) {
            return;
        }
        beside.pruned = Some(Instant::now());
        let bucket = self.bucket;
        beside.job = Some(scope.spawn(move || {
            let stop = || ended.load(Ordering::Relaxed);
            bucket.prune_until(&keep, &stop).map(Event::Removed)
        }));
    }

    /// Asks what the place has.
    fn look(&mut self, store: [u8; 16]) -> Result<()> {
        self.bucket.claim(store)?;
        self.backups = self.bucket.backups()?;
        (self.newest, self.whole, self.since) = (None, 0, 0);
        let Some(newest) = self.backups.newest() else { return Ok(()) };
        // What it goes back to may be lost.
        let Ok(mut chain) = self.backups.chain(newest.id) else { return Ok(()) };
        // A whole backup that was taken beside the newest increments is what the next one builds on.
        if let (Some(whole), Some(root)) = (self.backups.newest_whole(), chain.first())
            && whole.time > root.time
        {
            chain = vec![*whole];
        }
        self.newest = chain.last().copied();
        for listed in chain {
            let bytes = self.bucket.manifest(&listed)?.0.bytes();
            match listed.base {
                None => self.whole = bytes,
                Some(_) => self.since += bytes,
            }
        }
        Ok(())
    }
}
