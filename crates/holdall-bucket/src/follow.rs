//! A backup that follows a store: an increment every few seconds.
//!
//! Owns: [`follow`]: when there is something to take, when a whole one is due, and what happens while
//! the store or the bucket cannot be reached.

use crate::back_up::{BackedUp, Base, Settings};
use crate::bucket::Bucket;
use crate::keep::Keep;
use crate::manifest::{Backups, Listed};
use crate::prune::Pruned;
use holdall::{BackupSource, Error, Result};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Increments may have this many bytes before a whole backup is due, if the store is smaller.
const LEAST_WHOLE: u64 = 64 << 20;
/// Time between two looks at what may be removed.
const PRUNING: Duration = Duration::from_secs(600);
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

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A backup was added.
    Added(BackedUp),
    /// Backups were removed.
    Removed(Pruned),
    /// It did not work, and is tried again at the next turn.
    Failed(Error),
}

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

/// Adds what changed to the place, now and every few seconds, until `tell` ends it. Of a store that
/// the place does not know, or of another history of it, a whole backup comes first; later ones when
/// the increments have more bytes than it. Cost: per turn with changes three requests, and those of its
/// parts; without changes none.
///
/// # Errors
/// What made the first turn fail. Later failures are events.
pub fn follow(
    bucket: &Bucket,
    settings: Follow,
    sources: &mut dyn FnMut() -> Result<Option<Box<dyn BackupSource>>>,
    tell: &mut dyn FnMut(Option<Event>) -> ControlFlow<()>,
) -> Result<()> {
    let mut following = Following {
        bucket,
        settings,
        backups: Backups::default(),
        newest: None,
        state: None,
        whole: 0,
        since: 0,
    };
    let (mut first, mut pruned) = (true, None::<Instant>);
    loop {
        let began = Instant::now();
        let mut ended = false;
        let turn = match sources() {
            Ok(Some(mut source)) => following.turn(&mut *source, &mut || {
                ended |= tell(None).is_break();
                ended
            }),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        let event = match turn {
            Ok(added) => added.map(Event::Added),
            Err(_) if ended => return Ok(()),
            Err(e) if first => return Err(e),
            Err(e) => {
                // What the place has is asked for anew.
                following.newest = None;
                Some(Event::Failed(e))
            }
        };
        first = false;
        if ended || tell(event).is_break() {
            return Ok(());
        }
        if let Some(keep) = settings.keep
            && pruned.is_none_or(|pruned| pruned.elapsed() >= PRUNING)
        {
            pruned = Some(Instant::now());
            let event = match bucket.prune(&keep) {
                Ok(gone) => (!gone.backups.is_empty()).then_some(Event::Removed(gone)),
                Err(e) => Some(Event::Failed(e)),
            };
            following.newest = None;
            if tell(event).is_break() {
                return Ok(());
            }
        }
        while began.elapsed() < settings.every {
            std::thread::sleep(LOOK.min(settings.every.saturating_sub(began.elapsed())));
            if tell(None).is_break() {
                return Ok(());
            }
        }
    }
}

impl Following<'_> {
    /// Adds a backup if something changed.
    fn turn(
        &mut self,
        source: &mut dyn BackupSource,
        ended: &mut dyn FnMut() -> bool,
    ) -> Result<Option<BackedUp>> {
        let state = source.state()?;
        if self.newest.is_none() {
            self.look(state.store_id())?;
        }
        if self.newest.is_some() && self.state == Some(state.newest_commit()) {
            return Ok(None);
        }
        drop(state);
        let mut progress =
            |_| if ended() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let base = match self.newest {
            Some(newest) if self.since <= self.whole.max(LEAST_WHOLE) => {
                source.remembers(newest.id)?.then_some(newest)
            }
            _ => None,
        };
        let settings =
            Settings { base: Base::Newest, verify: self.settings.verify, rate: self.settings.rate };
        let done = match base {
            Some(newest) => {
                self.bucket.increment(source, &self.backups, newest, (settings, &mut progress))?
            }
            None => {
                let settings = Settings { base: Base::None, ..settings };
                self.bucket.back_up(source, settings, &mut progress)?
            }
        };
        (self.newest, self.state) = (Some(done.listed), Some(done.state));
        self.backups.insert(done.listed);
        match base {
            Some(_) => self.since += done.bytes,
            None => (self.whole, self.since) = (done.bytes, 0),
        }
        Ok(Some(done))
    }

    /// Asks what the place has.
    fn look(&mut self, store: [u8; 16]) -> Result<()> {
        self.bucket.claim(store)?;
        self.backups = self.bucket.backups()?;
        self.newest = self.backups.newest().copied();
        (self.whole, self.since) = (0, 0);
        let Some(newest) = self.newest else { return Ok(()) };
        let Ok(chain) = self.backups.chain(newest.id) else {
            // What it goes back to is lost.
            self.newest = None;
            return Ok(());
        };
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
