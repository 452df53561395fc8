//! Runs cases, each on a fresh volume. What a case took is kept as a part, so that a run that
//! was broken off goes on.

use std::cell::OnceCell;

use anyhow::{Context, Result};
use tempfile::TempDir;

use super::aged::Aged;
use super::case::{Case, Run};
use super::markers::Content;
use super::system::postgres::{SETTINGS, forget};
use super::volume::{FileSystem, Volume};
use crate::kit::postgres::Server;
use holdall_instrument::experiment::Settings;

/// What the runs of an experiment share.
pub struct Bench<'a> {
    settings: &'a Settings<'a>,
    content: Content,
    server: OnceCell<std::result::Result<Server, String>>,
    /// Behind the server, which stops before its directory goes.
    scratch: TempDir,
}

impl<'a> Bench<'a> {
    /// With a directory of its own.
    pub fn new(settings: &'a Settings<'a>) -> Result<Self> {
        let content = Content::new(settings.seed);
        Ok(Self { settings, scratch: settings.scratch()?, content, server: OnceCell::new() })
    }

    /// Runs `case`, or takes what was kept of an earlier run. A store that is missing or full is
    /// no error.
    pub fn run(&self, case: &Case) -> Result<Run> {
        let name = case.name(self.settings);
        let kept = self.settings.parts.load(&name);
        if let Some(run) = kept.and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok(run);
        }
        let mut run = Run { system: case.system(), ..Run::default() };
        let ended = self.fresh(case, &mut run);
        ended.with_context(|| format!("{}, {:?}", case.kind.name(), case.sizes))?;
        // What is missing today may be installed tomorrow.
        if !run.points.is_empty() {
            self.settings.parts.save(&name, &serde_json::to_string(&run)?)?;
        }
        Ok(run)
    }

    fn fresh(&self, case: &Case, run: &mut Run) -> Result<()> {
        // Started when it is first asked for.
        let start = || Server::start(self.scratch.path(), &SETTINGS).map_err(|e| format!("{e:#}"));
        let server = case.kind.is_postgres().then(|| self.server.get_or_init(start).as_ref());
        let server = match server.transpose() {
            Ok(server) => server,
            Err(missing) => {
                run.remarks.push(format!("skipped: {missing}"));
                return Ok(());
            }
        };
        let Some(volume) = self.volume(case, &mut run.remarks)? else { return Ok(()) };
        let aged = Aged::new(&self.content, self.settings.seed, case, &volume, server)
            .and_then(|store| store.age(run));
        // Before the volume goes, also after an error.
        let forgotten = server.map_or(Ok(()), forget);
        aged.and(forgotten)
    }

    /// A fresh volume for `case`; none if it is skipped, which a remark says.
    fn volume(&self, case: &Case, remarks: &mut Vec<String>) -> Result<Option<Volume>> {
        let system = case.kind.file_system();
        let scratch = self.scratch.path();
        let why = match Volume::mounted(scratch, system, case.volume) {
            Ok(volume) => return Ok(Some(volume)),
            Err(error) => format!("{error:#}"),
        };
        if system != FileSystem::Ext4 {
            remarks.push(format!("skipped: {why}"));
            return Ok(None);
        }
        remarks.push(format!("in a directory, no volume of its own: {why}"));
        Volume::directory(scratch, case.volume).map(Some)
    }
}
