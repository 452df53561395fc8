//! The random engine: many processes on few names, by seed.
//!
//! Owns: what a seed draws, and the run of it. A run ends in silence: some processes finish, the
//! others die, and gc alone goes on.

use crate::bucket::{Bucket, NAMES, Request};
use crate::checks;
use crate::drawn::{Drawn, Mix};
use crate::faults::{Fate, deliver, fates, step};
use crate::process::{Outcome, Process, Script};
use crate::record::Op;
use crate::rules::{Mutation, Setting};
use crate::tally::Tally;
use crate::tree::Plan;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Steps before the silence.
const STEPS: usize = 700;
/// Most processes at once.
const ACTIVE: usize = 8;
/// Steps that a process may take in the silence: more than any script has.
const LAST_STEPS: usize = 2000;

struct Run {
    rng: SmallRng,
    setting: Setting,
    drawn: Drawn,
    /// Of 10 steps, how many are by the process that made the one before.
    sticks: u32,
    last: Option<Op>,
    /// Of 1,000 requests, how many have a fate.
    faults: u32,
    bucket: Bucket,
    active: Vec<(Process, f64)>,
    finished: Vec<Process>,
    started: u16,
    tally: Tally,
    /// Kept if asked for.
    trace: Option<Vec<String>>,
}

/// One run.
pub fn run(seed: u64, broken: Option<Mutation>) -> Result<Tally, String> {
    let mut run = Run::draw(seed, broken);
    run.play()?;
    Ok(run.tally)
}

/// The steps of the same run, and what went wrong in it.
pub fn trace(seed: u64) -> (Vec<String>, Option<String>) {
    let mut run = Run::draw(seed, None);
    run.trace = Some(Vec::new());
    let wrong = run.play().err();
    (run.trace.unwrap_or_default(), wrong)
}

impl Run {
    fn draw(seed: u64, broken: Option<Mutation>) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mixes = [Mix::All, Mix::All, Mix::Movers, Mix::Small, Mix::Writers, Mix::Cycles];
        let mix = *mixes.choose(&mut rng).unwrap_or(&Mix::All);
        let setting = Setting {
            broken,
            recent: *[1, 2, 4].choose(&mut rng).unwrap_or(&4),
            sends: rng.random_range(2..6),
            tries: rng.random_range(2..6),
            page: *[1, 2, 1000].choose(&mut rng).unwrap_or(&1000),
        };
        Self {
            setting,
            drawn: Drawn {
                mix,
                names: rng.random_range(2..=NAMES as u8),
                trees: *[0.0, 0.3, 0.8].choose(&mut rng).unwrap_or(&0.3),
            },
            sticks: *[0, 0, 7, 9].choose(&mut rng).unwrap_or(&0),
            last: None,
            faults: *[0, 100, 300].choose(&mut rng).unwrap_or(&300),
            bucket: Bucket::default(),
            active: Vec::new(),
            finished: Vec::new(),
            started: 0,
            tally: Tally { runs: 1, ..Tally::default() },
            trace: None,
            rng,
        }
    }

    fn play(&mut self) -> Result<(), String> {
        for _ in 0..STEPS {
            if self.active.len() < ACTIVE && self.rng.random_bool(0.5) {
                self.begin();
            }
            let Some(index) = self.pick() else { continue };
            if self.rng.random_bool(0.003) {
                let (process, _) = self.active.swap_remove(index);
                self.say(|| format!("{:?} dies", process.op));
                self.tally.crashed += 1;
                continue;
            }
            let fate = self.fate(index);
            self.step(index, fate)?;
            if !self.bucket.late.is_empty() && self.rng.random_bool(0.05) {
                self.deliver()?;
            }
        }
        self.silence()
    }

    /// The process that acts next: the last one again, or by the speed of each.
    fn pick(&mut self) -> Option<usize> {
        let last = self.active.iter().position(|(process, _)| Some(process.op) == self.last);
        if last.is_some() && self.rng.random_ratio(self.sticks, 10) {
            return last;
        }
        let sum: f64 = self.active.iter().map(|(_, speed)| speed).sum();
        let mut at = self.rng.random_range(0.0..sum.max(0.01));
        let picked = self.active.iter().position(|(_, speed)| {
            at -= speed;
            at < 0.0
        })?;
        self.last = Some(self.active[picked].0.op);
        Some(picked)
    }

    /// A process begins. Some are slow, some nearly stand still.
    fn begin(&mut self) {
        let script = self.drawn.script(&mut self.rng);
        let process = Process::new(self.started, script, &self.setting);
        self.say(|| format!("{:?} is {:?}", process.op, process.script));
        self.started += 1;
        let speed = *[1.0, 1.0, 1.0, 5.0, 20.0, 0.05].choose(&mut self.rng).unwrap_or(&1.0);
        self.active.push((process, speed));
    }

    /// What happens to the request of a process.
    fn fate(&mut self, index: usize) -> Fate {
        let (process, _) = &self.active[index];
        let Some(request) = &process.request else { return Fate::Normal };
        let fates = fates(process, request);
        // Reads of gc fail seldom: a cycle ends there.
        let often = if fates == [Fate::Fails] { 5 } else { self.faults };
        let hits = self.faults > 0 && self.rng.random_ratio(often, 1000);
        let fate = if hits { fates.choose(&mut self.rng) } else { None };
        fate.copied().unwrap_or(Fate::Normal)
    }

    fn step(&mut self, index: usize, fate: Fate) -> Result<(), String> {
        let (process, _) = &mut self.active[index];
        let request = process.request.clone();
        let is_there = step(&mut self.bucket, process, fate, &self.setting);
        let op = process.op;
        checks::outcomes(&self.bucket, process)?;
        self.tally.held += u64::from(process.held().is_some());
        if let Some(request) = request {
            self.tally.steps += 1;
            self.say(|| format!("{op:?} {fate:?} {request:?}"));
            self.after(&request)?;
        }
        if !is_there || self.active[index].0.request.is_none() {
            let (process, _) = self.active.swap_remove(index);
            self.finish(process);
        }
        Ok(())
    }

    fn finish(&mut self, process: Process) {
        let ended = process.outcomes;
        self.say(|| format!("{:?} ends: {ended:?}", process.op));
        for outcome in ended.into_iter().flatten() {
            match outcome {
                Outcome::Done => self.tally.done += 1,
                Outcome::Lost => self.tally.lost += 1,
                Outcome::Unknown => self.tally.unknown += 1,
            }
        }
        if let (Script::Tree(plan), Some(Outcome::Done)) = (&process.script, ended[0]) {
            self.tally.trees += u64::from(!matches!(plan, Plan::Join { .. }));
            self.tally.joints += u64::from(matches!(plan, Plan::Join { .. }));
        }
        self.finished.push(process);
    }

    fn after(&mut self, request: &Request) -> Result<(), String> {
        if checks::matters(request) {
            checks::now(&self.bucket)?;
            for (process, _) in &self.active {
                checks::held(&self.bucket, process)?;
            }
        }
        match request {
            Request::DeleteBlob(_) => self.tally.blobs_deleted += 1,
            Request::RemoveIf(..) => self.tally.records_removed += 1,
            _ => {}
        }
        Ok(())
    }

    /// A late request takes effect, also after its process ended.
    fn deliver(&mut self) -> Result<(), String> {
        let index = self.rng.random_range(0..self.bucket.late.len());
        let late = deliver(&mut self.bucket, index, &self.setting);
        self.tally.late += 1;
        self.say(|| format!("late: {:?}", late.request));
        self.after(&late.request)?;
        if let Request::PutIf(put) = &late.request {
            let of = |process: &&Process| put.change.is_some_and(|op| op.0 / 2 == process.op.0 / 2);
            for process in self.finished.iter().filter(of) {
                checks::outcomes(&self.bucket, process)?;
            }
        }
        Ok(())
    }

    /// Half of the processes end; what the others began is left to gc.
    fn silence(&mut self) -> Result<(), String> {
        while let Some((process, speed)) = self.active.pop() {
            if self.rng.random() {
                self.say(|| format!("{:?} dies", process.op));
                continue;
            }
            self.active.push((process, speed));
            let index = self.active.len() - 1;
            let mut steps = 0;
            while self.active.len() > index {
                self.step(index, Fate::Normal)?;
                steps += 1;
                if steps > LAST_STEPS {
                    return Err("a process does not end".into());
                }
            }
        }
        for process in &self.finished {
            checks::outcomes(&self.bucket, process)?;
        }
        let Self { bucket, setting, trace, .. } = self;
        checks::left(bucket, setting, &mut |process| {
            if let Some(trace) = trace {
                trace.push(format!("{:?} alone {:?}", process.op, process.request));
            }
        })
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(line());
        }
    }
}
