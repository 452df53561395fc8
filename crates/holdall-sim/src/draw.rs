//! Drawing a script from a seed.
//!
//! Owns: the mix of operations, sizes, faults. Everything comes from one generator.

use crate::crash::draw_kind;
use crate::op::{Again, Crash, EditKind, End, Fault, Hint, Op, TxOp};
use crate::params::Params;
use crate::script::Script;
use holdall_testkit::{CrashKind, LossPolicy};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

struct Draw {
    rng: SmallRng,
    page: u32,
    direct: u32,
    names: u8,
    collections: u8,
    /// Of 100 operations, how many arm a fault or crash.
    trouble: u32,
    /// Of 100 transactions, how many are deferred.
    deferred: u32,
    most_calls: usize,
    /// Of 100 sizes, how many are large.
    large: u32,
}

impl Script {
    /// The script of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut params = Params::draw(&mut rng);
        let lap = rng.random_bool(0.05);
        if lap {
            let t = &mut params.tuning;
            (t.auto_checkpoint, t.log_bytes, t.log_data_bytes) = (false, 1 << 20, 1 << 20);
            t.first_log_bytes = t.log_bytes;
            (t.dirty_pages, params.max_bytes) = (4096, u64::MAX);
        }
        let count = *[12, 40, 120, 250].choose(&mut rng).unwrap_or(&40);
        let mut draw = Draw {
            page: params.page_size as u32,
            direct: params.tuning.log_data_bytes as u32,
            names: *[3, 12, 60].choose(&mut rng).unwrap_or(&12),
            collections: rng.random_range(1..4),
            trouble: *[0, 5, 15, 30].choose(&mut rng).unwrap_or(&5),
            deferred: *[0, 20, 60].choose(&mut rng).unwrap_or(&20),
            most_calls: *[1, 3, 12].choose(&mut rng).unwrap_or(&3),
            large: *[2, 15, 40].choose(&mut rng).unwrap_or(&15),
            rng,
        };
        let mut ops = Vec::new();
        if lap {
            draw.lap(&mut ops);
        }
        let storms = if draw.percent(6) { 8 } else { 0 };
        (0..storms).for_each(|_| draw.storm(&mut ops));
        while ops.len() < count {
            if draw.trouble > 0 && draw.percent(2) {
                draw.storm(&mut ops);
            } else {
                ops.push(draw.op(true));
            }
        }
        let mut script = Self { seed, params, ops };
        // A lap fills the log to a measure.
        if !lap {
            crate::many::add(&mut script);
            crate::beside::add(&mut script);
            crate::ebb::add(&mut script);
            crate::meetings::add(&mut script);
            crate::collections::add(&mut script);
            crate::follow::add(&mut script);
            crate::held::add(&mut script);
            crate::backup::add(&mut script);
            crate::rare::add(&mut script);
        }
        script
    }
}

impl Draw {
    fn percent(&mut self, n: u32) -> bool {
        self.rng.random_range(0..100) < n
    }

    fn op(&mut self, outside: bool) -> Op {
        if outside && self.percent(self.trouble) {
            return self.trouble();
        }
        if !outside && self.percent(10) {
            return Op::Damage(self.rng.random());
        }
        match self.rng.random_range(0..100) {
            0..62 => self.write(outside),
            62..66 => Op::Flush,
            66..70 if outside => Op::Checkpoint,
            70..74 if outside => Op::CheckpointWith(
                (0..self.rng.random_range(1..6)).map(|_| self.op(false)).collect(),
            ),
            66..80 => Op::OpenReader { newest: self.rng.random() },
            80..87 => Op::CheckReader(self.rng.random()),
            87..90 => Op::DropReader(self.rng.random()),
            90..93 => Op::Check,
            93..96 if outside => Op::Close(self.rng.random_bool(0.5).then(|| self.rng.random())),
            96..98 => Op::Damage(self.rng.random()),
            _ => Op::Probe(self.rng.random()),
        }
    }

    /// A log nearly full, then a checkpoint during which it goes on: space given back too early
    /// is written over.
    fn lap(&mut self, ops: &mut Vec<Op>) {
        let put = |d: &mut Self, size| TxOp::Put {
            coll: 0,
            name: d.rng.random_range(0..60),
            size,
            seed: d.rng.random(),
            attributes: 0,
        };
        for _ in 0..self.rng.random_range(2..4) {
            for _ in 0..7 {
                let calls = 100_000 / (2 * self.page);
                let calls = (0..calls).map(|_| put(self, self.page + 1000)).collect();
                ops.push(Op::Write { ops: calls, end: End::Commit });
            }
            let write = |d: &mut Self| Op::Write {
                ops: vec![put(d, 39_000), put(d, 39_000)],
                end: End::Commit,
            };
            let probe = Op::Probe(self.rng.random());
            ops.push(Op::CheckpointWith(vec![write(self), write(self), probe, write(self)]));
        }
    }

    /// Crash upon crash, each in the first commit after the recovery: what is left of one torn
    /// group lies where the next one goes.
    fn storm(&mut self, ops: &mut Vec<Op>) {
        for _ in 0..self.rng.random_range(2..8) {
            let crash = Crash {
                kind: CrashKind::PowerCut(LossPolicy::Random),
                seed: self.rng.random(),
                read_only: false,
                again: Vec::new(),
            };
            ops.push(Op::Arm(Fault::Crash(self.rng.random_range(1..9)), crash));
            let put = |d: &mut Self| TxOp::Put {
                coll: 0,
                name: d.rng.random_range(0..3),
                size: d.rng.random_range(1..d.page - 400),
                seed: d.rng.random(),
                attributes: 0,
            };
            let calls = (0..self.rng.random_range(1..5)).map(|_| put(self)).collect();
            ops.push(Op::Write { ops: calls, end: End::Commit });
        }
    }

    fn trouble(&mut self) -> Op {
        let crash = self.crash();
        let near = |d: &mut Self| {
            let most = *[3, 10, 40, 200].choose(&mut d.rng).unwrap_or(&10);
            d.rng.random_range(1..=most)
        };
        let fault = match self.rng.random_range(0..16) {
            0..3 => return Op::Crash(crash),
            3..8 => Fault::Crash(near(self)),
            8 => Fault::Read(near(self)),
            9 | 10 => Fault::Write(near(self)),
            11 | 12 => Fault::Sync(near(self)),
            13 => Fault::Other(self.rng.random_range(1..6)),
            14 => Fault::Full(u64::from(self.page) * self.rng.random_range(0..40)),
            _ => return Op::Heal,
        };
        Op::Arm(fault, crash)
    }

    fn crash(&mut self) -> Crash {
        let again = match self.rng.random_range(0..4) {
            0 => self.rng.random_range(1..4),
            _ => 0,
        };
        Crash {
            kind: draw_kind(&mut self.rng),
            seed: self.rng.random(),
            read_only: self.rng.random_bool(0.3),
            again: (0..again).map(|_| self.again()).collect(),
        }
    }

    fn again(&mut self) -> Again {
        let n = self.rng.random_range(1..14);
        match self.rng.random_range(0..8) {
            0 => Again::Read(n),
            1 => Again::Write(n),
            2 | 3 => Again::Sync(1 + n / 3, draw_kind(&mut self.rng), self.rng.random()),
            _ => Again::Crash(n, draw_kind(&mut self.rng), self.rng.random()),
        }
    }

    fn write(&mut self, outside: bool) -> Op {
        let most = if outside { self.most_calls } else { 2 };
        let calls = self.rng.random_range(1..=most);
        let mut ops: Vec<TxOp> = (0..calls).map(|_| self.call()).collect();
        if !outside {
            ops.iter_mut().for_each(shorten);
        }
        let end = if self.percent(8) {
            End::Abort
        } else if self.percent(self.deferred) {
            End::Deferred
        } else {
            End::Commit
        };
        Op::Write { ops, end }
    }

    fn size(&mut self) -> u32 {
        let page = self.page;
        if self.percent(self.large) {
            return match self.rng.random_range(0..4) {
                0 => self.direct.saturating_add(self.rng.random_range(0..2 * page)).min(1 << 20),
                1 => self.rng.random_range(1..40) * page,
                2 => self.rng.random_range(2 * page..30 * page),
                _ => self.rng.random_range(100_000..400_000),
            };
        }
        match self.rng.random_range(0..8) {
            0 => 0,
            1..4 => self.rng.random_range(1..200),
            4 => self.rng.random_range(1..page / 2),
            5 => self.rng.random_range(page / 2..page),
            6 => page - self.rng.random_range(0..160),
            _ => self.rng.random_range(page..4 * page),
        }
    }

    fn call(&mut self) -> TxOp {
        let coll = self.rng.random_range(0..self.collections);
        let name = self.rng.random_range(0..self.names);
        let (size, seed) = (self.size(), self.rng.random());
        let pick = self.rng.random();
        match self.rng.random_range(0..100) {
            0..32 => {
                let attributes = if self.percent(80) { 0 } else { self.rng.random_range(0..40) };
                TxOp::Put { coll, name, size, seed, attributes }
            }
            32..40 => TxOp::Stream {
                coll,
                name: self.rng.random_bool(0.7).then_some(name),
                size,
                seed,
                chunk: *[1000, 5000, 100_000, 1 << 20].choose(&mut self.rng).unwrap_or(&1000),
                hint: *[Hint::None, Hint::Right, Hint::Less, Hint::More]
                    .choose(&mut self.rng)
                    .unwrap_or(&Hint::None),
                finish: self.rng.random_bool(0.85),
            },
            40..50 => {
                let near = self.rng.random_bool(0.5).then_some(pick);
                TxOp::Create { coll, size, seed, near }
            }
            50..64 => TxOp::Edit {
                pick: if self.percent(95) { pick & !1 } else { pick },
                kind: *[
                    EditKind::Splice,
                    EditKind::Splice,
                    EditKind::Append,
                    EditKind::Truncate,
                    EditKind::WriteAt,
                ]
                .choose(&mut self.rng)
                .unwrap_or(&EditKind::Splice),
                at: *[
                    0,
                    32_768,
                    self.rng.random_range(0..33_000),
                    self.rng.random_range(0..36_000),
                ]
                .choose(&mut self.rng)
                .unwrap_or(&0),
                len: self.size(),
                size,
                seed,
            },
            64..74 => TxOp::DeleteName { coll, name },
            74..82 => TxOp::DeleteOid { pick },
            82..88 => TxOp::Rename { coll, from: name, to: self.rng.random_range(0..self.names) },
            88..92 => TxOp::SetAttributes { pick, attributes: self.rng.random_range(0..40) },
            92..94 if name.is_multiple_of(4) => TxOp::DropCollection { coll },
            92..94 => TxOp::Get { coll, name },
            94..96 => TxOp::GetOid { pick },
            96..98 => {
                let name = self.rng.random_bool(0.7).then_some(name);
                TxOp::Copy { pick: pick & !1, coll, name }
            }
            _ => {
                let mut place = || self.rng.random_range(0..33_500);
                let (at, end, to) = (place(), place(), place());
                let into = if self.percent(30) { pick } else { self.rng.random() } & !1;
                TxOp::CopyRange { from: pick & !1, at, end, into, to }
            }
        }
    }
}

/// Inside a checkpoint a transaction must stay far from every limit.
fn shorten(op: &mut TxOp) {
    if let TxOp::Put { size, .. }
    | TxOp::Stream { size, .. }
    | TxOp::Create { size, .. }
    | TxOp::Edit { size, .. } = op
    {
        *size %= 40_000;
    }
}
