//! One conditional write of a record, and what became of it.
//!
//! A server's answer tells little: a request may have taken effect without one, and one sent twice
//! finds its own effect and says that the condition does not hold. So everything but a plain yes means:
//! read the record.

use super::current::{Current, Target};
use super::inner::{Inner, TRIES};
use crate::backend::Put;
use crate::format::{Id, MAX_RECENT, Record};
use crate::mutation::{self, Mutation};
use holdall::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Written {
    /// It was done; this is the record since, or a later one that remembers it.
    Done(Current),
    /// It was not done and will not be: this is there instead.
    Lost(Option<Current>),
}

/// A write under way.
struct Write<'a> {
    store: &'a Inner,
    target: &'a Target,
    base: Option<&'a Current>,
    /// The operation that the record is the change of; `None` if it changes nothing.
    operation: Option<Id>,
    incarnation: Id,
    nonces: Vec<Id>,
    began: Duration,
    /// Whether some request may still take effect.
    pending: bool,
}

impl Inner {
    /// Writes `record` in place of `base`, or if nothing is there. With an `operation` the record is its
    /// change; without, it changes nothing that anybody asked for.
    ///
    /// # Errors
    /// [`Error::OutcomeUnknown`] if what became of it cannot be known; those of the backend, which
    /// mean that nothing was done.
    pub(crate) async fn write(
        &self,
        target: &Target,
        base: Option<&Current>,
        record: Record,
        operation: Option<Id>,
    ) -> Result<Written> {
        let mut write = Write {
            store: self,
            target,
            base,
            operation,
            incarnation: record.incarnation,
            nonces: Vec::new(),
            began: self.environment.now(),
            pending: false,
        };
        match write.run(record).await {
            Err(e) if write.pending && operation.is_some() => Err(write.unknown(e.to_string())),
            result => result,
        }
    }
}

impl Write<'_> {
    async fn run(&mut self, mut record: Record) -> Result<Written> {
        let base_tag = self.base.map(|base| &base.tag);
        let mut last = String::from("the server refused it again and again");
        for attempt in 0..TRIES {
            // A create that is sent again must not be taken for the first one.
            if attempt == 0 || base_tag.is_none() {
                record.nonce = if mutation::is(Mutation::B01Nonce) {
                    Id::default()
                } else {
                    self.store.draw()?
                };
                self.nonces.push(record.nonce);
            }
            let (stored, seen) = (record.encode()?, self.store.environment.now());
            match self.store.backend.put_if(&self.target.key, base_tag, stored).await? {
                Put::Done(tag) => {
                    let current = Current { tag, written: None, seen, record: Arc::new(record) };
                    self.store.cache.keep(&self.target.key, &current);
                    return Ok(Written::Done(current));
                }
                Put::NotDone => {}
                Put::Unknown(why) => last = why,
            }
            self.pending = true;
            let current = self.store.read(self.target).await?;
            if current.as_ref().map(|current| &current.tag) != base_tag {
                return self.replaced(current);
            }
            // What is absent again may have been there meanwhile, ours, after so long.
            if base_tag.is_none() && self.operation.is_some() && !self.within_grace() {
                break;
            }
            self.store.pause(attempt).await?;
        }
        Err(Error::Conflict { object: self.target.shown(), detail: last })
    }

    /// Another record is there than the base: ours, or somebody's after ours, or instead of it. No
    /// request of ours that is still under way can take effect, since the base's tag never returns.
    fn replaced(&mut self, current: Option<Current>) -> Result<Written> {
        let record = current.as_ref().map(|current| &current.record);
        let own = |record: &Arc<Record>| {
            let again = self.base.is_none() && record.incarnation == self.incarnation;
            let remembered = !mutation::is(Mutation::B02Recent)
                && self.operation.is_some_and(|own| record.remembers(own));
            if mutation::is(Mutation::B02Own) {
                return false;
            }
            self.nonces.contains(&record.nonce) || again || remembered
        };
        if record.is_some_and(own) {
            return Ok(current.map_or(Written::Lost(None), Written::Done));
        }
        self.pending = false;
        let trusting = mutation::is(Mutation::B02Unknown);
        if trusting || self.operation.is_none() || self.surely_lost(record.map(|record| &**record))
        {
            return Ok(Written::Lost(current));
        }
        self.pending = true;
        let detail = "it was changed so often since that its record no longer tells".into();
        Err(Error::Conflict { object: self.target.shown(), detail })
    }

    /// Whether the record shows that the operation did not succeed before it: it would still be
    /// remembered. A name that began anew tells only that no grace has passed since.
    fn surely_lost(&self, record: Option<&Record>) -> bool {
        let base = self.base.map(|base| &base.record);
        if let (Some(base), Some(record)) = (base, record)
            && base.incarnation == record.incarnation
        {
            return record.change.saturating_sub(base.change) <= MAX_RECENT as u64;
        }
        self.within_grace()
    }

    /// Whether no record can have been removed since the write began that was written since.
    fn within_grace(&self) -> bool {
        let grace = Duration::from_secs(self.store.sizes().grace);
        self.store.environment.now().saturating_sub(self.began) < grace
    }

    fn unknown(&self, detail: String) -> Error {
        Error::OutcomeUnknown { object: self.target.shown(), detail }
    }
}
