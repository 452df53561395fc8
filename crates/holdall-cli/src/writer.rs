//! Where a command's changes go: into the store itself, or to the process that has it open.
//!
//! Owns: [`Writer`]. A change is the same on both ways: one transaction, made by
//! [`holdall_control::apply`].

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use holdall::{Error, Store, Wait, WriteOptions};
use holdall_control::{Change, Client, Transaction, Written, apply};

use crate::failure::{Failure, LOCKED, Outcome};
use crate::input::Input;
use crate::open::{self, Made};
use crate::wait::Waiting;

/// How long a change waits for another transaction of the other process without `--wait`.
const USUAL_WAIT: Duration = Duration::from_secs(10);

/// Takes a command's changes.
pub enum Writer<'p> {
    /// No other process has the store open.
    Own(Made<'p>),
    /// Another one has it open, and does what it is asked.
    Other(Box<Other>),
}

/// The process that has the store open.
pub struct Other {
    pub client: Client,
    store: Store,
    wait: Wait,
}

/// Opens a store that is there.
pub fn existing<'p>(path: &'p Path, waiting: &Waiting) -> Outcome<Writer<'p>> {
    open::check(path, true)?;
    or_other(path, waiting, |waiting| open::existing(path, waiting))
}

/// Opens a store, or makes it.
pub fn or_create<'p>(path: &'p Path, waiting: &Waiting) -> Outcome<Writer<'p>> {
    open::check(path, false)?;
    or_other(path, waiting, |waiting| open::or_create(path, waiting))
}

fn or_other<'p>(
    path: &'p Path,
    waiting: &Waiting,
    open: impl Fn(&Waiting) -> Outcome<Made<'p>>,
) -> Outcome<Writer<'p>> {
    let locked = match open(&Waiting::default()) {
        Err(Failure::Store(e @ Error::Locked { .. })) => e,
        // What passes by itself, as a store in the making, is waited for too.
        Err(_) if waiting.as_wait() != Wait::Not => return open(waiting).map(Writer::Own),
        opened => return opened.map(Writer::Own),
    };
    let wait = match waiting.as_wait() {
        Wait::Not => USUAL_WAIT.into(),
        other => other,
    };
    match Client::connect(path) {
        Ok(Some(client)) => {
            let store = open::read_only(path)?;
            Ok(Writer::Other(Box::new(Other { client, store, wait })))
        }
        // It has closed the store meanwhile, or answers nobody.
        Ok(None) | Err(_) if waiting.as_wait() != Wait::Not => open(waiting).map(Writer::Own),
        Ok(None) => open(waiting).map(Writer::Own),
        Err(Error::Unsupported { detail }) => {
            let hint = "use a command of its release, or end it";
            Err(Failure::Told(detail, hint.into(), LOCKED))
        }
        Err(e) => {
            let (Error::Locked { by, .. }, path) = (&locked, path.display()) else {
                return Err(locked.into());
            };
            let what = format!("{path} is in use by {by}, which cannot be asked: {e}");
            Err(Failure::Told(what, "wait for it with --wait, or end it".into(), LOCKED))
        }
    }
}

impl Writer<'_> {
    /// The store, to be read.
    pub fn store(&self) -> &Store {
        match self {
            Self::Own(made) => made,
            Self::Other(other) => &other.store,
        }
    }

    /// Whether another process makes the changes.
    pub fn is_other(&self) -> bool {
        matches!(self, Self::Other(_))
    }

    /// Lets others ask this command while it works, if it has the store open itself.
    pub fn listen(&mut self) {
        if let Self::Own(made) = self {
            made.listen();
        }
    }

    /// Makes a change durable.
    pub fn change_with(
        &mut self,
        collection: Option<&str>,
        change: Change,
        mut data: impl Read + Send + 'static,
    ) -> Outcome<Written> {
        let transaction = Transaction { collection: collection.map(str::to_owned), change };
        let written = match self {
            Self::Own(made) => apply(made, &WriteOptions::default(), &transaction, &mut data),
            Self::Other(other) => other.client.write(transaction, other.wait, data),
        };
        Ok(written?)
    }

    /// Closes the store after `done` came about.
    pub fn close(self, done: &str) -> Outcome {
        match self {
            Self::Own(made) => made.close(done),
            Self::Other(_) => Ok(()),
        }
    }

    /// Closes the store if all went well, after what `done` says came about; else leaves no store
    /// behind that the command made.
    pub fn end<T>(self, outcome: Outcome<T>, done: impl FnOnce(&T) -> String) -> Outcome<T> {
        match self {
            Self::Own(made) => made.end(outcome, done),
            Self::Other(_) => outcome,
        }
    }
}

/// What is left of an input, which must be at its end as it was when it was opened.
pub struct Rest {
    input: Input,
    left: u64,
}

impl Rest {
    /// Of an input of which `read` bytes were read.
    pub fn of(input: Input, read: u64) -> Self {
        // A file that grows as fast as it is read has an end all the same.
        let left = input.left.map_or(u64::MAX, |left| left.max(read) - read);
        Self { input, left }
    }
}

impl Read for Rest {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let label = self.input.label.display();
        let unread = |e| io::Error::from(Error::io(format!("read {label}"), e));
        let n = match self.input.file.read(&mut buf[..most]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            read => read.map_err(unread)?,
        };
        self.left -= n as u64;
        if n == 0 || self.left == 0 {
            self.input.refuse_changed().map_err(unread)?;
        }
        Ok(n)
    }
}
