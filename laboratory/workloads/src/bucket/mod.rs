//! A store in a bucket beside the S3 client alone and file systems over buckets, all on one
//! server.
//!
//! Owns: [`Buckets`], the contest. Each contestant has a server of its own with an empty bucket;
//! what it asks is counted in the server's log. `peers` has the contestants, `rows` what they do.

mod mounts;
mod peers;
mod rows;

use crate::http::{Kind, Program, Server};
use crate::options::Programs;
use anyhow::{Context as _, Result};
use holdall_instrument::contest::{BARE, Bound, Contest, Ctx, Figure, Goal, Than};
use holdall_instrument::system;
use mounts::{Mount, System};
use peers::{Holdall, Peer, Raw};
use rows::Sizes;
use std::ffi::OsString;
use std::path::PathBuf;

/// How a contestant reaches the server.
#[derive(Debug, Clone)]
struct Place {
    /// Its address.
    endpoint: String,
    /// An empty directory.
    dir: PathBuf,
    /// The program of the contestant, if it has one.
    program: PathBuf,
}

/// The contest.
pub struct Buckets {
    /// Where the programs are.
    pub programs: Programs,
}

impl Buckets {
    fn mounts(&self) -> Vec<(System, PathBuf)> {
        let given = [
            (System::S3fs, &self.programs.s3fs),
            (System::Rclone, &self.programs.rclone),
            (System::Juicefs, &self.programs.juicefs),
        ];
        given.into_iter().filter_map(|(system, path)| Some((system, path.clone()?))).collect()
    }

    fn peer(&self, contestant: &str, place: &Place) -> Result<Box<dyn Peer>> {
        Ok(match contestant {
            super::HOLDALL => Box::new(Holdall::create(place)?),
            BARE => Box::new(Raw::new(place)?),
            _ => {
                let mut all = self.mounts().into_iter();
                let found = all.find(|(system, _)| system.name() == contestant);
                let (system, program) = found.context("no such program")?;
                Box::new(Mount::new(system, Place { program, ..place.clone() })?)
            }
        })
    }
}

impl Contest for Buckets {
    fn id(&self) -> &'static str {
        "bucket"
    }

    fn title(&self, ctx: &Ctx) -> String {
        let Sizes { large, .. } = Sizes::of(ctx);
        format!("objects in a bucket; large ones have {} MB", large / 1_000_000)
    }

    fn remark(&self) -> &'static str {
        "One versitygw on this machine for each contestant. The bare machine is the S3 client that \
         Holdall uses: multipart uploads and ranges of 8 MiB, eight at a time; its row of inserts is \
         a put of 64 KiB, its import is `rclone copy`. File systems are mounted anew before they \
         read. Notes give the requests of an operation, from the server's log."
    }

    fn contestants(&self) -> Vec<&'static str> {
        let mounts = self.mounts();
        let names = mounts.iter().map(|(system, _)| system.name());
        [super::HOLDALL].into_iter().chain(names).chain([BARE]).collect()
    }

    fn arguments(&self) -> Vec<OsString> {
        self.programs.arguments()
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let path = self.programs.versitygw.clone().context("--versitygw names no program")?;
        let program = Program { kind: Kind::Versitygw, path, is_logged: true };
        let (runtime, dir) = (crate::http::runtime()?, ctx.dir.join("server"));
        system::sync_all(&ctx.dir)?;
        let server: Server = runtime.block_on(program.serve(&dir))?;
        let place = Place {
            endpoint: format!("http://{}", server.address),
            dir: ctx.dir.clone(),
            program: match contestant {
                BARE => self.programs.rclone.clone().unwrap_or_else(|| "rclone".into()),
                _ => self.programs.server.clone().context("--server names no program")?,
            },
        };
        // The server answers slower once it had the many connections of a probe: all begin behind one.
        let server = self.programs.server.as_ref().context("--server names no program")?;
        peers::probe(server, &place)?;
        let peer = self.peer(contestant, &place)?;
        rows::run(ctx, &*peer, &dir.join(Program::LOG), out)
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let bare = |row: &str, bound| Goal::new(super::HOLDALL, row, Than::Bare, bound);
        let peers = |row: &str, bound| Goal::new(super::HOLDALL, row, Than::Best(&[]), bound);
        let rates = [rows::PUT_MIDDLE, rows::GET_MIDDLE, rows::PUT_LARGE, rows::GET_LARGE];
        let times = [rows::PUT_SMALL, rows::GET_SMALL];
        let mut goals: Vec<Goal> =
            rates.into_iter().map(|row| bare(row, Bound::AtLeast(0.9))).collect();
        goals.extend(times.into_iter().map(|row| bare(row, Bound::AtMost(1.11))));
        goals.push(bare(rows::IMPORT, Bound::AtLeast(0.9)));
        goals.push(bare(rows::INSERT, Bound::AtMost(3.0)));
        goals.push(peers(rows::INSERT, Bound::AtMost(0.02)));
        let before = Than::Own(rows::GET_LARGE.into());
        goals.push(Goal::new(super::HOLDALL, rows::GET_AFTER, before, Bound::AtLeast(0.8)));
        goals.push(bare(rows::CLIENTS, Bound::AtLeast(0.8)));
        goals
    }
}
