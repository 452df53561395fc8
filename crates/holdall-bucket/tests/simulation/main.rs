//! The real code of bucket stores against a server that delays, loses and repeats, by seed.
//!
//! `HOLDALL_BUCKET_SEEDS=A..B` runs other seeds, `HOLDALL_BUCKET_TRACE=1` prints what happened before a
//! failure.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod check;
mod holds;
mod tasks;
mod world;

use check::{Content, Version};
use futures::task::noop_waker;
use holdall::Error;
use holdall_bucket::BucketStore;
use holdall_bucket::format::{Id, Sizes, keys};
use holdall_bucket::store::Options;
use rand::Rng;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tasks::{NAMES, Outcome, Task};
use world::{Client, Shared, World, lock};

/// Steps of a run before its end.
const STEPS: u64 = 3000;
/// Tasks at once.
const TOGETHER: usize = 8;

/// Small sizes, so that lists overflow and trees grow. Most seeds have no grace, so that every race can
/// happen; in the others intents are renewed, and clients stall for longer than the grace.
fn sizes(seed: u64) -> Sizes {
    let grace = if seed % 4 == 3 { GRACE } else { 0 };
    Sizes { embedded: 64, segment: 256, slices: 8, fanout: 4, retired: 4, grace }
}

/// A grace of 75 steps, in seconds.
const GRACE: u64 = 1500;

struct Running {
    number: usize,
    task: Task,
    began: u64,
    weight: u32,
    future: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

/// A task that ended.
struct Ended {
    task: Task,
    began: u64,
    step: u64,
    outcome: Option<Outcome>,
}

struct Run {
    world: Shared,
    running: Vec<Running>,
    started: usize,
    profile: u64,
    /// Whether two collectors ran at once. What one keeps for another's sake the other may forget: a
    /// full cycle finds it.
    overlapped: bool,
    ended: Vec<Ended>,
    /// Handles that several tasks use, as programs do, so that what is at hand is old sometimes.
    stores: Arc<Mutex<Vec<BucketStore>>>,
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(&noop_waker()))
}

/// Runs a future while nothing else does.
fn alone<T>(world: &Shared, future: impl Future<Output = T> + Send + 'static) -> T
where
    T: 'static,
{
    let mut future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    for _ in 0..1_000_000 {
        if let Poll::Ready(value) = poll(&mut future) {
            return value;
        }
        lock(world).event(|_| 1);
    }
    panic!("a task alone does not end");
}

fn open(world: &Shared, task: usize) -> BucketStore {
    let client = Arc::new(Client { world: world.clone(), task, slow: 0 });
    let options = Options::default().environment(client.clone());
    alone(world, options.open(client)).unwrap()
}

impl Run {
    fn new(seed: u64) -> Self {
        let world: Shared = Arc::new(Mutex::new(World::new(seed)));
        let client = Arc::new(Client { world: world.clone(), task: 0, slow: 0 });
        let options = Options::default().sizes(sizes(seed)).environment(client.clone());
        let faults = std::mem::replace(&mut lock(&world).faults, 0);
        alone(&world, options.create(client)).unwrap();
        lock(&world).faults = faults;
        lock(&world).checker.grace = sizes(seed).grace * 1000;
        Self {
            world,
            running: Vec::new(),
            started: 0,
            profile: seed / 4 % 4,
            overlapped: false,
            ended: vec![],
            stores: Arc::default(),
        }
    }

    fn client(&self, task: usize, slow: u64) -> Arc<Client> {
        Arc::new(Client { world: self.world.clone(), task, slow })
    }

    fn start(&mut self) {
        self.started += 1;
        let number = self.started;
        let (task, own, weight) = {
            let mut world = lock(&self.world);
            let task = Task::draw(&mut world.rng, self.profile);
            let weight = [20, 20, 20, 100, 400, 1][world.rng.random_range(0..6)];
            world.note(|| format!("task {number} of weight {weight}: {task:?}"));
            (task, world.rng.random_range(0..6), weight)
        };
        // The numbers that a task draws tell whose a change is, so a handle is a task's own; a
        // sixth of them begin with what others had at hand.
        let (client, stores) = (self.client(number, task.slow()), self.stores.clone());
        let world = self.world.clone();
        let began = lock(&self.world).steps;
        let work = task.clone();
        let future = Box::pin(async move {
            let options = Options::default().environment(client.clone());
            let mut store = match options.open(client).await {
                Ok(store) => store,
                Err(e) => return Outcome::Failed(e),
            };
            {
                let mut stores = stores.lock().unwrap_or_else(PoisonError::into_inner);
                if own == 0
                    && let Some(old) = stores.pop()
                {
                    store.take_at_hand_of(&old);
                }
                stores.push(store.clone());
            }
            work.run(store, &world).await
        });
        let collectors = self.running.iter().filter(|r| matches!(r.task, Task::Collect(_)));
        self.overlapped |= collectors.count() > 0 && matches!(task, Task::Collect(_));
        self.running.push(Running { number, task, began, weight, future });
        self.turn(number);
    }

    /// Lets a task go on that has an answer.
    fn turn(&mut self, number: usize) {
        let Some(at) = self.running.iter().position(|r| r.number == number) else { return };
        if let Poll::Ready(outcome) = poll(&mut self.running[at].future) {
            let Running { task, began, number, .. } = self.running.swap_remove(at);
            let mut world = lock(&self.world);
            world.note(|| format!("task {number} ends: {outcome:?}"));
            let step = world.steps;
            drop(world);
            self.end(number, Ended { task, began, step, outcome: Some(outcome) });
        }
    }

    fn end(&mut self, number: usize, ended: Ended) {
        while self.ended.len() <= number {
            let (task, began, step) = (Task::Get(0), 0, 0);
            self.ended.push(Ended { task, began, step, outcome: None });
        }
        self.ended[number] = ended;
    }

    fn kill(&mut self, at: usize) {
        let Running { task, began, number, future, .. } = self.running.swap_remove(at);
        drop(future);
        let mut world = lock(&self.world);
        world.note(|| format!("task {number} dies"));
        world.died(number);
        let step = world.steps;
        drop(world);
        self.end(number, Ended { task, began, step, outcome: None });
    }

    fn run(&mut self) -> Result<(), String> {
        while lock(&self.world).steps < STEPS {
            let (start, kill) = {
                let mut world = lock(&self.world);
                (world.rng.random_bool(0.3), world.rng.random_bool(0.002))
            };
            if self.running.len() < TOGETHER && start || self.running.is_empty() {
                self.start();
            }
            if kill && !self.running.is_empty() {
                let at = lock(&self.world).rng.random_range(0..self.running.len());
                self.kill(at);
            }
            self.event();
            self.sound()?;
        }
        while let Some(last) = self.running.len().checked_sub(1) {
            if lock(&self.world).rng.random_bool(0.3) {
                self.kill(last);
                continue;
            }
            let number = self.running[last].number;
            let from = lock(&self.world).steps;
            while self.running.iter().any(|r| r.number == number) {
                self.event();
                self.sound()?;
                if lock(&self.world).steps > from + 100_000 {
                    return Err(format!(
                        "task {number} does not end: {:?}",
                        self.running[last].task
                    ));
                }
            }
        }
        self.collect_all()?;
        self.judge()
    }

    /// Objects that tasks wrote again where little of their blobs was named.
    fn compacted(&self) -> u64 {
        let outcomes = self.ended.iter().filter_map(|ended| ended.outcome.as_ref());
        outcomes.map(|outcome| if let Outcome::Compacted(n) = outcome { *n } else { 0 }).sum()
    }

    fn event(&mut self) {
        let weights: Vec<(usize, u32)> =
            self.running.iter().map(|r| (r.number, r.weight)).collect();
        let weight =
            |task| weights.iter().find(|(number, _)| *number == task).map_or(1, |(_, w)| *w);
        let turn = lock(&self.world).event(weight);
        if let Some(number) = turn {
            self.turn(number);
        }
    }

    fn sound(&self) -> Result<(), String> {
        lock(&self.world).failure.clone().map_or(Ok(()), Err)
    }

    /// Collects alone until nothing is left to do, and looks for what is left.
    fn collect_all(&mut self) -> Result<(), String> {
        lock(&self.world).settle();
        for turn in 0..9 {
            let number = 1_000_000 + turn;
            let store = open(&self.world, number);
            let options = holdall_bucket::CollectOptions { full: turn == 8, alone: false };
            lock(&self.world).skip(GRACE * 1000);
            let collected =
                alone(&self.world, async move { store.collect(options, &mut |_| {}).await });
            self.sound()?;
            collected.map_err(|e| format!("collecting alone: {e}"))?;
            if turn == 8 || (turn == 7 && !self.overlapped) {
                self.is_clean(turn == 8)?;
            }
        }
        Ok(())
    }

    /// Sees that nothing is there but what records name; strays, if no full cycle ran.
    fn is_clean(&self, full: bool) -> Result<(), String> {
        let world = lock(&self.world);
        let named = world.checker.named();
        for (key, found) in &world.keys {
            let kept = match keys::parse_blob(key) {
                Some(blob) => named.contains(&blob) || (!full && world.strays.contains(key)),
                None => !key.starts_with(keys::INTENTS) && found.len % 8 < 4 || !key.contains('/'),
            };
            if !kept {
                return Err(format!("{key} is left after collecting, full: {full}"));
            }
        }
        Ok(())
    }

    /// Looks at all changes and outcomes together.
    fn judge(&self) -> Result<(), String> {
        let world = lock(&self.world);
        let key = |name: usize| keys::record(holdall::DEFAULT_COLLECTION, NAMES[name]).unwrap();
        let empty = Vec::new();
        let history = |name: usize| -> &Vec<Version> {
            world.checker.history.get(&key(name)).unwrap_or(&empty)
        };
        let contents = |name: usize| -> Vec<Content> {
            history(name).iter().map(|version| version.content.clone()).collect()
        };
        let mut made = vec![Vec::new(); self.ended.len()];
        for (name, shown) in NAMES.iter().enumerate() {
            let mut before: Content = None;
            for version in history(name) {
                let Version { operation, content, step } = version;
                if *operation != Id::default() {
                    let number = world.drawn.get(operation).copied().unwrap_or(0);
                    let ended = self.ended.get(number).ok_or("a change by nobody")?;
                    if !ended.task.explains(name, &before, content, &contents) {
                        return Err(format!(
                            "at {step} task {number} {:?} changed {shown} from {before:?} to {content:?}",
                            ended.task
                        ));
                    }
                    made[number].push((*step, *operation));
                }
                before.clone_from(content);
            }
        }
        for (number, ended) in self.ended.iter().enumerate() {
            self.judge_one(number, ended, &made[number], &|name| history(name).clone())?;
        }
        Ok(())
    }

    fn judge_one(
        &self,
        number: usize,
        ended: &Ended,
        made: &[(u64, Id)],
        history: &dyn Fn(usize) -> Vec<Version>,
    ) -> Result<(), String> {
        let Ended { task, began, step, outcome } = ended;
        let told = || {
            format!("task {number} {task:?}, steps {began} to {step}: {outcome:?}, made {made:?}")
        };
        let most = if task.fails_whole() { 1 } else { 2 };
        if made.len() > most {
            return Err(format!("changed twice: {}", told()));
        }
        let Some(outcome) = outcome else { return Ok(()) };
        match outcome {
            Outcome::Changed(version) => {
                let inside = |at: u64| (*began..=*step).contains(&at);
                if made.iter().any(|(at, _)| !inside(*at)) {
                    return Err(format!("changed at another time: {}", told()));
                }
                if version.is_some_and(|v| !made.iter().any(|(_, own)| *own == v.operation()))
                    && !matches!(task, Task::Copy(a, b) if a == b)
                {
                    return Err(format!("an acknowledged change is lost: {}", told()));
                }
            }
            Outcome::Read(name, content) => {
                if !tasks::was_there(&history(*name), *began, content) {
                    return Err(format!("read what was not there: {}", told()));
                }
            }
            Outcome::Listed(from, infos) => {
                for (number, name) in tasks::NAMES.iter().enumerate() {
                    let listed = infos.iter().find(|info| info.name == *name);
                    if !tasks::was_listed(&history(number), *from, listed) {
                        return Err(format!("listed what was not there: {}", told()));
                    }
                }
            }
            Outcome::Nothing
            | Outcome::Compacted(_)
            | Outcome::Failed(Error::OutcomeUnknown { .. }) => {}
            Outcome::Failed(_) if made.is_empty() || !task.fails_whole() => {}
            Outcome::Failed(_) => return Err(format!("failed and changed: {}", told())),
        }
        if let (Task::Compact, Outcome::Failed(_)) = (task, outcome) {
            return Err(format!("one object ends it for all: {}", told()));
        }
        if let Outcome::Failed(e) = outcome
            && e.is_corrupt()
            && !matches!(task, Task::Collect(_))
        {
            return Err(format!("damage: {}", told()));
        }
        Ok(())
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("HOLDALL_BUCKET_SEEDS") else { return 1..61 };
    let (from, to) = text.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn many_processes_change_a_few_names() {
    let (mut steps, mut apart, mut compacted, mut failed) = (0, 0, 0, Vec::new());
    let count = seeds().end - seeds().start;
    for seed in seeds() {
        let mut run = Run::new(seed);
        let result = run.run();
        steps += lock(&run.world).steps;
        apart += u64::from(!run.overlapped);
        compacted += run.compacted();
        if let Err(what) = result {
            if std::env::var_os("HOLDALL_BUCKET_TRACE").is_some() {
                lock(&run.world).trace.iter().for_each(|line| println!("{line}"));
            }
            println!("seed {seed}: {what}");
            failed.push(seed);
        }
    }
    println!(
        "{steps} steps, {apart} seeds without two collectors at once, {compacted} objects compacted, \
         {} seeds failed: {failed:?}",
        failed.len()
    );
    assert!(failed.is_empty(), "seeds {failed:?}");
    // One seed that is played again proves nothing of that.
    let enough = count < 60 || compacted * 4 >= count;
    assert!(enough, "{compacted} objects were compacted in {count} seeds, too few");
}

/// Each rule that is taken away must be noticed by some seed.
#[cfg(holdall_mutations)]
#[test]
#[ignore = "it runs alone: `cargo test --test simulation -- --ignored`, built with mutations"]
fn each_rule_that_is_taken_away_is_noticed() {
    use holdall_bucket::mutation::{ALL, activate};
    let only = std::env::var("HOLDALL_BUCKET_MUTATION").ok();
    let mut unnoticed = Vec::new();
    for (mutation, name) in ALL.into_iter().filter(|(_, n)| only.as_deref().is_none_or(|o| o == *n))
    {
        activate(Some(mutation));
        let found = seeds().find_map(|seed| {
            let mut run = Run::new(seed);
            let what = run.run().err()?;
            if std::env::var_os("HOLDALL_BUCKET_TRACE").is_some() {
                lock(&run.world).trace.iter().for_each(|line| println!("{line}"));
            }
            Some((seed, what))
        });
        activate(None);
        match found {
            Some((seed, what)) => {
                let what: String = what.chars().take(110).collect();
                println!("{name:12} seed {seed}: {what}");
            }
            None => unnoticed.push(name),
        }
    }
    assert!(unnoticed.is_empty(), "nothing notices {unnoticed:?}");
}
