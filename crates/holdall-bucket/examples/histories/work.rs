//! One task of a client: an operation after another, by seed, until the process ends.

mod reads;
mod upkeep;

use crate::Arguments;
use crate::chosen::Chance;
use crate::history::{self, History, now, told};
use crate::units::UNIT;
use holdall::{Attributes, Result};
use holdall_bucket::BucketStore;
use holdall_bucket::store::{ObjectVersion, PutMode, PutOptions};
use rand::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use upkeep::Upkeep;

/// What a task knows of an object: its size in units, and its version.
#[derive(Clone, Copy, Default)]
struct Known {
    units: u64,
    version: Option<ObjectVersion>,
}

/// A task.
pub(crate) struct Worker {
    store: BucketStore,
    history: Arc<History>,
    task: u64,
    chance: Chance,
    known: BTreeMap<String, Known>,
    names: u64,
    grace: u64,
    /// What it does for the whole store, in one of this many steps.
    upkeep: Option<(Upkeep, u32)>,
    /// Nanoseconds after which other names follow; when the first did.
    epoch: u64,
    began: u64,
}

/// Whether no copy is of this name, nor leads to it: every fifth, for those who compact.
fn shares_nothing(name: &str) -> bool {
    name.ends_with(['3', '7'])
}

fn mode_of(only: Option<ObjectVersion>, create: bool) -> PutMode {
    match (only, create) {
        (Some(version), _) => PutMode::Update(version),
        (None, true) => PutMode::Create,
        (None, false) => PutMode::Overwrite,
    }
}

fn shown(version: Option<ObjectVersion>) -> Value {
    version.map_or(Value::Null, |version| json!(version.to_string()))
}

impl Worker {
    pub(crate) fn new(
        store: BucketStore,
        history: Arc<History>,
        arguments: &Arguments,
        task: u64,
    ) -> Result<Self> {
        let (slot, generation) = (arguments.number("slot")?, arguments.number("generation")?);
        let seed = arguments.number("seed")? << 20 ^ slot << 12 ^ generation << 4 ^ task;
        let marker = format!("{slot:x}{task:x}{generation:02x}");
        let (blobs, parts) = (arguments.number("blobs")?, arguments.number("parts")?);
        Ok(Self {
            store,
            history,
            task,
            chance: Chance::new(seed, marker, blobs, parts),
            known: BTreeMap::new(),
            names: arguments.number("names")?,
            grace: arguments.number("grace")?,
            upkeep: Upkeep::of(slot, task),
            epoch: arguments.number("epoch")? * 1_000_000_000,
            began: arguments.number("began")?,
        })
    }

    pub(crate) async fn run(mut self) -> Result<()> {
        loop {
            self.step().await?;
        }
    }

    fn folder(&self) -> String {
        let epoch = (now().saturating_sub(self.began)).checked_div(self.epoch).unwrap_or(0);
        format!("e{epoch}/")
    }

    fn name(&mut self) -> String {
        format!("{}n{:02}", self.folder(), self.chance.random.random_range(0..self.names))
    }

    /// A name that copies may be of or lead to.
    fn shared_name(&mut self) -> String {
        loop {
            let name = self.name();
            if !shares_nothing(&name) {
                return name;
            }
        }
    }

    /// Another name than `of`.
    fn other(&mut self, of: &str) -> String {
        loop {
            let name = self.shared_name();
            if name != of {
                return name;
            }
        }
    }

    fn of(&self, name: &str) -> Known {
        self.known.get(name).copied().unwrap_or_default()
    }

    fn know(&mut self, name: &str, units: u64, version: Option<ObjectVersion>) {
        self.known.insert(name.to_owned(), Known { units, version });
    }

    /// A version that the object had, at times.
    fn only(&mut self, name: &str) -> Option<ObjectVersion> {
        let version = self.of(name).version;
        version.filter(|_| self.chance.one_in(4))
    }

    async fn step(&mut self) -> Result<()> {
        if self.keep_up().await? {
            return Ok(());
        }
        let kind = self.chance.random.random_range(0..100);
        let name = if (72..90).contains(&kind) { self.shared_name() } else { self.name() };
        match kind {
            0..14 => self.put(&name).await,
            14..36 => self.edit(&name).await,
            36..58 => self.get(&name).await,
            58..64 => self.get_range(&name).await,
            64..68 => self.info(&name).await,
            68..70 => self.hold(&name).await,
            70..72 => self.attributes(&name).await,
            72..78 => self.copy(&name).await,
            78..82 => self.copy_range(&name).await,
            82..85 => self.concat(&name).await,
            85..90 => self.rename(&name).await,
            90..96 => self.remove(&name).await,
            96..98 => self.list().await,
            _ => self.get(&name).await,
        }?;
        // Only who reads it next learns what came by a copy.
        if (72..90).contains(&kind) && self.chance.one_in(2) {
            return self.get(&name).await;
        }
        Ok(())
    }

    async fn put(&mut self, name: &str) -> Result<()> {
        let (bytes, content) = self.chance.object();
        let units = bytes.len() as u64 / UNIT;
        let (only, create) = (self.only(name), self.chance.one_in(6));
        let options = PutOptions { mode: mode_of(only, create), ..PutOptions::default() };
        let streamed = self.chance.one_in(3);
        let what = json!({"op": "put", "name": name, "content": content, "only": shown(only),
            "create": only.is_none() && create, "streamed": streamed});
        let call = self.history.call(self.task, what)?;
        let put = match streamed {
            false => self.store.put_with(name, bytes, options).await,
            true => self.stream(name, &bytes, options).await,
        };
        if let Ok(version) = &put {
            self.know(name, units, Some(*version));
        }
        self.history.returned(call, None, told(put, history::version))
    }

    async fn stream(&self, name: &str, bytes: &[u8], options: PutOptions) -> Result<ObjectVersion> {
        let mut writer = self.store.writer(name, options)?;
        for part in bytes.chunks(100_000) {
            writer.push(part).await?;
        }
        writer.finish().await
    }

    async fn edit(&mut self, name: &str) -> Result<()> {
        let units = self.of(name).units;
        let thins = units > 1 && shares_nothing(name) && self.chance.one_in(2);
        let (splices, told_splices, units) =
            if thins { self.chance.thinned(units) } else { self.chance.splices(units) };
        let only = self.only(name);
        let what =
            json!({"op": "edit", "name": name, "splices": told_splices, "only": shown(only)});
        let call = self.history.call(self.task, what)?;
        let answer = match only {
            Some(only) => {
                let edited = self.store.edit_if(name, splices, only).await;
                if let Ok(version) = &edited {
                    self.know(name, units, Some(*version));
                }
                told(edited, history::version)
            }
            None => {
                let edited = self.store.edit(name, splices).await;
                if let Ok(size) = &edited {
                    self.know(name, size / UNIT, None);
                }
                told(edited, |size| json!({"size": size}))
            }
        };
        self.history.returned(call, None, answer)
    }

    async fn attributes(&mut self, name: &str) -> Result<()> {
        let call = self.history.call(self.task, json!({"op": "attributes", "name": name}))?;
        let attributes = Attributes::from([("call".to_owned(), call.to_string().into())]);
        let set = self.store.set_attributes(name, attributes).await;
        self.history.returned(call, None, told(set, history::version))
    }

    async fn copy(&mut self, to: &str) -> Result<()> {
        let (from, create) = (self.other(to), self.chance.one_in(4));
        let what = json!({"op": "copy", "from": from, "name": to, "create": create});
        let call = self.history.call(self.task, what)?;
        let copied = self.store.copy_with(&from, to, mode_of(None, create)).await;
        self.came(call, &from, to, copied)
    }

    async fn rename(&mut self, to: &str) -> Result<()> {
        let (from, create) = (self.other(to), self.chance.one_in(4));
        let what = json!({"op": "rename", "from": from, "name": to, "create": create});
        let call = self.history.call(self.task, what)?;
        let renamed = self.store.rename_with(&from, to, mode_of(None, create)).await;
        self.came(call, &from, to, renamed)
    }

    fn came(
        &mut self,
        call: u64,
        from: &str,
        to: &str,
        answer: Result<ObjectVersion>,
    ) -> Result<()> {
        if let Ok(version) = &answer {
            self.know(to, self.of(from).units, Some(*version));
        }
        self.history.returned(call, None, told(answer, history::version))
    }

    async fn copy_range(&mut self, to: &str) -> Result<()> {
        let from = self.other(to);
        let range = self.chance.range(self.of(&from).units);
        let at = self.chance.random.random_range(0..=self.of(to).units);
        let what = json!({"op": "copy range", "from": from, "name": to, "place": at,
            "first": range.start, "count": range.end - range.start});
        let call = self.history.call(self.task, what)?;
        let bytes = range.start * UNIT..range.end * UNIT;
        let copied = self.store.copy_range(&from, bytes, to, at * UNIT).await;
        if let Ok(size) = &copied {
            self.know(to, size / UNIT, None);
        }
        self.history.returned(call, None, told(copied, |size| json!({"size": size})))
    }

    async fn concat(&mut self, to: &str) -> Result<()> {
        let parts = [self.shared_name(), self.shared_name()];
        let units: u64 = parts.iter().map(|part| self.of(part).units).sum();
        if units > 60_000 {
            return self.remove(to).await;
        }
        let what = json!({"op": "concat", "parts": parts, "name": to});
        let call = self.history.call(self.task, what)?;
        let joined = self.store.concat(&[&parts[0], &parts[1]], to).await;
        if let Ok(version) = &joined {
            self.know(to, units, Some(*version));
        }
        self.history.returned(call, None, told(joined, history::version))
    }

    async fn remove(&mut self, name: &str) -> Result<()> {
        let only = self.only(name);
        let what = json!({"op": "remove", "name": name, "only": shown(only)});
        let call = self.history.call(self.task, what)?;
        let removed = match only {
            Some(only) => self.store.remove_if(name, only).await,
            None => self.store.remove(name).await,
        };
        self.history.returned(call, None, told(removed, |was| json!({"was": was})))
    }
}
