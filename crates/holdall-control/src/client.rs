//! Asking the process that has a store open.
//!
//! Owns: [`Client`], one connection.

use crate::Written;
use crate::frame::{Frame, Frames, MOST_ANSWERED, bad};
use crate::message::{Answer, Ask, Change, Hello, Keys, Object, PROTOCOL, Transaction, Welcome};
use crate::place;
use holdall::{DefragOptions, DefragReport, Error, Metrics, Moved, Result, StoreStat, Wait};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// A process that listens says who it is within this time, unless it has been stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Keys of a removal in one message.
const KEYS: usize = 256;
/// Bytes of data in one frame.
const PIECE: usize = 256 << 10;
/// A sign of life while data is waited for.
const ALIVE: Duration = Duration::from_secs(10);

/// A connection to the process that has a store open for writing.
#[derive(Debug)]
pub struct Client {
    frames: Frames<UnixStream>,
    pub(crate) path: PathBuf,
    process: u32,
    pub(crate) store: [u8; 16],
}

impl Client {
    /// Connects to the process that has the store at `path` open; `None` if nobody listens.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it speaks another protocol; [`Error::Invalid`] if what lies in the
    /// socket's place is none; [`Error::Io`], also if it does not answer for five seconds, or belongs
    /// to a user who is neither this one nor the store's owner.
    pub fn connect(path: impl AsRef<Path>) -> Result<Option<Self>> {
        let path = path.as_ref();
        let Some(stream) = place::connect(path)? else { return Ok(None) };
        let failed = |e| lost(path, e);
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let mut frames = Frames::new(stream, MOST_ANSWERED);
        frames.say(&Hello { holdall_control: PROTOCOL }).map_err(failed)?;
        let Welcome { holdall_control, process, store } = match frames.message() {
            // It closed the store, and its socket, just now.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            welcome => welcome.map_err(failed)?,
        };
        if holdall_control != PROTOCOL {
            let detail = format!(
                "process {process}, which has {} open, speaks version {holdall_control} of the \
                 control protocol, this one {PROTOCOL}",
                path.display()
            );
            return Err(Error::Unsupported { detail });
        }
        let store = store.0.try_into().map_err(|_| failed(bad("no store's id".into())))?;
        frames.stream().set_read_timeout(None).map_err(failed)?;
        frames.stream().set_write_timeout(None).map_err(failed)?;
        Ok(Some(Self { frames, path: path.into(), process, store }))
    }

    /// The number of the process.
    pub fn process(&self) -> u32 {
        self.process
    }

    fn lost(&self, e: io::Error) -> Error {
        lost(&self.path, e)
    }

    pub(crate) fn ask(&mut self, ask: &Ask) -> Result<Answer> {
        self.frames.say(ask).map_err(|e| lost(&self.path, e))?;
        self.hear()
    }

    fn hear(&mut self) -> Result<Answer> {
        match self.frames.message().map_err(|e| lost(&self.path, e))? {
            Answer::Refused { why } => Err(why.into()),
            answer => Ok(answer),
        }
    }

    pub(crate) fn unexpected<T>(&self, answer: &Answer) -> Result<T> {
        Err(self.lost(bad(format!("an answer to something else: {answer:?}"))))
    }

    /// Answers come within this time from here on, or not at all.
    pub(crate) fn wait_at_most(&self, limit: Duration) -> Result<()> {
        self.frames.stream().set_read_timeout(Some(limit)).map_err(|e| self.lost(e))
    }

    pub(crate) fn holds(&mut self) -> Result<bool> {
        match self.ask(&Ask::Holds {})? {
            Answer::Holds { holds } => Ok(holds),
            other => self.unexpected(&other),
        }
    }

    pub(crate) fn page(&mut self, page: u64, kind: u8) -> Result<Vec<u8>> {
        match self.ask(&Ask::Page { page, kind })? {
            Answer::Page => match self.frames.read().map_err(|e| self.lost(e))? {
                Some(Frame::Data(bytes)) => Ok(bytes),
                _ => Err(self.lost(bad("a page was to follow".into()))),
            },
            other => self.unexpected(&other),
        }
    }

    /// As [`Store::stat`](holdall::Store::stat) in the process that writes.
    ///
    /// # Errors
    /// As [`Store::stat`](holdall::Store::stat); [`Error::Io`] if the connection is lost.
    pub fn stat(&mut self) -> Result<StoreStat> {
        match self.ask(&Ask::Stat {})? {
            Answer::Stat { stat } => Ok(*stat),
            other => self.unexpected(&other),
        }
    }

    /// As [`Store::metrics`](holdall::Store::metrics) in the process that writes.
    ///
    /// # Errors
    /// [`Error::Io`] if the connection is lost.
    pub fn metrics(&mut self) -> Result<Metrics> {
        match self.ask(&Ask::Metrics {})? {
            Answer::Metrics { metrics } => Ok(*metrics),
            other => self.unexpected(&other),
        }
    }

    /// As [`Store::checkpoint`](holdall::Store::checkpoint) in the process that writes.
    ///
    /// # Errors
    /// As [`Store::checkpoint`](holdall::Store::checkpoint); [`Error::Io`] if the connection is lost.
    pub fn checkpoint(&mut self) -> Result<()> {
        match self.ask(&Ask::Checkpoint {})? {
            Answer::Checkpointed => Ok(()),
            other => self.unexpected(&other),
        }
    }

    /// As [`Store::defrag`](holdall::Store::defrag) in the process that writes; `progress` is called ten times a second at
    /// most. If this one ends it stops there too.
    ///
    /// # Errors
    /// As [`Store::defrag`](holdall::Store::defrag); [`Error::Cancelled`] if `progress` stops it; [`Error::Io`] if the
    /// connection is lost.
    pub fn defrag(
        mut self,
        options: &DefragOptions,
        progress: &mut dyn FnMut(&Moved) -> ControlFlow<()>,
    ) -> Result<DefragReport> {
        let DefragOptions { join, rate } = *options;
        let mut answer = self.ask(&Ask::Defrag { join, rate })?;
        loop {
            match answer {
                Answer::Moved { moved } if progress(&moved).is_break() => {
                    return Err(Error::Cancelled);
                }
                Answer::Moved { .. } => answer = self.hear()?,
                Answer::Ordered { report } => return Ok(*report),
                other => return self.unexpected(&other),
            }
        }
    }

    /// As [`apply`](crate::apply) in the process that writes, which waits for other transactions as
    /// told.
    ///
    /// # Errors
    /// Those of the change; [`Error::Busy`] after the wait; [`Error::Io`] if `data` fails, after which
    /// nothing has happened, or if the connection is lost: then the change may have.
    pub fn write(
        &mut self,
        transaction: Transaction,
        wait: Wait,
        data: impl Read + Send + 'static,
    ) -> Result<Written> {
        let wait = match wait {
            Wait::Forever => None,
            Wait::Not => Some(0),
            Wait::For(limit) => Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        };
        let has_data = transaction.change.has_data();
        let (change, rest) = first_keys(transaction);
        self.frames.say(&Ask::Write { change, wait }).map_err(|e| lost(&self.path, e))?;
        let mut rest = rest.chunks(KEYS).peekable();
        while let Some(keys) = rest.next() {
            let keys = Keys { keys: keys.to_vec(), more: rest.peek().is_some() };
            // If it was refused already, that is heard below.
            if self.frames.say(&Ask::Keys(keys)).is_err() {
                break;
            }
        }
        let mut answer = self.hear()?;
        if has_data && matches!(answer, Answer::Go) {
            if let Err(e) = self.send(data)? {
                // If it was refused already, that says more.
                return Err(self.hear().err().unwrap_or_else(|| self.lost(e)));
            }
            answer = self.hear()?;
        }
        match answer {
            Answer::Written { oid, size } => {
                let oid = oid.map(|oid| oid.parse()).transpose()?;
                Ok(Written { oid, size })
            }
            other => self.unexpected(&other),
        }
    }

    /// Sends all data, or returns why `data` cannot be read; within that, what the connection said.
    fn send(&mut self, mut data: impl Read + Send + 'static) -> Result<io::Result<()>> {
        let (full, pieces) = sync_channel(1);
        // A stream may be slow: the other end must see meanwhile that this one lives.
        std::thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = data.read(&mut piece).map(|n| {
                    piece.truncate(n);
                    piece
                });
                let last = read.as_ref().map_or(true, Vec::is_empty);
                if full.send(read).is_err() || last {
                    return;
                }
            }
        });
        loop {
            let sent = match pieces.recv_timeout(ALIVE) {
                Ok(Ok(piece)) if piece.is_empty() => {
                    return Ok(self.frames.say(&Ask::End {}));
                }
                Ok(Ok(piece)) => self.frames.data(&piece),
                Ok(Err(e)) if e.kind() == io::ErrorKind::Interrupted => Ok(()),
                Ok(Err(e)) => return Err(Error::io("reading the data", e)),
                Err(RecvTimeoutError::Timeout) => self.frames.data(&[]),
                Err(RecvTimeoutError::Disconnected) => {
                    let e = io::Error::other("its reader ended");
                    return Err(Error::io("reading the data", e));
                }
            };
            if sent.is_err() {
                return Ok(sent);
            }
        }
    }
}

/// A transaction whose removal has no more keys than fit a message, and the others.
fn first_keys(mut transaction: Transaction) -> (Transaction, Vec<Object>) {
    let mut rest = Vec::new();
    if let Change::Remove(Keys { keys, more }) = &mut transaction.change {
        rest = keys.split_off(KEYS.min(keys.len()));
        *more = !rest.is_empty();
    }
    (transaction, rest)
}

/// The error of a connection that serves no more.
fn lost(path: &Path, e: io::Error) -> Error {
    let action = format!("asking the process that has {} open", path.display());
    let e = match e.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "it does not answer"),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::ConnectionReset => {
            io::Error::new(e.kind(), "it has ended, or closed the store")
        }
        // Without a code: those are of the other's disk.
        kind => io::Error::new(kind, e.to_string()),
    };
    Error::io(action, e)
}
