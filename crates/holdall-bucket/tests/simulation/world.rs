//! A bucket whose server decides by seed when a request takes effect and when its answer comes.
//!
//! Each request has two events: its effect, and its answer. Between them, and before and after, anything
//! may happen. Tags are hashes of contents, as many servers have them.

use crate::check::Checker;
use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use holdall::{Error, Result};
use holdall_bucket::backend::{Backend, Features, Found, Got, Listed, Page, Put, Tag};
use holdall_bucket::format::{Id, Intent, IntentState, keys};
use holdall_bucket::store::Environment;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is asked of the server.
#[derive(Debug, Clone)]
pub enum Request {
    Get(String, Option<Range<u64>>, Option<Tag>),
    PutNew(String, Bytes),
    PutIf(String, Option<Tag>, Bytes),
    Delete(String),
    DeleteIf(String, Tag),
    List { prefix: String, after: Option<String>, folders: bool, limit: usize },
    Sleep,
}

/// What it answers.
#[derive(Debug, Clone)]
pub enum Answer {
    Got(Got),
    Put(Put),
    Done(bool),
    Page(Page),
}

/// A request under way.
struct Pending {
    task: usize,
    request: Request,
    answer: Option<Answer>,
    reply: oneshot::Sender<Answer>,
}

/// The server, and all that is known of what happened.
pub struct World {
    pub rng: SmallRng,
    pub keys: BTreeMap<String, Found>,
    pending: Vec<Pending>,
    /// Requests that will take effect once more.
    late: Vec<Request>,
    /// Intents that there ever were: no request takes effect so late that one is made again.
    intents: BTreeSet<String>,
    pub steps: u64,
    /// Milliseconds that passed beside steps.
    skipped: u64,
    /// Blobs that were written where their operation was closed already: only a full cycle finds them.
    pub strays: BTreeSet<String>,
    /// Which task drew a number.
    pub drawn: HashMap<Id, usize>,
    pub checker: Checker,
    /// How often requests lose their answer, or are repeated: in thousandths.
    pub faults: u32,
    pub trace: std::collections::VecDeque<String>,
    /// What went wrong first.
    pub failure: Option<String>,
}

pub type Shared = Arc<Mutex<World>>;

pub fn lock(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds that a step takes.
pub const STEP: u64 = 20_000;

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            rng: SmallRng::seed_from_u64(seed),
            keys: BTreeMap::new(),
            pending: Vec::new(),
            late: Vec::new(),
            intents: BTreeSet::new(),
            steps: 0,
            skipped: 0,
            strays: BTreeSet::new(),
            drawn: HashMap::new(),
            checker: Checker::default(),
            faults: 60,
            trace: std::collections::VecDeque::new(),
            failure: None,
        }
    }

    /// The time in milliseconds since 1970 UTC.
    pub fn millis(&self) -> u64 {
        1_700_000_000_000 + self.steps * STEP + self.skipped
    }

    /// Lets time pass.
    pub fn skip(&mut self, millis: u64) {
        self.skipped += millis;
    }

    pub fn note(&mut self, what: impl FnOnce() -> String) {
        if self.trace.len() == 20_000 {
            self.trace.pop_front();
        }
        let line = format!("{:6} {}", self.steps, what());
        self.trace.push_back(line);
    }

    fn found(&self, bytes: Bytes) -> Found {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in &bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let len = bytes.len() as u64;
        Found { bytes: bytes.into(), len, tag: Tag(format!("{hash:016x}")), date: self.millis() }
    }

    fn send(&mut self, task: usize, request: Request) -> oneshot::Receiver<Answer> {
        let (reply, receiver) = oneshot::channel();
        self.pending.push(Pending { task, request, answer: None, reply });
        receiver
    }

    /// Forgets the requests of a task that died; those that were sent may take effect.
    pub fn died(&mut self, task: usize) {
        let (own, others) =
            std::mem::take(&mut self.pending).into_iter().partition(|p| p.task == task);
        self.pending = others;
        let own: Vec<Pending> = own;
        for pending in own.into_iter().filter(|p| p.answer.is_none()) {
            if self.rng.random_bool(0.5) {
                self.effect(pending.request);
            }
        }
    }

    /// Ends all faults, and lets what is late take effect.
    pub fn settle(&mut self) {
        self.faults = 0;
        for request in std::mem::take(&mut self.late) {
            self.effect(request);
        }
    }

    /// Lets one event happen. Returns the task that has an answer now.
    pub fn event(&mut self, weight: impl Fn(usize) -> u32) -> Option<usize> {
        self.steps += 1;
        if !self.late.is_empty() && self.rng.random_bool(0.03) {
            let at = self.rng.random_range(0..self.late.len());
            let request = self.late.swap_remove(at);
            self.note(|| format!("late {request:?}"));
            self.effect(request);
            return None;
        }
        let total: u32 = self.pending.iter().map(|p| weight(p.task)).sum();
        if total == 0 {
            return None;
        }
        let mut chosen = self.rng.random_range(0..total);
        let at = self.pending.iter().position(|p| {
            let own = weight(p.task);
            let here = chosen < own;
            chosen = chosen.saturating_sub(own);
            here
        })?;
        if self.pending[at].answer.is_none() {
            let request = self.pending[at].request.clone();
            let task = self.pending[at].task;
            let answer = self.effect(request.clone());
            self.note(|| format!("task {task}: {} -> {}", shown(&request), told(&answer)));
            let answer = self.spoil(&request, answer);
            self.pending[at].answer = Some(answer);
            return None;
        }
        let pending = self.pending.swap_remove(at);
        if let Some(answer) = pending.answer {
            drop(pending.reply.send(answer));
        }
        Some(pending.task)
    }

    /// Loses answers, and notes requests to be repeated.
    fn spoil(&mut self, request: &Request, answer: Answer) -> Answer {
        let again = match request {
            Request::PutIf(key, expected, _) => expected.is_some() || key.starts_with("i/"),
            Request::Delete(_) | Request::PutNew(..) => true,
            _ => false,
        };
        if again && self.rng.random_ratio(self.faults, 1000) {
            self.late.push(request.clone());
        }
        match answer {
            Answer::Put(_) if self.rng.random_ratio(self.faults, 1000) => {
                Answer::Put(Put::Unknown("the answer was lost".into()))
            }
            Answer::Put(Put::Done(_)) if self.rng.random_ratio(self.faults, 1000) => {
                Answer::Put(Put::NotDone)
            }
            Answer::Done(true)
                if matches!(request, Request::DeleteIf(..))
                    && self.rng.random_ratio(self.faults, 1000) =>
            {
                Answer::Done(false)
            }
            answer => answer,
        }
    }

    fn effect(&mut self, request: Request) -> Answer {
        match request {
            Request::Get(key, range, unless) => {
                Answer::Got(read(self.keys.get(&key), range, unless.as_ref()))
            }
            Request::PutNew(key, bytes) => {
                let found = self.found(bytes);
                if !self.is_open(&key) {
                    self.strays.insert(key.clone());
                }
                self.keys.insert(key, found);
                Answer::Done(true)
            }
            Request::PutIf(key, expected, bytes) => Answer::Put(self.put_if(key, expected, bytes)),
            Request::Delete(key) => {
                self.keys.remove(&key);
                self.deleted(&key);
                Answer::Done(true)
            }
            Request::DeleteIf(key, tag) => {
                let same = self.keys.get(&key).is_some_and(|found| found.tag == tag);
                if same {
                    self.keys.remove(&key);
                    self.deleted(&key);
                }
                Answer::Done(same)
            }
            Request::List { prefix, after, folders, limit } => {
                Answer::Page(list(&self.keys, &prefix, after.as_deref(), folders, limit))
            }
            Request::Sleep => Answer::Done(true),
        }
    }

    /// Whether the operation of a blob has an open intent.
    fn is_open(&self, blob: &str) -> bool {
        let intent = keys::parse_blob(blob).map(|id| keys::intent(id.operation));
        let found = intent.and_then(|key| self.keys.get(&key));
        let intent = found.map(|found| Intent::decode(&found.bytes.whole(), blob));
        matches!(intent, Some(Ok(Intent { state: IntentState::Open, .. })))
    }

    fn put_if(&mut self, key: String, expected: Option<Tag>, bytes: Bytes) -> Put {
        if self.keys.get(&key).map(|found| &found.tag) != expected.as_ref() {
            return Put::NotDone;
        }
        if expected.is_none() && key.starts_with("i/") && !self.intents.insert(key.clone()) {
            return Put::NotDone;
        }
        let found = self.found(bytes);
        let tag = found.tag.clone();
        self.keys.insert(key.clone(), found);
        if key.starts_with("n/") {
            let failed = self.checker.wrote(&self.keys, &key, self.steps, self.millis());
            self.failed(failed);
        }
        Put::Done(tag)
    }

    fn deleted(&mut self, key: &str) {
        let failed = self.checker.deleted(key, self.steps, self.millis());
        self.failed(failed);
    }

    pub fn failed(&mut self, failed: std::result::Result<(), String>) {
        if let Err(what) = failed {
            self.failure.get_or_insert(what);
        }
    }
}

fn shown(request: &Request) -> String {
    match request {
        Request::PutNew(key, bytes) => format!("PutNew {key} {} bytes", bytes.len()),
        Request::PutIf(key, tag, bytes) => {
            let what = crate::check::summary(key, bytes);
            format!("PutIf {key} {:?} {what}", tag.as_ref().map(|tag| &tag.0[..4]))
        }
        other => format!("{other:?}"),
    }
}

fn told(answer: &Answer) -> String {
    match answer {
        Answer::Got(Got::Found(found)) => format!("{} {} bytes", &found.tag.0[..4], found.len),
        Answer::Page(page) => {
            format!("{:?}", page.keys.iter().map(|listed| &listed.key).collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn read(found: Option<&Found>, range: Option<Range<u64>>, unless: Option<&Tag>) -> Got {
    let Some(found) = found else { return Got::Absent };
    if Some(&found.tag) == unless {
        return Got::Same;
    }
    let range = range.unwrap_or(0..found.len);
    let end = range.end.min(found.len);
    let bytes = found.bytes.whole().slice(range.start as usize..end as usize);
    Got::Found(Found { bytes: bytes.into(), ..found.clone() })
}

fn list(
    keys: &BTreeMap<String, Found>,
    prefix: &str,
    after: Option<&str>,
    folders: bool,
    limit: usize,
) -> Page {
    let mut page = Page::default();
    assert!(!folders, "the simulation lists no folders");
    for (key, found) in
        keys.range(prefix.to_owned()..).filter(|(key, _)| Some(key.as_str()) > after)
    {
        if !key.starts_with(prefix) {
            break;
        }
        if page.keys.len() == limit.min(7) {
            page.next = page.keys.last().map(|listed: &Listed| listed.key.clone());
            break;
        }
        let Found { len, tag, date, .. } = found.clone();
        page.keys.push(Listed { key: key.clone(), len, tag, date });
    }
    page
}

/// The bucket as one task sees it: its time, its chance, its requests.
pub struct Client {
    pub world: Shared,
    pub task: usize,
    /// By how many milliseconds its clock is slow.
    pub slow: u64,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "task {}", self.task)
    }
}

impl Client {
    async fn ask(&self, request: Request) -> Result<Answer> {
        let receiver = lock(&self.world).send(self.task, request);
        receiver.await.map_err(|_| Error::Cancelled)
    }
}

fn strange<T>(answer: &Answer) -> Result<T> {
    Err(Error::Invalid(format!("the simulation answered {answer:?}")))
}

#[async_trait]
impl Backend for Client {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        match self.ask(Request::Get(key.into(), range, unless.cloned())).await? {
            Answer::Got(got) => Ok(got),
            other => strange(&other),
        }
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.ask(Request::PutNew(key.into(), bytes)).await.map(drop)
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        match self.ask(Request::PutIf(key.into(), expected.cloned(), bytes)).await? {
            Answer::Put(put) => Ok(put),
            other => strange(&other),
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.ask(Request::Delete(key.into())).await.map(drop)
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        match self.ask(Request::DeleteIf(key.into(), tag.clone())).await? {
            Answer::Done(done) => Ok(done),
            other => strange(&other),
        }
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        match self.ask(Request::List { prefix, after, folders, limit }).await? {
            Answer::Page(page) => Ok(page),
            other => strange(&other),
        }
    }

    fn features(&self) -> Features {
        Features { delete_if: true }
    }
}

#[async_trait]
impl Environment for Client {
    fn now(&self) -> Duration {
        Duration::from_millis(lock(&self.world).millis().saturating_sub(self.slow))
    }

    fn draw(&self) -> Result<Id> {
        let mut world = lock(&self.world);
        let id = Id(world.rng.random());
        world.drawn.insert(id, self.task);
        Ok(id)
    }

    async fn sleep(&self, _time: Duration) {
        drop(self.ask(Request::Sleep).await);
    }
}
