//! An operation: its intent, and the blobs that it writes.
//!
//! A blob is written after its operation's intent and before the record that names it. So a collector
//! knows from the intents alone which blobs may be named later, and can close an operation.

use super::current::Target;
use super::inner::Inner;
use crate::backend::{Put, Tag};
use crate::format::{BlobId, BlobKind, BlobRef, Id, Intent, IntentKind, IntentState, Named, keys};
use crate::mutation::{self, Mutation};
use holdall::{Error, Result};
use std::time::Duration;

/// An intent is written again when it is so old: much younger than the least grace.
const RENEW: Duration = Duration::from_secs(60 * 60);

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) id: Id,
    next: u32,
    /// The tag of its intent, if that was written, and when.
    intent: Option<(Tag, Duration)>,
    /// Whether the base was read since the intent was last seen open.
    stale: bool,
    /// Blobs that it wrote and that no attempt names any more.
    pub(crate) unused: Vec<BlobRef>,
    /// The lists that the last attempt wrote.
    lists: Vec<BlobRef>,
    /// Whether its intent is one of its own blobs, which it removes itself.
    writes: bool,
    /// The operation that writes blobs for one whose intent is of other blobs.
    writer: Option<Box<Operation>>,
}

impl Operation {
    pub(crate) fn new(store: &Inner) -> Result<Self> {
        Ok(Self {
            id: store.draw()?,
            next: 1,
            intent: None,
            stale: false,
            unused: Vec::new(),
            lists: Vec::new(),
            writes: true,
            writer: None,
        })
    }

    /// Notes that the base was read, or may have been.
    pub(crate) fn base_was_read(&mut self) {
        self.stale = true;
        if let Some(writer) = &mut self.writer {
            writer.stale = true;
        }
    }

    /// Whether it has an intent.
    pub(crate) fn is_announced(&self) -> bool {
        self.intent.is_some() || self.writer.as_ref().is_some_and(|writer| writer.is_announced())
    }

    /// The operation whose blobs a change writes: itself, unless its intent is of others'.
    pub(crate) fn writer(&mut self, store: &Inner) -> Result<&mut Self> {
        if self.writes {
            return Ok(self);
        }
        if self.writer.is_none() {
            self.writer = Some(Box::new(Self::new(store)?));
        }
        self.writer
            .as_deref_mut()
            .ok_or_else(|| Error::Invalid("an operation without blobs".into()))
    }

    /// Writes the intent, if it is not written yet; again if it grows old.
    ///
    /// # Errors
    /// [`Error::Conflict`] if a collector closed the operation; those of the backend.
    pub(crate) async fn announce(&mut self, store: &Inner, target: &Target) -> Result<()> {
        match &self.intent {
            None if mutation::is(Mutation::B03Intent) => Ok(()),
            None => self.announce_as(store, target, IntentKind::Write, Vec::new()).await,
            Some((_, written)) if store.environment.now().saturating_sub(*written) > RENEW => {
                self.renew(store, target).await
            }
            Some(_) => Ok(()),
        }
    }

    /// Writes the intent to make `target` name what is `shared`.
    ///
    /// # Errors
    /// As [`Operation::announce`].
    pub(crate) async fn announce_as(
        &mut self,
        store: &Inner,
        target: &Target,
        kind: IntentKind,
        shared: Vec<Named>,
    ) -> Result<()> {
        let written = store.environment.now();
        let intent = Intent {
            nonce: store.draw()?,
            state: IntentState::Open,
            kind,
            collection: target.collection.clone(),
            name: target.name.clone(),
            shared,
            cycle: 0,
            ends: 0,
        };
        let tag = write_intent(store, self.id, None, &intent).await?;
        let tag = tag.ok_or_else(|| closed(target))?;
        self.intent = Some((tag, written));
        self.stale = false;
        self.writes = kind == IntentKind::Write;
        Ok(())
    }

    async fn renew(&mut self, store: &Inner, target: &Target) -> Result<()> {
        let written = store.environment.now();
        let Some((tag, mut intent)) = self.open_intent(store).await? else {
            return Err(closed(target));
        };
        intent.nonce = store.draw()?;
        let tag = write_intent(store, self.id, Some(&tag), &intent).await?;
        let tag = tag.ok_or_else(|| closed(target))?;
        self.intent = Some((tag, written));
        Ok(())
    }

    async fn open_intent(&self, store: &Inner) -> Result<Option<(Tag, Intent)>> {
        let found = store.intent(self.id).await?;
        Ok(found.filter(|(_, intent)| intent.state == IntentState::Open))
    }

    /// Sees that the intent is open, unless it was written after the base was read.
    ///
    /// # Errors
    /// As [`Operation::announce`].
    pub(crate) async fn check_open(&mut self, store: &Inner, target: &Target) -> Result<()> {
        self.check_own(store, target).await?;
        match &mut self.writer {
            Some(writer) => writer.check_own(store, target).await,
            None => Ok(()),
        }
    }

    async fn check_own(&mut self, store: &Inner, target: &Target) -> Result<()> {
        if self.intent.is_some() && self.stale && !mutation::is(Mutation::B05Open) {
            self.open_intent(store).await?.ok_or_else(|| closed(target))?;
            self.stale = false;
        }
        Ok(())
    }

    /// The next blob of its own.
    pub(crate) fn next_blob(&mut self) -> Result<BlobId> {
        let number = self.next;
        let next = number.checked_add(1);
        self.next =
            next.ok_or_else(|| Error::TooLarge("a change that writes 2^32 blobs".into()))?;
        Ok(BlobId { operation: self.id, number })
    }

    /// Notes that another attempt begins: the lists of the one before are of no use any more.
    pub(crate) fn begin_attempt(&mut self) {
        self.unused.append(&mut self.lists);
    }

    /// Writes a list of retired blobs.
    ///
    /// # Errors
    /// As [`Operation::announce`].
    pub(crate) async fn write_list(
        &mut self,
        store: &Inner,
        target: &Target,
        payload: &[u8],
    ) -> Result<BlobRef> {
        let writer = self.writer(store)?;
        writer.announce(store, target).await?;
        let id = writer.next_blob()?;
        let list = store.write_blob(id, BlobKind::List, payload).await?;
        self.lists.push(list);
        Ok(list)
    }

    /// Ends an operation that changes nothing. What it wrote is left to a collector, with the intent.
    pub(crate) async fn give_up(&self, store: &Inner) {
        if self.next == 1 && self.writer.as_ref().is_none_or(|writer| writer.next == 1) {
            self.end(store).await;
        }
    }

    /// Removes the intent of an operation that succeeded. A failure does no harm:
    /// the next cycle removes it. The intent of what is shared stays for a collector to resolve.
    pub(crate) async fn end(&self, store: &Inner) {
        let own = Some(self).filter(|own| own.writes);
        for operation in [own, self.writer.as_deref()].into_iter().flatten() {
            if operation.intent.is_some() {
                let removed = store.backend.delete(&keys::intent(operation.id)).await;
                drop(removed);
            }
        }
    }
}

/// Writes an intent where `expected` is, or nothing. `None` if somebody else wrote it since.
pub(crate) async fn write_intent(
    store: &Inner,
    operation: Id,
    expected: Option<&Tag>,
    intent: &Intent,
) -> Result<Option<Tag>> {
    let key = keys::intent(operation);
    let stored = intent.encode()?;
    let (began, grace) = (store.environment.now(), Duration::from_secs(store.sizes().grace));
    for attempt in 0..super::inner::TRIES {
        let put = store.backend.put_if(&key, expected, stored.clone()).await?;
        if let Put::Done(tag) = put {
            return Ok(Some(tag));
        }
        match store.intent(operation).await? {
            Some((tag, found)) if found.nonce == intent.nonce => return Ok(Some(tag)),
            // What is absent after so long may have been there, and closed.
            None if expected.is_none()
                && store.environment.now().saturating_sub(began) >= grace =>
            {
                return Ok(None);
            }
            found if found.as_ref().map(|(tag, _)| tag) == expected => store.pause(attempt).await?,
            _ => return Ok(None),
        }
    }
    let detail = format!("the intent {operation} can neither be written nor refused");
    Err(Error::Conflict { object: key, detail })
}

fn closed(target: &Target) -> Error {
    let detail = "the change took longer than the grace, and a collector closed it";
    Error::Conflict { object: target.shown(), detail: detail.into() }
}
