//! A process: what it does, how far it is, and what it asks the bucket next.
//!
//! Owns: the way in which straight code becomes steps. What a process does is cut into stages. A
//! stage is a value with all that the code needs from before, and a function that runs from its
//! beginning whenever an answer came: it gets the answers so far, and ends at the first request
//! that has none. So a process is plain data, which can be copied, compared and hashed, and two
//! processes with equal stages and answers have the same future.

use crate::bucket::{Answer, Page, Read, Request};
use crate::commit::Commit;
use crate::gc::Gc;
use crate::hold::Held;
use crate::record::{Class, Intent, Name, Op, Tag};
use crate::rules::{Mutation, Setting};
use crate::tree::Plan;
use crate::{client, commit, full, gc, hold};

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Script {
    /// An object whose bytes are embedded.
    PutSmall(Name),
    /// An object with blobs.
    Put {
        name: Name,
        blobs: u8,
        intent_first: bool,
        renew: bool,
    },
    /// Keeps the blobs whose bit is set; with or without a new one.
    Edit {
        name: Name,
        keep: u8,
        blob: bool,
    },
    Delete(Name),
    Copy {
        from: Name,
        to: Name,
        rename: bool,
    },
    /// Trees, and joints of several sources.
    Tree(Plan),
    /// An editor removes what its object retired.
    Purge(Name),
    /// A reader holds what an object has, for longer if `extends`.
    Hold {
        name: Name,
        extends: bool,
    },
    /// Time passes.
    Clock,
    Gc,
    Full,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// Nothing happened, and nothing will: refused, not found, `Conflict`.
    Lost,
    /// `OutcomeUnknown`.
    Unknown,
}

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Stage {
    Start,
    /// Blobs are written, against this base.
    Blobs(Read, Tag),
    Commit(Commit),
    /// The change of the operation ended; what a rename removes then.
    Finish(Op, Outcome, Option<(Name, Tag)>),
    /// Removes what was copied if it still has this tag.
    Unname(Name, Tag),
    Gc(Box<Gc>),
    /// A reader reads what it holds.
    Held(Held),
    /// It ends its hold.
    Release(Op),
    End,
}

/// Why the code of a stage stops.
#[derive(Debug)]
pub enum Halt {
    /// It waits for the answer to this.
    Ask(Request),
    /// It gives up; no record was written.
    Stop,
}

pub type Asked<T> = Result<T, Halt>;

/// What the code of a stage has: its answers, and new tags.
pub struct Talk<'a> {
    pub setting: &'a Setting,
    pub op: Op,
    pub script: &'a Script,
    answers: std::slice::Iter<'a, Answer>,
    tags: u16,
}

impl Talk<'_> {
    /// A tag that nobody ever had.
    pub fn tag(&mut self) -> Tag {
        self.tags += 1;
        Tag(self.op, self.tags)
    }

    pub fn lacks(&self, mutation: Mutation) -> bool {
        self.setting.lacks(mutation)
    }

    pub fn ask(&mut self, request: impl FnOnce() -> Request) -> Asked<Answer> {
        self.answers.next().cloned().ok_or_else(|| Halt::Ask(request()))
    }

    /// A request that may be sent until an answer comes, as its key is used once.
    pub fn settle(&mut self, request: impl Fn() -> Request) -> Asked<Answer> {
        loop {
            match self.ask(&request)? {
                Answer::Unknown(_) => {}
                answer => return Ok(answer),
            }
        }
    }

    /// The record, and which creates are void.
    pub fn read_at(&mut self, name: Name) -> Asked<(Read, u16)> {
        match self.ask(|| Request::Read(name))? {
            Answer::Record(read, void) => Ok((read, void)),
            // Rule 13.
            _ if self.lacks(Mutation::R13Record) => Ok((None, 0)),
            _ => Err(Halt::Stop),
        }
    }

    pub fn read(&mut self, name: Name) -> Asked<Read> {
        Ok(self.read_at(name)?.0)
    }

    pub fn intent(&mut self, op: Op) -> Asked<Option<Intent>> {
        match self.ask(|| Request::ReadIntent(op))? {
            Answer::Intent(intent) => Ok(intent),
            _ => Err(Halt::Stop),
        }
    }

    pub fn names(&mut self) -> Asked<Vec<(Name, Class, Tag)>> {
        let mut all: Vec<(Name, Class, Tag)> = Vec::new();
        loop {
            let after = all.last().map(|(name, ..)| *name);
            let answer = self.ask(|| Request::ListNames(after))?;
            let Answer::Names(found, page) = answer else { return Err(Halt::Stop) };
            all.extend(found);
            if self.is_end(page, Mutation::R13Names)? {
                return Ok(all);
            }
        }
    }

    pub fn intents(&mut self) -> Asked<Vec<(Op, Intent)>> {
        let mut all: Vec<(Op, Intent)> = Vec::new();
        loop {
            let after = all.last().map(|(op, _)| *op);
            let answer = self.ask(|| Request::ListIntents(after))?;
            let Answer::Intents(found, page) = answer else { return Err(Halt::Stop) };
            all.extend(found);
            if self.is_end(page, Mutation::R13Intents)? {
                return Ok(all);
            }
        }
    }

    /// Rule 13: a listing that broke off ends the cycle.
    fn is_end(&self, page: Page, taken_for_the_end: Mutation) -> Asked<bool> {
        match page {
            Page::More => Ok(false),
            Page::Last => Ok(true),
            Page::Short if self.lacks(taken_for_the_end) => Ok(true),
            Page::Short => Err(Halt::Stop),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub op: Op,
    pub script: Script,
    /// How its change ended, and how the deletion behind a rename.
    pub outcomes: [Option<Outcome>; 2],
    /// What it asks; nothing at its end.
    pub request: Option<Request>,
    stage: Stage,
    answers: Vec<Answer>,
    /// Tags that were drawn before the stage.
    tags: u16,
}

impl Process {
    /// Process number `number` at its beginning.
    pub fn new(number: u16, script: Script, setting: &Setting) -> Self {
        let op = Op(number * 2);
        let (outcomes, answers) = ([None; 2], Vec::new());
        let mut new =
            Self { op, script, outcomes, request: None, stage: Stage::Start, answers, tags: 0 };
        new.advance(setting);
        new
    }

    /// The answer to the request.
    pub fn hear(&mut self, answer: Answer, setting: &Setting) {
        self.answers.push(answer);
        self.advance(setting);
    }

    /// Whether it is one of the collectors, whose reads may fail.
    pub fn collects(&self) -> bool {
        matches!(self.script, Script::Gc | Script::Full)
    }

    /// What it holds.
    pub fn held(&self) -> Option<&Held> {
        if let Stage::Held(held) = &self.stage { Some(held) } else { None }
    }

    fn advance(&mut self, setting: &Setting) {
        loop {
            let (op, tags) = (self.op, self.tags);
            let (script, answers) = (&self.script, self.answers.iter());
            let mut talk = Talk { setting, op, script, answers, tags };
            let next = match &self.stage {
                Stage::End => {
                    self.request = None;
                    return;
                }
                Stage::Start => match self.script {
                    Script::Gc => gc::start(&mut talk),
                    Script::Full => full::run(&mut talk),
                    _ => client::start(&mut talk, &self.script),
                },
                Stage::Blobs(base, intent) => client::blobs(&mut talk, &self.script, base, *intent),
                Stage::Commit(commit) => commit::run(&mut talk, commit),
                Stage::Finish(op, outcome, then) => {
                    client::finish(&mut talk, &self.script, (*op, *outcome), *then)
                }
                Stage::Unname(name, tag) => client::unname(&mut talk, *name, *tag),
                Stage::Gc(gc) => gc::run(&mut talk, gc),
                Stage::Held(held) => {
                    let extends = matches!(self.script, Script::Hold { extends: true, .. });
                    hold::go_on(&mut talk, held, extends)
                }
                Stage::Release(op) => hold::release(&mut talk, *op),
            };
            let tags = talk.tags;
            match next {
                Err(Halt::Ask(request)) => {
                    self.request = Some(request);
                    return;
                }
                Err(Halt::Stop) if self.collects() => self.stage = Stage::End,
                Err(Halt::Stop) => self.go(Stage::Finish(self.op, Outcome::Lost, None)),
                Ok(next) => self.go(next),
            }
            self.tags = tags;
            self.answers.clear();
        }
    }

    fn go(&mut self, next: Stage) {
        if let Stage::Finish(op, outcome, _) = &next {
            self.outcomes[usize::from(op.0 % 2)] = Some(*outcome);
        }
        self.stage = next;
    }
}
