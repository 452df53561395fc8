//! Listening for others who ask the process that writes.
//!
//! Owns: [`Control`], with a thread that takes connections in, and one for each of them.

use crate::answer::Conversation;
use crate::place::{self, Place};
use holdall::{Error, Result, Store};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, PipeReader, PipeWriter};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Connections at a time: others wait until one ends.
const MOST: usize = 64;
/// Before connections are looked at again, if none could be taken in.
const PAUSE: Duration = Duration::from_millis(50);

/// A socket beside an open store, for as long as this lives. It keeps the store open.
///
/// Threads: one that listens, one for each of up to 64 connections.
#[derive(Debug)]
pub struct Control {
    place: Option<Place>,
    wake: Option<PipeWriter>,
    listener: Option<JoinHandle<()>>,
    open: Arc<Open>,
    process: u32,
}

/// Connections.
#[derive(Debug, Default)]
struct Open(Mutex<Vec<(Arc<UnixStream>, JoinHandle<()>)>>);

impl Open {
    /// Waits for those that have ended; returns how many are left.
    fn tidy(&self) -> usize {
        let (ended, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.0.lock()).into_iter().partition(|(_, t)| t.is_finished());
        let n = left.len();
        self.0.lock().extend(left);
        for (_, thread) in ended {
            // It has told who asked.
            let _ = thread.join();
        }
        n
    }
}

impl Control {
    /// Listens beside the store at `path`, which `store` has open for writing. The own user and root
    /// may ask.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Invalid`] if `path` leads elsewhere, or what lies in the
    /// socket's place is none; [`Error::Exists`] if this process listens there already;
    /// [`Error::Io`], where the file system has no sockets too.
    pub fn listen(store: &Store, path: impl AsRef<Path>) -> Result<Self> {
        if !store.is_writable() {
            return Err(Error::ReadOnly);
        }
        let failed = |e: io::Error| Error::io("beginning to listen", e);
        let (listener, place) = Place::listen(path.as_ref(), |file| store.is_own_file(file))?;
        listener.set_nonblocking(true).map_err(failed)?;
        let (asleep, wake) = io::pipe().map_err(failed)?;
        let open = Arc::new(Open::default());
        let taking = Taking { listener, asleep, open: open.clone(), store: store.clone() };
        let thread = Builder::new().name("holdall-control".into());
        let listener = thread.spawn(move || taking.run()).map_err(failed)?;
        let process = std::process::id();
        Ok(Self { place: Some(place), wake: Some(wake), listener: Some(listener), open, process })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let (place, wake, listener) = (self.place.take(), self.wake.take(), self.listener.take());
        if std::process::id() != self.process {
            // In a fork the threads do not exist, and locks may be held for ever.
            std::mem::forget((listener, std::mem::take(&mut self.open)));
            return;
        }
        drop(place);
        drop(wake);
        // A thread of ours that panicked has nothing more to end.
        let _ = listener.map(JoinHandle::join);
        let all = std::mem::take(&mut *self.open.0.lock());
        for (stream, _) in &all {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for (_, thread) in all {
            let _ = thread.join();
        }
    }
}

/// The thread that takes connections in.
struct Taking {
    listener: UnixListener,
    asleep: PipeReader,
    open: Arc<Open>,
    store: Store,
}

impl Taking {
    fn run(&self) {
        loop {
            let full = self.open.tidy() >= MOST;
            let wanted = if full { PollFlags::empty() } else { PollFlags::IN };
            let mut fds =
                [PollFd::new(&self.asleep, PollFlags::IN), PollFd::new(&self.listener, wanted)];
            let limit = full.then(|| PAUSE.try_into().ok()).flatten();
            // What fails comes again: it is looked at once more.
            let _ = poll(&mut fds, limit.as_ref());
            // The other end of the pipe is gone.
            if !fds[0].revents().is_empty() {
                return;
            }
            if !fds[1].revents().is_empty() && self.take_in().is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn take_in(&self) -> io::Result<()> {
        let (stream, _) = match self.listener.accept() {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            accepted => accepted?,
        };
        if place::peer(&stream).is_some_and(|uid| !place::is_trusted(uid)) {
            return Ok(());
        }
        stream.set_nonblocking(false)?;
        let stream = Arc::new(stream);
        let (own, store) = (stream.clone(), self.store.clone());
        let thread = Builder::new().name("holdall-asked".into()).spawn(move || {
            // Who asked has gone, or was told.
            let _ = Conversation::new(own.clone(), store).run();
            let _ = own.shutdown(Shutdown::Both);
        })?;
        self.open.0.lock().push((stream, thread));
        Ok(())
    }
}
