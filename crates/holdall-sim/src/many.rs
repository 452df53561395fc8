//! Many objects in one call, drawn and played.
//!
//! Owns: which transactions get such a call, what it gives, and the answers expected of it: as
//! single calls in that order, or an error that fails the whole transaction. These draws have a
//! generator of their own, so that the rest of a seed's script is what it was without them.

use crate::check::Bad;
use crate::model::{self, Object, State};
use crate::op::{EditKind, Names, Op, TxOp};
use crate::script::Script;
use crate::transact::{Playing, wrong};
use holdall::{Attributes, Error, WriteTx};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// With more objects than this in the store, calls add few: comparing all of them takes time.
const MANY_OBJECTS: usize = 200;

/// Puts such calls into transactions of the script, and makes some edits replace all bytes.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(!script.seed);
    let percent = *[0, 10, 30].choose(&mut rng).unwrap_or(&10);
    let page = script.params.page_size as u32;
    for op in &mut script.ops {
        match op {
            Op::Write { ops, .. } => add_to(ops, &mut rng, percent, page, true),
            Op::CheckpointWith(between) => {
                for op in between {
                    if let Op::Write { ops, .. } = op {
                        add_to(ops, &mut rng, percent, page, false);
                    }
                }
            }
            _ => {}
        }
    }
}

fn add_to(ops: &mut Vec<TxOp>, rng: &mut SmallRng, percent: u32, page: u32, outside: bool) {
    for op in ops.iter_mut() {
        if let TxOp::Edit { kind, .. } = op
            && rng.random_range(0..100) < percent
        {
            *kind = EditKind::Set;
        }
    }
    if rng.random_range(0..100) >= percent {
        return;
    }
    let mut call = draw(rng, page);
    let at = rng.random_range(0..ops.len().max(1));
    if outside {
        ops.insert(at, call);
        return;
    }
    // Inside a checkpoint a transaction must stay far from every limit.
    if let TxOp::Many { count, size, .. } = &mut call {
        (*count, *size) = (*count % 8, *size % 2000);
    }
    ops[at] = call;
}

fn draw(rng: &mut SmallRng, page: u32) -> TxOp {
    let size = *[100, 300, 300, page, 4 * page, 200_000].choose(rng).unwrap_or(&300);
    let most = if size > page { 12 } else { *[5, 40, 200].choose(rng).unwrap_or(&40) };
    let kinds =
        [Names::None, Names::Behind, Names::Behind, Names::Across, Names::Back, Names::Drawn];
    TxOp::Many {
        // The first is where most else happens.
        coll: *[0, 0, 1, 2].choose(rng).unwrap_or(&0),
        names: *kinds.choose(rng).unwrap_or(&Names::None),
        count: rng.random_range(0..=most),
        size,
        seed: rng.random(),
        bad: rng.random_ratio(1, 12).then(|| rng.random()),
    }
}

/// An object as it is given: its name, or nothing for none, and its bytes.
type Given = (Vec<u8>, Arc<[u8]>);

/// What the call gives in this state, and which of it has a name that no object may have.
fn given(op: &TxOp, state: &State) -> (Vec<Given>, Option<usize>) {
    let TxOp::Many { coll, names, count, size, seed, bad } = *op else {
        return (Vec::new(), None);
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let count = if state.objects.len() > MANY_OBJECTS { count % 8 } else { count };
    let next = state.next_numbered(&model::collection(coll));
    let name = |rng: &mut SmallRng, i: u32| match names {
        Names::None => Vec::new(),
        Names::Behind => model::numbered(next + i),
        Names::Across => model::numbered((next + i).saturating_sub(u32::from(count) / 2)),
        Names::Back => model::numbered((next + u32::from(count) / 2).saturating_sub(i)),
        Names::Drawn if rng.random() => model::name(rng.random_range(0..60)),
        Names::Drawn => model::numbered(rng.random_range(0..next + 2)),
    };
    let object = |i: u8| {
        let most = match rng.random_range(0..12) {
            0 => size,
            1 => size.min(5000),
            _ => size.min(300),
        };
        let name = name(&mut rng, u32::from(i));
        (name, model::bytes(rng.random(), rng.random_range(0..=most)))
    };
    let mut given: Vec<Given> = (0..count).map(object).collect();
    let bad = bad.filter(|_| names != Names::None && count > 0).map(|bad| bad % count);
    if let Some(bad) = bad {
        let long = if bad.is_multiple_of(2) { 0 } else { 1025 };
        given[usize::from(bad)].0 = vec![b'x'; long];
    }
    (given, bad.map(usize::from))
}

impl Playing<'_> {
    /// Plays a call that gives many objects.
    pub(crate) fn many(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::Many { coll, names, .. } = *op else { return Ok(()) };
        let (given, bad) = given(op, self.state);
        let mut tx = tx.collection(&model::collection(coll))?;
        let result = match names {
            Names::None => tx.create_many(given.iter().map(|(_, bytes)| bytes)),
            _ => tx.put_many(given.iter().map(|(name, bytes)| (name, bytes))),
        };
        let oids = match (result, bad) {
            (Ok(oids), None) => oids,
            (Ok(_), Some(bad)) => return wrong(format!("{op:?} took the name of object {bad}")),
            (Err(Error::Invalid(text)), Some(bad)) => {
                if !text.starts_with(&format!("object {bad} of the call")) {
                    return wrong(format!("{op:?} refused object {bad} with: {text}"));
                }
                if !matches!(tx.create(b"more"), Err(Error::Invalid(_))) {
                    return wrong(format!("the transaction goes on after {op:?} failed"));
                }
                self.refused = true;
                return Ok(());
            }
            (Err(e), _) => return Err(e.into()),
        };
        if oids.len() != given.len() {
            return wrong(format!("{op:?} gave {} OIDs for {}", oids.len(), given.len()));
        }
        for (oid, (name, bytes)) in oids.iter().zip(&given) {
            let name = (names != Names::None).then(|| name.clone());
            let (attributes, bytes) = (Attributes::new(), bytes.clone());
            self.put(coll, *oid, Object { name, attributes, bytes })?;
        }
        // What is read back inside the transaction is nowhere else yet.
        oids.iter().rev().step_by(20).try_for_each(|oid| self.get(op, tx.get(*oid), Some(*oid)))
    }
}
