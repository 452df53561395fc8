//! Adding a backup to a place.
//!
//! Owns: on what an increment builds, so that few lead back to the whole one; when one that was broken off
//! goes on. The list of parts is written last: before it there is no backup.

use super::bucket::Bucket;
use super::manifest::{Backups, Listed, Manifest};
use super::place::First;
use super::unfinished;
use super::upload::Upload;
use holdall::{
    Backup, BackupHead, BackupId, BackupProgress, BackupReport, BackupSource, Error, Result,
};
use std::sync::{MutexGuard, PoisonError};

/// Increments that build on each other before one builds on what came before them all.
const IN_A_ROW: u64 = 16;

/// What a backup builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base {
    /// Nothing: it is whole.
    #[default]
    None,
    /// What is in the place, so that it has all that changed since the newest.
    Newest,
}

/// How a backup is taken.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// What it builds on.
    pub base: Base,
    /// Whether each part is read once more from the bucket.
    pub verify: bool,
    /// Most bytes a second that are copied.
    pub rate: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { base: Base::None, verify: true, rate: None }
    }
}

/// What a backup in a bucket came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackedUp {
    /// How it is listed.
    pub listed: Listed,
    /// Bytes of pages that the store has in use.
    pub in_use: u64,
    /// Bytes of the parts.
    pub bytes: u64,
    /// Of these, those that an earlier run had written.
    pub resumed: u64,
    /// The newest commit that is in it.
    pub(crate) state: u64,
}

impl Bucket {
    /// Adds a backup. A whole one of this store that was broken off goes on where it was, if the store
    /// remembers its mark. Cost: requests for parts of 8 MiB and more, up to 4 at a time, and 3 or 4
    /// others; memory for 64 MiB.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the place is another store's or used for something else;
    /// [`Error::NotFound`] if it has no backup that an increment can build on;
    /// [`Error::Cancelled`] if `progress` ended it; those of the store and of the bucket. Then the place
    /// has the backups it had.
    pub fn back_up(
        &self,
        source: &mut dyn BackupSource,
        settings: Settings,
        progress: BackupProgress<'_>,
    ) -> Result<BackedUp> {
        let store = source.state()?.store_id();
        self.claim(store)?;
        let backups = self.backups()?;
        match settings.base {
            Base::None => self.whole(source, after(backups.newest()), (settings, progress)),
            Base::Newest => {
                let newest = backups.newest().ok_or_else(|| {
                    let text = format!("a backup in {} to build on; take a whole one", self.name());
                    Error::NotFound(text)
                })?;
                self.increment(source, &backups, *newest, (settings, progress))
            }
        }
    }

    fn whole(
        &self,
        source: &mut dyn BackupSource,
        not_before: u64,
        (settings, progress): (Settings, BackupProgress<'_>),
    ) -> Result<BackedUp> {
        let store = source.state()?.store_id();
        for head in unfinished::all(self)? {
            let info = head.info();
            let Some(id) = info.id.filter(|_| info.base.is_none() && info.store == store) else {
                continue;
            };
            match self.go_on(source, (head, id), not_before, (settings, progress)) {
                // The store does not remember it.
                Err(Error::NotFound(_)) => {}
                done => return done,
            }
        }
        let upload = Upload::new(self, settings.verify);
        self.take(source, (at_rate(Backup::new(), settings), upload), (0, not_before), progress)
    }

    fn go_on(
        &self,
        source: &mut dyn BackupSource,
        (head, id): (BackupHead, BackupId),
        not_before: u64,
        (settings, progress): (Settings, BackupProgress<'_>),
    ) -> Result<BackedUp> {
        if !source.remembers(id)? {
            return Err(Error::NotFound(format!("the mark of backup {id}")));
        }
        let there = unfinished::of(self, head, id)?;
        let backup = Backup::new().resume(there.head, there.reached, there.pages);
        let backup = at_rate(backup, settings);
        let resumed = there.parts.iter().map(|part| part.bytes).sum();
        let upload = Upload::new(self, settings.verify).behind(head, there.parts, there.reached);
        let done = self.take(source, (backup, upload), (0, not_before), progress)?;
        Ok(BackedUp { resumed, ..done })
    }

    /// One that has what changed since `newest`, and builds on it or on one before it.
    pub(crate) fn increment(
        &self,
        source: &mut dyn BackupSource,
        backups: &Backups,
        newest: Listed,
        (settings, progress): (Settings, BackupProgress<'_>),
    ) -> Result<BackedUp> {
        let number = newest.number + 1;
        let chain = backups.chain(newest.id)?;
        let wanted = base_of(number);
        let base = chain.iter().find(|listed| listed.number == wanted);
        // A store that was restored has forgotten some.
        let base = match base {
            Some(base) if source.remembers(base.id)? => base,
            _ => &newest,
        };
        let mut backup = at_rate(Backup::new().base(base.id), settings);
        let bases = bases_of(number);
        for old in backups.by_time() {
            let needed = chain.contains(&old) && bases.contains(&old.number);
            if !needed && old.id != newest.id {
                backup = backup.forget(old.id);
            }
        }
        let given_up = std::mem::take(&mut *self.given_up());
        backup = given_up.iter().fold(backup, |backup, id| backup.forget(*id));
        let upload = Upload::new(self, settings.verify);
        self.take(source, (backup, upload), (number, after(Some(&newest))), progress)
    }

    fn take(
        &self,
        source: &mut dyn BackupSource,
        (backup, mut upload): (Backup, Upload<'_>),
        (number, not_before): (u64, u64),
        progress: BackupProgress<'_>,
    ) -> Result<BackedUp> {
        let report = backup.to_pieces(source, &mut upload, progress);
        let head = upload.head();
        let done = report.and_then(|report| self.add(report, upload, (number, not_before)));
        if let Some(id) = head.filter(|_| number > 0 && done.is_err()).and_then(|h| h.info().id) {
            self.given_up().push(id);
        }
        done
    }

    fn given_up(&self) -> MutexGuard<'_, Vec<BackupId>> {
        self.given_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists a backup all of which was written.
    fn add(
        &self,
        report: BackupReport,
        upload: Upload<'_>,
        (number, not_before): (u64, u64),
    ) -> Result<BackedUp> {
        let (head, parts, noted) = upload.finish()?;
        let listed = listed(&head, number, not_before)?;
        if let Some(base) = listed.base {
            // Somebody may have removed it meanwhile.
            self.backups()?.chain(base)?;
        }
        let manifest = Manifest::new(&head, parts, report.in_use);
        self.publish(&listed, &manifest)?;
        if noted {
            unfinished::forget(self, listed.id)?;
        }
        let BackupReport { in_use, state, .. } = report;
        Ok(BackedUp { listed, in_use, bytes: manifest.bytes(), resumed: 0, state: state.0 })
    }

    /// The first object of the place, which must be there.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the place holds no backups; as [`Bucket::back_up`].
    pub(crate) fn must_hold_backups(&self) -> Result<First> {
        self.first()?.ok_or_else(|| Error::NotFound(format!("backups in {}", self.name())))
    }
}

fn at_rate(backup: Backup, settings: Settings) -> Backup {
    match settings.rate {
        Some(rate) => backup.rate(rate),
        None => backup,
    }
}

/// The time from which a backup is newer than this one, whatever the clock does.
fn after(newest: Option<&Listed>) -> u64 {
    newest.map_or(0, |newest| newest.time + 1)
}

/// How a backup is listed: at the time of its begin, so that those which were begun while it was taken
/// are newer, as their states are.
fn listed(head: &BackupHead, number: u64, not_before: u64) -> Result<Listed> {
    let info = head.info();
    let id = info.id.ok_or_else(|| Error::Invalid("a backup without a number".into()))?;
    Ok(Listed { id, base: info.base, time: info.time.max(not_before), number })
}

/// What increment `number` builds on: of 16 in a row each on the one before, of 16 rows each on the row
/// before, and so on. So at most 15 of each kind lead back to the whole one.
fn base_of(number: u64) -> u64 {
    let mut step = 1;
    while number.is_multiple_of(step * IN_A_ROW) && number > step {
        step *= IN_A_ROW;
    }
    number - step
}

/// What later increments than `number` build on, of those up to it.
fn bases_of(number: u64) -> Vec<u64> {
    let mut bases = vec![number];
    let mut step = IN_A_ROW;
    while step / IN_A_ROW <= number {
        bases.push(number / step * step);
        step *= IN_A_ROW;
    }
    bases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_increments_lead_back_to_the_whole_one() {
        let expected = [
            (1, 0),
            (2, 1),
            (15, 14),
            (16, 0),
            (17, 16),
            (32, 16),
            (256, 0),
            (272, 256),
            (273, 272),
        ];
        for (number, base) in expected {
            assert_eq!(base_of(number), base, "{number}");
        }
        for number in 1..20_000 {
            let (mut steps, mut at) = (0, number);
            while at > 0 {
                at = base_of(at);
                steps += 1;
            }
            assert!(steps <= 60, "{number} is {steps} from the whole one");
            // What the next one builds on was kept until then.
            assert!(bases_of(number - 1).contains(&base_of(number)), "{number}");
        }
    }
}
