//! Intents: round trips, damage, unknown states and kinds.

use super::super::{Intent, IntentKind, IntentState, Named, Part, seal};
use super::{any_id, any_named, blob, id, notices_damage};
use holdall::Error;
use proptest::prelude::*;

const STATES: [IntentState; 3] = [IntentState::Open, IntentState::Condemned, IntentState::Resolved];
const KINDS: [IntentKind; 3] = [IntentKind::Write, IntentKind::Share, IntentKind::Hold];

fn intent() -> impl Strategy<Value = Intent> {
    let what = (prop::sample::select(&STATES[..]), prop::sample::select(&KINDS[..]));
    let texts = (any::<String>(), any::<String>());
    let shared = prop::collection::vec(any_named(), 0..20);
    (any_id(), what, texts, shared, any::<(u64, u64)>()).prop_map(
        |(nonce, what, texts, shared, numbers)| Intent {
            nonce,
            state: what.0,
            kind: what.1,
            collection: texts.0,
            name: texts.1,
            shared,
            cycle: numbers.0,
            ends: numbers.1,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_intent_comes_back(intent in intent()) {
        let stored = intent.encode().unwrap();
        prop_assert_eq!(Intent::decode(&stored, "i").unwrap(), intent);
    }
}

/// One intent of each kind in each state.
pub(super) fn all() -> Vec<(String, Intent)> {
    let mut all = Vec::new();
    for (kind, kind_name) in KINDS.into_iter().zip(["write", "share", "hold"]) {
        for (state, state_name) in STATES.into_iter().zip(["open", "condemned", "resolved"]) {
            let shared = match kind {
                IntentKind::Write => Vec::new(),
                IntentKind::Share => vec![
                    Named { blob: blob(0x44, 3, 300), part: Part::Segment },
                    Named { blob: blob(0x44, 9, 77), part: Part::Tree(1) },
                ],
                IntentKind::Hold => vec![Named { blob: blob(0x44, 9, 77), part: Part::Tree(1) }],
            };
            let intent = Intent {
                nonce: id(0x11),
                state,
                kind,
                collection: "default".into(),
                name: "film".into(),
                shared,
                cycle: if state == IntentState::Resolved { 300 } else { 0 },
                ends: if kind == IntentKind::Hold { 1_700_000_000 } else { 0 },
            };
            all.push((format!("{kind_name}-{state_name}"), intent));
        }
    }
    all
}

#[test]
fn damage_of_any_byte_is_noticed() {
    for (_, intent) in all() {
        notices_damage(&intent.encode().unwrap(), |stored| Intent::decode(stored, "i"));
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let stored = all()[0].1.encode().unwrap();
    for (at, value) in [(4, 2), (5, 0), (5, 4), (6, 0), (6, 4), (7, 1)] {
        let mut changed = stored.to_vec();
        changed[at] = value;
        seal(&mut changed);
        let read = Intent::decode(&changed, "i");
        assert!(matches!(read, Err(Error::Unsupported { .. })), "byte {at}: {read:?}");
    }
    let mut longer = stored.to_vec();
    longer.push(0);
    seal(&mut longer);
    assert!(super::detail(Intent::decode(&longer, "i")).contains("left over"));
}

#[test]
fn an_intent_that_names_too_much_is_not_written() {
    let named = |n| Named { blob: blob(1, n, 1), part: Part::Segment };
    let many = Intent { shared: (0..200_000).map(named).collect(), ..all()[3].1.clone() };
    assert!(matches!(many.encode(), Err(Error::TooLarge(_))));
    let some = Intent { shared: (0..80_000).map(named).collect(), ..all()[3].1.clone() };
    assert_eq!(Intent::decode(&some.encode().unwrap(), "i").unwrap(), some);
}
