//! The store for programs that wait: [`BucketStore`] with threads of its own for the requests.
//!
//! Owns: those threads. Each call is that of the async store, which tells what it does, costs and
//! refuses; it must not be made from within a tokio runtime.

mod hold;
mod probe;

pub use hold::Hold;
pub use probe::probe_at;

use crate::access::Access;
use crate::collect::{BucketStat, CollectOptions, Collected, Compacted, Verified};
use crate::probe::{ProbeReport, Progress};
use crate::store::{
    self, Held, Infos, ListNames, Names, ObjectInfo, ObjectVersion, PutMode, PutOptions, Splice,
};
use bytes::Bytes;
use holdall::{Attributes, Error, Result};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Threads that speak to the server.
const THREADS: usize = 2;
/// Objects that calls for several have under way together.
const TOGETHER: usize = 16;
/// Pieces that [`Pieces`] reads ahead.
const AHEAD: usize = 2;

/// The threads. What is under way when they are dropped is given up.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Threads {
    fn start() -> Result<Arc<Self>> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.map_err(|e| Error::io("starting threads", e))?;
        Ok(Arc::new(Self(Some(runtime))))
    }

    fn runtime(&self) -> Result<&Runtime> {
        self.0.as_ref().ok_or_else(|| Error::Invalid("the store was closed".into()))
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime()?.block_on(work)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Objects in a bucket, as [`store::BucketStore`], whose calls wait. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BucketStore {
    threads: Arc<Threads>,
    store: store::BucketStore,
}

impl BucketStore {
    /// As [`store::BucketStore::create_at`].
    ///
    /// # Errors
    /// As that.
    pub fn create_at(
        place: &str,
        access: &Access,
        progress: Progress<'_>,
    ) -> Result<(Self, ProbeReport)> {
        let threads = Threads::start()?;
        let made = threads.wait(store::BucketStore::create_at(place, access, progress));
        let (store, report) = made?;
        Ok((Self { threads, store }, report))
    }

    /// As [`store::BucketStore::open_at`].
    ///
    /// # Errors
    /// As that.
    pub fn open_at(place: &str, access: &Access) -> Result<Self> {
        let threads = Threads::start()?;
        let store = threads.wait(store::BucketStore::open_at(place, access))?;
        Ok(Self { threads, store })
    }

    /// As [`store::BucketStore::probe_daily`].
    ///
    /// # Errors
    /// As that.
    pub fn probe_daily(
        place: &str,
        access: &Access,
        progress: Progress<'_>,
    ) -> Result<Option<ProbeReport>> {
        Threads::start()?.wait(store::BucketStore::probe_daily(place, access, progress))
    }

    /// The store that `opening` gives, which runs where the store's calls then do: a program may end
    /// it for reasons of its own.
    ///
    /// # Errors
    /// Those of `opening`; [`Error::Io`] if no threads can be started.
    pub fn opened_by(opening: impl Future<Output = Result<store::BucketStore>>) -> Result<Self> {
        let threads = Threads::start()?;
        let store = threads.wait(opening)?;
        Ok(Self { threads, store })
    }

    /// Gives a store that is open threads of its own.
    ///
    /// # Errors
    /// [`Error::Io`] if none can be started.
    pub fn of(store: store::BucketStore) -> Result<Self> {
        Ok(Self { threads: Threads::start()?, store })
    }

    /// The async store, whose calls [`BucketStore::wait`] waits for.
    pub fn inner(&self) -> &store::BucketStore {
        &self.store
    }

    /// Waits for `work`, calls of [`BucketStore::inner`] above all.
    ///
    /// # Errors
    /// Those of the work.
    pub fn wait<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        self.threads.wait(work)
    }

    /// As [`store::BucketStore::collection`].
    ///
    /// # Errors
    /// As that.
    pub fn collection(&self, name: &str) -> Result<Self> {
        Ok(Self { threads: self.threads.clone(), store: self.store.collection(name)? })
    }

    /// As [`store::BucketStore::name`].
    pub fn name(&self) -> &str {
        self.store.name()
    }

    /// As [`store::BucketStore::id`].
    pub fn id(&self) -> &str {
        self.store.id()
    }

    /// As [`store::BucketStore::get`].
    ///
    /// # Errors
    /// As that.
    pub fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.wait(self.store.get(name))
    }

    /// As [`store::BucketStore::get_range`].
    ///
    /// # Errors
    /// As that.
    pub fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        self.wait(self.store.get_range(name, range))
    }

    /// As [`store::BucketStore::open`].
    ///
    /// # Errors
    /// As that.
    pub fn open(&self, name: &str) -> Result<Option<Object>> {
        let object = self.wait(self.store.open(name))?;
        Ok(object.map(|object| Object { threads: self.threads.clone(), object }))
    }

    /// Opens several objects at the same time, in the order of `names`.
    ///
    /// # Errors
    /// As [`store::BucketStore::open`].
    pub fn open_all(&self, names: &[String]) -> Result<Vec<Option<Object>>> {
        let store = &self.store;
        let opened = store::together(names, TOGETHER, |name| async { store.open(name).await });
        let opened = self.wait(opened)?.into_iter();
        let object = |object| Object { threads: self.threads.clone(), object };
        Ok(opened.map(|opened| opened.map(object)).collect())
    }

    /// All bytes of several objects, which are read at the same time.
    ///
    /// # Errors
    /// As [`store::Object::read`].
    pub fn read_all(&self, objects: Vec<Object>) -> Result<Vec<Bytes>> {
        let read = |object: Object| async move {
            let mut object = object.object;
            object.read(0..u64::MAX).await
        };
        self.wait(store::together(objects, TOGETHER, read))
    }

    /// As [`store::BucketStore::info`].
    ///
    /// # Errors
    /// As that.
    pub fn info(&self, name: &str) -> Result<Option<ObjectInfo>> {
        self.wait(self.store.info(name))
    }

    /// As [`store::BucketStore::infos`].
    ///
    /// # Errors
    /// As that.
    pub fn infos(&self, names: &[String]) -> Result<Vec<ObjectInfo>> {
        self.wait(self.store.infos(names))
    }

    /// As [`store::BucketStore::put`].
    ///
    /// # Errors
    /// As that.
    pub fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Result<ObjectVersion> {
        self.wait(self.store.put(name, bytes))
    }

    /// As [`store::BucketStore::put_with`].
    ///
    /// # Errors
    /// As that.
    pub fn put_with(
        &self,
        name: &str,
        bytes: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<ObjectVersion> {
        self.wait(self.store.put_with(name, bytes, options))
    }

    /// As [`store::BucketStore::writer`].
    ///
    /// # Errors
    /// As that.
    pub fn writer(&self, name: &str, options: PutOptions) -> Result<Writer> {
        let writer = self.store.writer(name, options)?;
        Ok(Writer { threads: self.threads.clone(), writer })
    }

    /// As [`store::BucketStore::edit`].
    ///
    /// # Errors
    /// As that.
    pub fn edit(&self, name: &str, splices: Vec<Splice>) -> Result<u64> {
        self.wait(self.store.edit(name, splices))
    }

    /// As [`store::BucketStore::edit_if`].
    ///
    /// # Errors
    /// As that.
    pub fn edit_if(
        &self,
        name: &str,
        splices: Vec<Splice>,
        only: ObjectVersion,
    ) -> Result<ObjectVersion> {
        self.wait(self.store.edit_if(name, splices, only))
    }

    /// As [`store::BucketStore::splice`].
    ///
    /// # Errors
    /// As that.
    pub fn splice(&self, name: &str, range: Range<u64>, bytes: impl Into<Bytes>) -> Result<u64> {
        self.wait(self.store.splice(name, range, bytes))
    }

    /// As [`store::BucketStore::insert`].
    ///
    /// # Errors
    /// As that.
    pub fn insert(&self, name: &str, at: u64, bytes: impl Into<Bytes>) -> Result<u64> {
        self.wait(self.store.insert(name, at, bytes))
    }

    /// As [`store::BucketStore::delete_range`].
    ///
    /// # Errors
    /// As that.
    pub fn delete_range(&self, name: &str, range: Range<u64>) -> Result<u64> {
        self.wait(self.store.delete_range(name, range))
    }

    /// As [`store::BucketStore::append`].
    ///
    /// # Errors
    /// As that.
    pub fn append(&self, name: &str, bytes: impl Into<Bytes>) -> Result<u64> {
        self.wait(self.store.append(name, bytes))
    }

    /// As [`store::BucketStore::set_attributes`].
    ///
    /// # Errors
    /// As that.
    pub fn set_attributes(&self, name: &str, attributes: Attributes) -> Result<ObjectVersion> {
        self.wait(self.store.set_attributes(name, attributes))
    }

    /// As [`store::BucketStore::copy_with`].
    ///
    /// # Errors
    /// As that.
    pub fn copy(&self, from: &str, to: &str, mode: PutMode) -> Result<ObjectVersion> {
        self.wait(self.store.copy_with(from, to, mode))
    }

    /// As [`store::BucketStore::copy_range`].
    ///
    /// # Errors
    /// As that.
    pub fn copy_range(&self, from: &str, range: Range<u64>, to: &str, at: u64) -> Result<u64> {
        self.wait(self.store.copy_range(from, range, to, at))
    }

    /// As [`store::BucketStore::concat`].
    ///
    /// # Errors
    /// As that.
    pub fn concat(&self, parts: &[&str], to: &str) -> Result<ObjectVersion> {
        self.wait(self.store.concat(parts, to))
    }

    /// As [`store::BucketStore::rename_with`].
    ///
    /// # Errors
    /// As that.
    pub fn rename(&self, from: &str, to: &str, mode: PutMode) -> Result<ObjectVersion> {
        self.wait(self.store.rename_with(from, to, mode))
    }

    /// As [`store::BucketStore::remove`].
    ///
    /// # Errors
    /// As that.
    pub fn remove(&self, name: &str) -> Result<bool> {
        self.wait(self.store.remove(name))
    }

    /// As [`store::BucketStore::remove_if`].
    ///
    /// # Errors
    /// As that.
    pub fn remove_if(&self, name: &str, only: ObjectVersion) -> Result<bool> {
        self.wait(self.store.remove_if(name, only))
    }

    /// Removes objects one by one, many of them at the same time; returns how many were there. After
    /// an error some are removed, and no other is begun.
    ///
    /// # Errors
    /// As [`store::BucketStore::remove`].
    pub fn remove_all(&self, names: &[String]) -> Result<usize> {
        let store = &self.store;
        let removed = store::together(names, TOGETHER, |name| async { store.remove(name).await });
        Ok(self.wait(removed)?.into_iter().filter(|was_there| *was_there).count())
    }

    /// As [`store::BucketStore::list`].
    ///
    /// # Errors
    /// As that.
    pub fn list(&self, what: &ListNames) -> Result<Names> {
        self.wait(self.store.list(what))
    }

    /// As [`store::BucketStore::list_infos`], of all objects.
    ///
    /// # Errors
    /// As that.
    pub fn list_infos(&self, what: &ListNames) -> Result<Infos> {
        self.wait(self.store.list_infos(what, |_| true))
    }

    /// As [`store::BucketStore::collections`].
    ///
    /// # Errors
    /// As that.
    pub fn collections(&self) -> Result<Vec<String>> {
        self.wait(self.store.collections())
    }

    /// As [`store::BucketStore::collect`].
    ///
    /// # Errors
    /// As that.
    pub fn collect(
        &self,
        options: CollectOptions,
        progress: &mut (dyn FnMut(&Collected) + Send),
    ) -> Result<Collected> {
        self.wait(self.store.collect(options, progress))
    }

    /// As [`store::BucketStore::verify`].
    ///
    /// # Errors
    /// As that.
    pub fn verify(&self, progress: &mut (dyn FnMut(&Verified) + Send)) -> Result<Verified> {
        self.wait(self.store.verify(progress))
    }

    /// As [`store::BucketStore::compact`].
    ///
    /// # Errors
    /// As that.
    pub fn compact(&self, progress: &mut (dyn FnMut(&Compacted) + Send)) -> Result<Compacted> {
        self.wait(self.store.compact(progress))
    }

    /// As [`store::BucketStore::stat`].
    ///
    /// # Errors
    /// As that.
    pub fn stat(&self, progress: &mut (dyn FnMut(&BucketStat) + Send)) -> Result<BucketStat> {
        self.wait(self.store.stat(progress))
    }

    /// As [`store::BucketStore::holds`].
    ///
    /// # Errors
    /// As that.
    pub fn holds(&self) -> Result<Vec<Held>> {
        self.wait(self.store.holds())
    }

    /// As [`store::BucketStore::release_hold`].
    ///
    /// # Errors
    /// As that.
    pub fn release_hold(&self, id: &str) -> Result<bool> {
        self.wait(self.store.release_hold(id))
    }
}

/// Puts an object that comes in parts, as [`store::Writer`]. Segments go out while the caller works on
/// what comes next. Without [`Writer::finish`] no object appears.
#[derive(Debug)]
pub struct Writer {
    threads: Arc<Threads>,
    writer: store::Writer,
}

impl Writer {
    /// Bytes so far.
    pub fn size(&self) -> u64 {
        self.writer.size()
    }

    /// As [`store::Writer::finish`].
    ///
    /// # Errors
    /// As that.
    pub fn finish(self) -> Result<ObjectVersion> {
        self.threads.wait(self.writer.finish())
    }
}

/// Errors have the store's own inside.
impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.threads.wait(self.writer.push(bytes)).map_err(io::Error::from)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One version of an object, as [`store::Object`].
#[derive(Debug, Clone)]
pub struct Object {
    threads: Arc<Threads>,
    object: store::Object,
}

impl Object {
    /// What is known of it.
    pub fn info(&self) -> ObjectInfo {
        self.object.info()
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.object.size()
    }

    /// As [`store::Object::read`].
    ///
    /// # Errors
    /// As that.
    pub fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.threads.wait(self.object.read(range))
    }

    /// Reads the bytes from `at` on into `buffer`, as many as there are; returns how many.
    ///
    /// # Errors
    /// As [`store::Object::read`].
    pub fn read_at(&mut self, at: u64, buffer: &mut [u8]) -> Result<usize> {
        let bytes = self.read(at..at.saturating_add(buffer.len() as u64))?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// As [`store::Object::hold`].
    ///
    /// # Errors
    /// As that.
    pub fn hold(&mut self, time: Duration) -> Result<Hold> {
        let hold = self.threads.wait(self.object.hold(time))?;
        Ok(Hold { threads: self.threads.clone(), hold })
    }

    /// As [`store::Object::pieces`]. Some pieces are read before they are asked for.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the store was closed.
    pub fn pieces(&self, range: Range<u64>) -> Result<Pieces> {
        let (send, receive) = mpsc::channel(AHEAD);
        let mut pieces = self.object.clone().pieces(range);
        let left = pieces.left();
        let read = async move {
            while let Some(piece) = pieces.next().await.transpose() {
                let last = piece.is_err();
                if send.send(piece).await.is_err() || last {
                    break;
                }
            }
        };
        let reading = self.threads.runtime()?.spawn(read);
        Ok(Pieces { _threads: self.threads.clone(), left, receive, reading })
    }
}

/// The bytes of an object, from [`Object::pieces`]. Ends after an error.
#[derive(Debug)]
pub struct Pieces {
    _threads: Arc<Threads>,
    left: u64,
    receive: mpsc::Receiver<Result<Bytes>>,
    reading: JoinHandle<()>,
}

impl Iterator for Pieces {
    type Item = Result<Bytes>;

    fn next(&mut self) -> Option<Result<Bytes>> {
        let piece = self.receive.blocking_recv();
        // A task that ends early must not look like the end.
        let piece = piece.unwrap_or_else(|| match self.left {
            0 => Ok(Bytes::new()),
            left => Err(Error::Invalid(format!("reading ended {left} bytes early"))),
        });
        self.left = piece.as_ref().map_or(0, |piece| self.left.saturating_sub(piece.len() as u64));
        Some(piece).filter(|piece| !matches!(piece, Ok(piece) if piece.is_empty()))
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
