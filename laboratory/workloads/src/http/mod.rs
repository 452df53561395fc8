//! S3 servers side by side, and `s3-kill`: Holdall's server killed again and again.
//!
//! Owns: [`Servers`], one contest for each phase. One thread generates all load, so that a second
//! processor is the server's; each server runs alone, on a fresh directory for each round.

pub mod bare_server;
mod client;
mod content;
pub mod kill;
mod load;
mod plan;
mod rows;
mod server;
mod sign;
mod syncs;
mod upload;
mod usage;
mod xml;

pub use plan::{Phase, Sizes};

use crate::options::Programs;
use anyhow::{Context as _, Result};
use holdall_instrument::contest::{Contest, Ctx, Figure, Goal};
use holdall_instrument::system;
use plan::Plan;
pub use server::{Kind, Program, Server};
pub use sign::{ACCESS_KEY, BUCKET, REGION, SECRET_KEY};
use std::ffi::OsString;
use std::path::Path;
use syncs::Syncs;
use tokio::runtime::Runtime;

/// One phase of the S3 rows as a contest of servers.
pub struct Servers {
    /// What they do.
    pub phase: Phase,
    /// Where the servers are.
    pub programs: Programs,
    /// How much of it.
    pub sizes: Sizes,
}

/// The runtime of the generator: one thread.
///
/// # Errors
/// Those of the system.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

impl Servers {
    /// The servers whose programs are named, the bare handler last.
    fn all(&self) -> Vec<Program> {
        let given = [
            (Kind::Holdall, &self.programs.server),
            (Kind::Minio, &self.programs.minio),
            (Kind::Versitygw, &self.programs.versitygw),
        ];
        let named = |(kind, path): (Kind, &Option<_>)| {
            Some(Program { kind, path: path.clone()?, is_logged: false })
        };
        let mut all: Vec<Program> = given.into_iter().filter_map(named).collect();
        if self.phase.has_bare() {
            all.extend(Program::bare());
        }
        all
    }
}

impl Contest for Servers {
    fn id(&self) -> &'static str {
        self.phase.id()
    }

    fn title(&self, ctx: &Ctx) -> String {
        format!("S3 servers: {}", self.phase.title(&Plan::new(ctx.quick, &self.sizes)))
    }

    fn remark(&self) -> &'static str {
        "Requests of one generator over HTTP, presigned, with unsigned bodies. A server that answers \
         single puts before it has synced has its durable rows under another name: it is no measure \
         of them. The bare machine is a handler that takes the body, its MD5 and a file with one \
         fdatasync, and gives a file out. Memory is all that the server has resident."
    }

    fn contestants(&self) -> Vec<&'static str> {
        self.all().iter().map(|program| program.kind.name()).collect()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let of = |program: &Program| {
            let Program { kind, .. } = program;
            let version = program.version().map(|v| format!("{v}; ")).unwrap_or_default();
            (kind.name(), format!("{version}{}", kind.settings()))
        };
        self.all().iter().map(of).collect()
    }

    fn arguments(&self) -> Vec<OsString> {
        [self.programs.arguments(), self.sizes.arguments()].concat()
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let all = self.all();
        let program = all.iter().find(|program| program.kind.name() == contestant);
        let program = program.context("no such server")?;
        let plan = Plan::new(ctx.quick, &self.sizes);
        let (runtime, dir) = (runtime()?, ctx.dir.join("server"));
        // What the one before left to be written is not this one's.
        system::sync_all(&ctx.dir)?;
        let syncs = match self.phase.writes() {
            true => Some(runtime.block_on(syncs(&ctx.dir, &plan, program))?),
            false => None,
        };
        let measured = runtime.block_on(rows::run(self.phase, &plan, program, &dir, out));
        for figure in out.iter_mut().filter(|figure| figure.row.contains(rows::DURABLE)) {
            let Some(syncs) = &syncs else { continue };
            if syncs.missing() {
                figure.row = figure.row.replace(rows::DURABLE, "answered before a sync");
            }
            let more = figure.note.take().map(|note| format!("; {note}")).unwrap_or_default();
            figure.note = Some(format!("{}{more}", syncs.text()));
        }
        measured
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        Vec::new()
    }
}

/// Whether a server syncs single puts before it answers, on a directory of its own.
async fn syncs(scratch: &Path, plan: &Plan, program: &Program) -> Result<Syncs> {
    let dir = scratch.join("traced");
    let server = program.serve(&dir).await?;
    let contents: Vec<_> = (0..=20).map(|n| plan.content(n, 4096)).collect();
    let syncs = syncs::count(&server, &contents, &scratch.join("trace")).await?;
    server.stop()?;
    Ok(syncs)
}
