//! The exhaustive engine: every order of the requests of few processes.
//!
//! Owns: [`Case`], what there is at the beginning, and the search of all that can come of it.

use crate::bucket::{Bucket, Late, Request};
use crate::checks;
use crate::faults::{Fate, deliver, fates, step};
use crate::process::{Process, Script};
use crate::record::{Blob, Blobs, Intent, Name, Op, Record, Tag};
use crate::rules::{Mutation, Setting};
use stateright::{Checker, Model, Property};
use std::sync::Arc;

/// An object that is there at the beginning.
#[derive(Debug, Clone, Copy)]
pub struct Object {
    pub name: Name,
    /// Who wrote its blob, which has number 0.
    pub op: Op,
    pub shared: bool,
    /// The blob is retired, and the object deleted.
    pub gone: bool,
    /// It has blobs 0 and 1, which lie below its node, blob 2.
    pub tree: bool,
}

/// A small case.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub objects: &'static [Object],
    /// Intents to write that nobody removed: operation and target.
    pub intents: &'static [(Op, Name)],
    pub scripts: &'static [Script],
    /// Steps taken before the search begins: which process, how many, with which fate.
    pub before: &'static [(usize, usize, Fate)],
    /// How many requests may have a fate.
    pub faults: u8,
    pub recent: usize,
    /// In each state: everybody dies, and gc alone leaves nothing.
    pub silence: bool,
}

impl Case {
    /// A case without objects, faults and a beginning.
    pub const fn new(name: &'static str, scripts: &'static [Script]) -> Self {
        Self {
            name,
            objects: &[],
            intents: &[],
            scripts,
            before: &[],
            faults: 0,
            recent: 2,
            silence: false,
        }
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Found {
    /// States that differ.
    pub states: usize,
    /// Requests of the longest way.
    pub depth: usize,
    /// Whether all were tried.
    pub complete: bool,
    /// What went wrong, and the steps to it.
    pub wrong: Option<(String, Vec<String>)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct World {
    bucket: Bucket,
    processes: Vec<Arc<Process>>,
    faults: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Step(usize, Fate),
    Late(usize),
}

struct Search {
    case: Case,
    setting: Setting,
}

impl Search {
    fn begin(&self) -> World {
        let mut bucket = Bucket::default();
        for object in self.case.objects {
            let mut blobs = Blobs::from([Blob(object.op, 0)]);
            if object.tree {
                let node = Blob(object.op, 2);
                blobs.insert(Blob(object.op, 1));
                bucket.blobs.extend(&blobs);
                bucket.nodes.insert(node, std::mem::replace(&mut blobs, [node.whole()].into()));
            }
            bucket.blobs.extend(blobs.iter().map(|entry| entry.key()));
            bucket.applied.insert(object.op);
            let tag = Tag(object.op, u16::from(object.name.0));
            let mut record = Record { recent: vec![object.op], ..Record::placeholder(tag) };
            (record.gone, record.shared) = (object.gone, object.shared);
            let named = if object.gone { &mut record.retired } else { &mut record.live };
            *named = blobs;
            bucket.records.insert(object.name, (tag, Arc::new(record)));
        }
        for (op, target) in self.case.intents {
            let tag = Tag(*op, u16::MAX);
            bucket.intents.insert(*op, Intent::open(tag, *target, None));
        }
        let scripts = (0..).zip(self.case.scripts);
        let mut processes: Vec<Process> =
            scripts.map(|(i, script)| Process::new(i, script.clone(), &self.setting)).collect();
        for (process, steps, fate) in self.case.before {
            for _ in 0..*steps {
                step(&mut bucket, &mut processes[*process], *fate, &self.setting);
            }
        }
        let processes = processes.into_iter().map(Arc::new).collect();
        World { bucket, processes, faults: self.case.faults }
    }

    /// What is wrong in this state.
    fn wrong(&self, world: &World) -> Result<(), String> {
        checks::now(&world.bucket)?;
        for process in &world.processes {
            checks::outcomes(&world.bucket, process)?;
            checks::held(&world.bucket, process)?;
        }
        if self.case.silence {
            checks::left(&mut world.bucket.clone(), &self.setting, &mut |_| {})?;
        }
        Ok(())
    }

    /// Whether a late request can still do something. Tags do not come back, as rule 1 says.
    fn may_act(&self, bucket: &Bucket, late: &Late) -> bool {
        let (found, base) = match &late.request {
            Request::PutIf(put) => (bucket.records.get(&put.name).map(|(tag, _)| *tag), put.base),
            Request::RemoveIf(name, tag) => (bucket.records.get(name).map(|(tag, _)| *tag), *tag),
            Request::PutIntentIf(op, base, _) => {
                (bucket.intents.get(op).map(|intent| intent.tag), Some(*base))
            }
            _ => return true,
        };
        let breaks_rule_1 = [Mutation::R01Create, Mutation::R01Rewrite, Mutation::R12Plain];
        base.is_none() || found == base || breaks_rule_1.iter().any(|m| self.setting.lacks(*m))
    }
}

impl Model for Search {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.begin()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (index, process) in world.processes.iter().enumerate() {
            let Some(request) = &process.request else { continue };
            actions.push(Action::Step(index, Fate::Normal));
            if world.faults > 0 {
                let fates = fates(process, request).iter();
                // Which is two at once.
                let fates = fates.filter(|fate| **fate != Fate::RepeatedUnanswered);
                actions.extend(fates.map(|fate| Action::Step(index, *fate)));
            }
        }
        actions.extend((0..world.bucket.late.len()).map(Action::Late));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Step(index, fate) => {
                let process = Arc::make_mut(&mut next.processes[index]);
                step(&mut next.bucket, process, fate, &self.setting);
                next.faults -= u8::from(fate != Fate::Normal);
            }
            Action::Late(index) => drop(deliver(&mut next.bucket, index, &self.setting)),
        }
        let mut late = std::mem::take(&mut next.bucket.late);
        late.retain(|late| self.may_act(&next.bucket, late));
        next.bucket.late = late;
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("right", |search: &Self, world| search.wrong(world).is_ok())]
    }
}

/// In which order a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Needs little memory.
    Depth,
    /// Finds a shortest way first.
    Breadth,
}

/// Tries all. `most` ends a search that has made this many requests.
pub fn search(case: Case, broken: Option<Mutation>, order: Order, most: usize) -> Found {
    let setting = Setting { broken, recent: case.recent, sends: 2, tries: 2, page: 1000 };
    let builder = Search { case, setting }.checker().threads(1).target_state_count(most);
    match order {
        Order::Depth => found(&builder.spawn_dfs().join(), most),
        Order::Breadth => found(&builder.spawn_bfs().join(), most),
    }
}

fn found(checker: &impl Checker<Search>, most: usize) -> Found {
    let wrong = checker.discovery("right").map(|path| {
        let model = checker.model();
        let why = model.wrong(path.last_state()).err().unwrap_or_default();
        let steps = path.into_vec().into_iter();
        (why, steps.filter_map(|(world, action)| Some(line(&world, action?))).collect())
    });
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    Found { states, depth, complete: checker.state_count() < most, wrong }
}

/// One step as people read it.
fn line(world: &World, action: Action) -> String {
    match action {
        Action::Step(index, fate) => {
            let process = &world.processes[index];
            let script = &process.script;
            let request = process.request.as_ref();
            request
                .map_or_else(String::new, |r| format!("{:?} {script:?} {fate:?} {r:?}", process.op))
        }
        Action::Late(index) => format!("late: {:?}", world.bucket.late.get(index)),
    }
}
