//! Holds: that the version which somebody reads stays for longer than the grace.
//!
//! Owns: [`Hold`], [`Held`]. An intent names what is held until a second. Then the object is seen to name
//! it still, and marked as shared: so editors leave to a collector what it retires, which reads intents
//! last. A reader that makes its hold longer and a collector that finds it ended write the same key
//! on condition, so one of them loses.

use super::BucketStore;
use super::change::all_named;
use super::copy::busy;
use super::current::{Current, Target};
use super::inner::{Inner, TRIES};
use super::layout::Layout;
use super::operation::write_intent;
use super::read::Object;
use super::together::together;
use super::version::ObjectVersion;
use super::write::Written;
use crate::backend::Tag;
use crate::format::{Id, Intent, IntentKind, IntentState, Record, keys};
use crate::mutation::{self, Mutation};
use holdall::{Error, Result};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest time for which a version is held at once. A hold can be extended again and again; what a
/// reader that died held is deleted after this.
pub const LONGEST_HOLD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A clock that is wrong by less than this costs no second write of the intent.
const SLACK: u64 = 60;
/// Intents that are read together.
const READS: usize = 64;

/// That the blobs of one version of an object stay, from [`Object::hold`]. Dropped, it leaves
/// the hold to its end; [`Hold::release`] ends it at once.
#[derive(Debug)]
#[must_use = "it says until when the version stays"]
pub struct Hold {
    store: Arc<Inner>,
    target: Target,
    /// Of its intent; `None` if the version has no blobs.
    id: Option<Id>,
    ends: u64,
}

/// A hold that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Held {
    /// Its id, by which [`BucketStore::release_hold`] ends it.
    pub id: String,
    /// The collection of the object.
    pub collection: String,
    /// The object's name when it was read.
    pub name: String,
    /// When it ends, by the server's clock.
    pub ends: SystemTime,
}

impl Object {
    /// Holds this version: for `time` from now on, by the server's clock, its bytes can be read, whatever
    /// others change, remove and collect. The object is marked as one that shares its blobs: compacting
    /// leaves it alone. Cost: four requests; none if it has no blobs.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the object was changed since it was opened; [`Error::Invalid`] for no time,
    /// or more than [`LONGEST_HOLD`]; those of the backend.
    pub async fn hold(&mut self, time: Duration) -> Result<Hold> {
        let seconds = seconds_of(time)?;
        let Layout { store, target, current, .. } = &self.layout;
        let mut hold = Hold {
            store: store.clone(),
            target: target.clone(),
            id: None,
            ends: store.environment.now().as_secs().saturating_add(seconds),
        };
        if all_named(&current.record).is_empty() {
            return Ok(hold);
        }
        let made = hold.make(current.clone(), seconds).await;
        let now = match made {
            Ok(now) => now,
            Err(e) => {
                // What stays of it ends by itself.
                drop(hold.release().await);
                return Err(e);
            }
        };
        self.layout = Layout::new(hold.store.clone(), hold.target.clone(), now);
        Ok(hold)
    }
}

impl Hold {
    /// Its id; `None` if the version lies in its record alone and needs none.
    pub fn id(&self) -> Option<Id> {
        self.id
    }

    /// When it ends, by the server's clock.
    pub fn ends(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.ends)
    }

    /// Makes it last `time` from now on, if it would end earlier. It may be done late, as long as no
    /// collector has ended it. Cost: three requests.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it has ended; [`Error::Invalid`] as [`Object::hold`]; those of the backend.
    pub async fn extend(&mut self, time: Duration) -> Result<()> {
        let seconds = seconds_of(time)?;
        let Some(id) = self.id else {
            let until = self.store.environment.now().as_secs().saturating_add(seconds);
            self.ends = self.ends.max(until);
            return Ok(());
        };
        let found = self.store.intent(id).await?;
        let (tag, intent) =
            found.filter(|(_, intent)| is_open(intent)).ok_or_else(|| self.over())?;
        self.write(Some(tag), intent, seconds).await
    }

    /// Ends it. Ending it twice, or after its end, does nothing.
    ///
    /// # Errors
    /// Those of the backend: then it lasts to its end.
    pub async fn release(self) -> Result<()> {
        match self.id {
            Some(id) => self.store.backend.delete(&keys::intent(id)).await,
            None => Ok(()),
        }
    }

    /// Writes the intent, then sees that the object still names what it says. Returns its record.
    async fn make(&mut self, mut current: Current, seconds: u64) -> Result<Current> {
        let version = ObjectVersion::of(&current.record);
        for attempt in 0..TRIES {
            let shared = all_named(&current.record);
            let intent = Intent {
                nonce: Id::default(),
                state: IntentState::Open,
                kind: IntentKind::Hold,
                collection: self.target.collection.clone(),
                name: self.target.name.clone(),
                shared: shared.clone(),
                cycle: 0,
                ends: 0,
            };
            // Of an earlier try nothing is needed: what compacting wrote again lies elsewhere.
            if let Some(id) = self.id.replace(self.store.draw()?) {
                self.store.backend.delete(&keys::intent(id)).await?;
            }
            self.write(None, intent, seconds).await?;
            let now = self.confirm(&current).await?;
            let now =
                now.filter(|now| !now.record.gone && ObjectVersion::of(&now.record) == version);
            let now = now.ok_or_else(|| changed(&self.target))?;
            // A version names the same from its beginning to its end, unless it is compacted: so no
            // collector can have missed the record, if it read that, nor the intent.
            let flagged = now.record.shared || mutation::is(Mutation::B15Flag);
            if flagged && all_named(&now.record) == shared {
                return Ok(now);
            }
            current = now;
            self.store.pause(attempt).await?;
        }
        Err(busy(&self.target))
    }

    /// Marks the object as shared if it is not, else reads it again.
    async fn confirm(&self, current: &Current) -> Result<Option<Current>> {
        if current.record.shared || mutation::is(Mutation::B15Flag) {
            return self.store.read(&self.target).await;
        }
        let record = Record { shared: true, ..Record::clone(&current.record) };
        match self.store.write(&self.target, Some(current), record, None).await? {
            Written::Done(now) => Ok(Some(now)),
            Written::Lost(now) => Ok(now),
        }
    }

    /// Writes the intent so that it ends `seconds` after the server's date of it, or when it did.
    async fn write(&mut self, base: Option<Tag>, mut intent: Intent, seconds: u64) -> Result<()> {
        let id = self.id.ok_or_else(|| self.over())?;
        let (store, before) = (self.store.clone(), intent.ends);
        let now = store.environment.now().as_secs();
        intent.ends = before.max(now.saturating_add(seconds).saturating_add(SLACK));
        intent.nonce = store.draw()?;
        let written = write_intent(&store, id, base.as_ref(), &intent).await?;
        written.ok_or_else(|| self.over())?;
        // The clock here may be wrong: the server's date of the intent says when it was written.
        let found = store.dated_intent(id).await?;
        let found = found.filter(|(_, found, _)| found.nonce == intent.nonce && is_open(found));
        let (tag, _, date) = found.ok_or_else(|| self.over())?;
        let until = before.max(date.saturating_add(seconds).saturating_add(1));
        let right = (until..=until.saturating_add(2 * SLACK)).contains(&intent.ends);
        if !right && !mutation::is(Mutation::B15Clock) {
            intent.ends = until;
            intent.nonce = store.draw()?;
            let written = write_intent(&store, id, Some(&tag), &intent).await?;
            written.ok_or_else(|| self.over())?;
        }
        self.ends = match mutation::is(Mutation::B15Clock) {
            true => until,
            false => intent.ends,
        };
        Ok(())
    }

    fn over(&self) -> Error {
        Error::NotFound(format!("a hold on {}: it has ended", self.target.shown()))
    }
}

fn is_open(intent: &Intent) -> bool {
    intent.kind == IntentKind::Hold && intent.state == IntentState::Open
}

fn changed(target: &Target) -> Error {
    let detail = "it was changed since it was opened; open it again, and hold that".into();
    Error::Conflict { object: target.shown(), detail }
}

fn seconds_of(time: Duration) -> Result<u64> {
    if time.is_zero() || time > LONGEST_HOLD {
        let text = format!("a hold of {time:?}: it lasts 30 days at most, and can be extended");
        return Err(Error::Invalid(text));
    }
    Ok(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

impl BucketStore {
    /// All holds on objects of all collections that no collector has ended. Cost: a request for a
    /// thousand intents and one for each.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; those of the backend.
    pub async fn holds(&self) -> Result<Vec<Held>> {
        let operations = crate::collect::operations(&self.inner).await?;
        let store = &*self.inner;
        let read = |id| async move { Ok(store.intent(id).await?.map(|(_, intent)| (id, intent))) };
        let found = together(operations, READS, read).await?;
        let open = found.into_iter().flatten().filter(|(_, intent)| is_open(intent));
        let held = open.map(|(id, intent)| Held {
            id: id.to_string(),
            collection: intent.collection,
            name: intent.name,
            ends: UNIX_EPOCH + Duration::from_secs(intent.ends),
        });
        Ok(held.collect())
    }

    /// Ends a hold of this id, whichever process has it. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if that is no id of a hold; those of the backend.
    pub async fn release_hold(&self, id: &str) -> Result<bool> {
        let strange = || Error::Invalid(format!("{id:?} is no id of a hold"));
        let id = Id::parse(id).ok_or_else(strange)?;
        match self.inner.intent(id).await? {
            // What others announced must stay.
            Some((_, intent)) if intent.kind != IntentKind::Hold => Err(strange()),
            Some(_) => self.inner.backend.delete(&keys::intent(id)).await.map(|()| true),
            None => Ok(false),
        }
    }
}
