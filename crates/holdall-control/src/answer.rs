//! A connection's end in the process that writes.
//!
//! Owns: [`Conversation`]: one thread, at most one snapshot, whatever the other end does. It may hold
//! the writer's lock only with all it needs in its own hands.

use crate::change::{Written, apply};
use crate::frame::{Frame, Frames, MOST_ASKED, bad, parse};
use crate::message::{Answer, Ask, Change, Hello, Keys, Name, PROTOCOL, Transaction, Welcome};
use crate::place;
use crate::refusal::Refusal;
use holdall::{Cancel, DefragOptions, Error, PageNo, Reader, Result, Store, Wait, WriteOptions};
use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The other end says who it is within this time, and goes on with data within it.
const PATIENCE: Duration = Duration::from_secs(60);
/// It takes what it is sent within this time.
const SLOWEST: Duration = Duration::from_secs(30);
/// Between two reports of progress.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);
/// Data of a splice in memory; more lies in a file that has no name.
const IN_MEMORY: usize = 4 << 20;
/// Keys of one removal, and their bytes.
const MOST_KEYS: usize = 64 << 20;

/// One connection.
pub struct Conversation {
    frames: Frames<Shared>,
    store: Store,
    held: Option<Reader>,
}

/// A stream that a wait for the writer's lock looks at too.
#[derive(Debug, Clone)]
struct Shared(Arc<UnixStream>);

impl Read for Shared {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buf)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why a conversation cannot go on: the other end has gone, or says what nobody understands.
type Talk<T> = io::Result<T>;

impl Conversation {
    /// With who is at the other end of `stream`.
    pub fn new(stream: Arc<UnixStream>, store: Store) -> Self {
        Self { frames: Frames::new(Shared(stream), MOST_ASKED), store, held: None }
    }

    fn stream(&self) -> &Arc<UnixStream> {
        &self.frames.stream().0
    }

    /// Answers until the other end goes.
    pub fn run(&mut self) -> Talk<()> {
        self.stream().set_read_timeout(Some(PATIENCE))?;
        self.stream().set_write_timeout(Some(SLOWEST))?;
        let Hello { holdall_control } = self.frames.message()?;
        let store = Name(self.store.id().to_vec());
        let process = std::process::id();
        self.frames.say(&Welcome { holdall_control: PROTOCOL, process, store })?;
        if holdall_control != PROTOCOL {
            return Ok(());
        }
        loop {
            // A held snapshot may be read for as long as one likes.
            self.stream().set_read_timeout(None)?;
            let ask = match self.frames.read()? {
                None => return Ok(()),
                Some(Frame::Data(_)) => return Err(bad("data that nobody asked for".into())),
                Some(Frame::Message(bytes)) => parse(&bytes),
            };
            self.stream().set_read_timeout(Some(PATIENCE))?;
            let ask = match ask {
                Ok(ask) => ask,
                Err(e) => {
                    // What follows may belong to it.
                    self.refuse(Error::Invalid(e.to_string()))?;
                    return Err(e);
                }
            };
            self.answer(ask)?;
        }
    }

    fn refuse(&mut self, error: Error) -> Talk<()> {
        self.frames.say(&Answer::Refused { why: Refusal::from(error) })
    }

    fn say(&mut self, answer: Result<Answer>) -> Talk<()> {
        match answer {
            Ok(answer) => self.frames.say(&answer),
            Err(error) => self.refuse(error),
        }
    }

    fn answer(&mut self, ask: Ask) -> Talk<()> {
        match ask {
            Ask::Hold {} => {
                // Not two at a time.
                self.held = None;
                let held = self.store.read();
                let answer = held.map(|reader| {
                    let lsn = reader.lsn().0;
                    self.held = Some(reader);
                    Answer::Held { lsn }
                });
                self.say(answer)
            }
            Ask::Mark { forget } => {
                let forget =
                    forget.into_iter().map(|Name(id)| id.try_into()).collect::<Result<Vec<_>, _>>();
                let marked = match forget {
                    Err(_) => Err(Error::Invalid("no number of a backup".into())),
                    Ok(forget) => self.store.mark_backup(&forget),
                };
                self.say(
                    marked
                        .map(|mark| Answer::Marked { id: Name(mark.id.to_vec()), lsn: mark.lsn.0 }),
                )
            }
            Ask::Holds {} => {
                let holds = self.held.as_ref().is_some_and(Reader::is_live);
                self.frames.say(&Answer::Holds { holds })
            }
            Ask::Page { page, kind } => self.page(PageNo(page), kind),
            Ask::Stat {} => {
                let stat = self.store.stat();
                self.say(stat.map(|stat| Answer::Stat { stat: Box::new(stat) }))
            }
            Ask::Metrics {} => {
                let metrics = Box::new(self.store.metrics());
                self.frames.say(&Answer::Metrics { metrics })
            }
            Ask::Checkpoint {} => {
                let done = self.store.checkpoint();
                self.say(done.map(|()| Answer::Checkpointed))
            }
            Ask::Defrag { join, rate } => self.defrag(join, rate),
            Ask::Write { change, wait } => self.write(change, wait),
            Ask::Keys(_) | Ask::End {} => {
                self.refuse(Error::Invalid("nothing was begun that this belongs to".into()))
            }
        }
    }

    fn page(&mut self, page: PageNo, kind: u8) -> Talk<()> {
        let Some(reader) = &self.held else {
            return self.refuse(Error::Invalid("no snapshot is held".into()));
        };
        match reader.page_in_place(page, kind) {
            Ok(bytes) => {
                self.frames.say(&Answer::Page)?;
                self.frames.data(&bytes)
            }
            Err(error) => self.refuse(error),
        }
    }

    fn defrag(&mut self, join: bool, rate: Option<u64>) -> Talk<()> {
        let options = DefragOptions { join, rate };
        let (store, mut told) = (self.store.clone(), Instant::now());
        let mut failure = None;
        let done = store.defrag(&options, &mut |moved| {
            if told.elapsed() < BETWEEN_REPORTS {
                return ControlFlow::Continue(());
            }
            told = Instant::now();
            let gone = place::is_gone(self.stream());
            let said = match gone {
                true => Err(io::ErrorKind::BrokenPipe.into()),
                false => self.frames.say(&Answer::Moved { moved: *moved }),
            };
            failure = said.err();
            if failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        failure.map_or(Ok(()), Err)?;
        self.say(done.map(|report| Answer::Ordered { report: Box::new(report) }))
    }

    fn write(&mut self, mut transaction: Transaction, wait: Option<u64>) -> Talk<()> {
        let waiting = self.waiting(wait);
        let store = self.store.clone();
        let written = match &mut transaction.change {
            Change::Put { .. } => {
                self.frames.say(&Answer::Go)?;
                let mut data =
                    Data { frames: &mut self.frames, left: Vec::new(), at: 0, done: false };
                apply(&store, &waiting, &transaction, &mut data)
            }
            Change::Splice { length, .. } => {
                let length = *length;
                self.frames.say(&Answer::Go)?;
                // The transaction must not wait for the other end.
                match self.spool(length) {
                    Ok(mut data) => apply(&store, &waiting, &transaction, &mut data),
                    Err(error) => Err(error),
                }
            }
            Change::Remove(keys) => {
                self.more_keys(keys)?;
                apply(&store, &waiting, &transaction, &mut io::empty())
            }
            _ => apply(&store, &waiting, &transaction, &mut io::empty()),
        };
        let has_data = transaction.change.has_data();
        match written {
            Ok(Written { oid, size }) => {
                self.frames.say(&Answer::Written { oid: oid.map(|oid| oid.to_string()), size })
            }
            Err(error) => {
                self.refuse(error)?;
                // Data may be on its way that nobody wants any more.
                if has_data { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
            }
        }
    }

    /// Waits end when the other end goes.
    fn waiting(&self, wait: Option<u64>) -> WriteOptions {
        let stream = self.stream().clone();
        let cancel = Some(Cancel::when(move || place::is_gone(&stream)));
        let wait = wait.map_or(Wait::Forever, |millis| Duration::from_millis(millis).into());
        WriteOptions { wait, cancel }
    }

    /// Takes the data of a splice.
    fn spool(&mut self, length: u64) -> Result<impl Read + use<>> {
        let failed = |e| Error::io("keeping the data until it is whole", e);
        let mut spool = tempfile::SpooledTempFile::new(IN_MEMORY);
        let mut data = Data { frames: &mut self.frames, left: Vec::new(), at: 0, done: false };
        // One more than there may be.
        let taken = (&mut data).take(length.saturating_add(1));
        let copied = io::copy(&mut { taken }, &mut spool).map_err(failed)?;
        if copied != length {
            let text = format!("{copied} bytes of data came, {length} were announced");
            return Err(Error::Invalid(text));
        }
        spool.rewind().map_err(failed)?;
        Ok(spool)
    }

    fn more_keys(&mut self, keys: &mut Keys) -> Talk<()> {
        let mut bytes = 0;
        while keys.more {
            let Ask::Keys(next) = self.frames.message()? else {
                return Err(bad("keys were to follow".into()));
            };
            bytes += next.keys.len() * size_of::<crate::message::Object>();
            if bytes > MOST_KEYS {
                self.refuse(Error::TooLarge(format!("more than {} keys", keys.keys.len())))?;
                return Err(bad("too many keys".into()));
            }
            keys.keys.extend(next.keys);
            keys.more = next.more;
        }
        Ok(())
    }
}

/// The data that comes behind a message.
struct Data<'a> {
    frames: &'a mut Frames<Shared>,
    left: Vec<u8>,
    at: usize,
    done: bool,
}

impl Read for Data<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.left.len() && !self.done {
            match self.frames.read()? {
                // An empty one says that the other end is alive.
                Some(Frame::Data(bytes)) => (self.left, self.at) = (bytes, 0),
                Some(Frame::Message(bytes)) => match parse(&bytes)? {
                    Ask::End {} => self.done = true,
                    _ => return Err(bad("data was to follow, and its end".into())),
                },
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let part = self.left.get(self.at..).unwrap_or_default();
        let n = part.len().min(buf.len());
        buf[..n].copy_from_slice(&part[..n]);
        self.at += n;
        Ok(n)
    }
}
