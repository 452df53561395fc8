//! Keys: escaped and parsed back, one for each name, and no other is taken.

use super::super::{BlobId, Id, keys};
use super::id;
use proptest::prelude::*;
use std::collections::BTreeSet;

const NAMES: [&str; 34] = [
    "",
    ".",
    "..",
    "...",
    ".a",
    "a.",
    "a/.",
    "a/..",
    "./a",
    "../a",
    "/",
    "//",
    "/a",
    "a/",
    "a//b",
    "a//",
    "a/b/",
    "!",
    "a!",
    "a!/b",
    "%",
    "%41",
    "%_",
    "_",
    "%2E",
    "a b",
    "a+b",
    "a\u{0}b",
    "a\nb\u{7f}\u{85}",
    "\u{fffe}\u{ffff}",
    "é",
    "e\u{301}",
    "日本/語",
    "\u{10ffff}",
];

fn round(collection: &str, name: &str) {
    let key = keys::record(collection, name).unwrap();
    assert_eq!(keys::parse_record(&key), Some((collection.into(), name.into())), "{key}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_~.%/!".contains(c) || !c.is_ascii();
    assert!(key.chars().all(|c| plain(c) && !c.is_control()), "{key:?}");
    assert!(!key.contains(['\u{fffe}', '\u{ffff}']), "{key:?}");
    assert!(key.split('/').all(|part| !matches!(part, "" | "." | "..")), "{key}");
    assert!(key.ends_with('!') && key.matches('!').count() == 1, "{key}");
}

#[test]
fn names_of_all_kinds_come_back() {
    let mut all = BTreeSet::new();
    for name in NAMES {
        round("c", name);
        assert!(all.insert(keys::record("c", name).unwrap()), "{name:?} has another's key");
        if !name.is_empty() {
            round(name, "n");
            let folder = keys::prefix(name, "");
            assert_eq!(keys::parse_collection(&folder).as_deref(), Some(name), "{folder}");
        }
    }
    assert!(keys::record("", "n").is_err());
}

#[test]
fn keys_as_they_are() {
    for (collection, name, key) in [
        ("default", "a/b.txt", "n/default/a/b.txt!"),
        ("c", "", "n/c/!"),
        ("c", "a/", "n/c/a/!"),
        ("c", "a//b", "n/c/a/%_/b!"),
        ("c", "/a", "n/c/%_/a!"),
        ("c", "..", "n/c/%2E.!"),
        ("c", "a!", "n/c/a%21!"),
        ("c", "%41", "n/c/%2541!"),
        ("a/b", "é \u{85}", "n/a%2Fb/é%20%C2%85!"),
        ("..", "\u{ffff}", "n/%2E./%EF%BF%BF!"),
    ] {
        assert_eq!(keys::record(collection, name).unwrap(), key);
    }
    let blob = BlobId { operation: id(0xab), number: 7 };
    let text = "ab".repeat(16);
    assert_eq!(keys::blob(blob), format!("b/ab/{text}/7"));
    assert_eq!(keys::intent(id(0xab)), format!("i/{text}"));
}

#[test]
fn what_no_record_has_is_refused() {
    for key in [
        "",
        "n",
        "n/",
        "n/c",
        "n/c!",
        "n//!",
        "n//a!",
        "n/c/a",
        "n/c/a!!",
        "n/c/!a!",
        "n/c/a!b!",
        "n/c/a b!",
        "n/c/./b!",
        "n/c/../b!",
        "n/c/.!",
        "n/c/.a!",
        "n/c//a!",
        "n/c/a//b!",
        "n/c/%41!",
        "n/c/%2e!",
        "n/c/%!",
        "n/c/%2!",
        "n/c/%zz!",
        "n/c/%_!",
        "n/c/a%_!",
        "n/c/%_a/b!",
        "n/c/%FF!",
        "n/c/%C3!",
        "n/c/%C3%A9!",
        "n/c/a%2Fb!",
        "n/%2e/a!",
        "n/c/\u{7f}!",
        "n/c/\u{fffe}!",
        "n/.c/a!",
        "n/c d/a!",
        "N/c/a!",
        "b/c/a!",
        " n/c/a!",
        "n/c/a! ",
        "n/c/%+1!",
    ] {
        assert_eq!(keys::parse_record(key), None, "{key:?}");
    }
    for key in ["n/c", "n//", "n/c/d/", "n/%63/", "n/./", "n/c", "c/"] {
        assert_eq!(keys::parse_collection(key), None, "{key:?}");
    }
    let op = "ab".repeat(16);
    for key in [
        format!("b/ac/{op}/7"),
        format!("b/ab/{op}/07"),
        format!("b/ab/{op}/+7"),
        format!("b/ab/{op}/"),
        format!("b/ab/{op}"),
        format!("b/ab/{op}/7/8"),
        format!("b/ab/{op}/4294967296"),
        format!("b/AB/{}/7", op.to_uppercase()),
        format!("b/ab/{}/7", &op[1..]),
        format!("i/{op}"),
    ] {
        assert_eq!(keys::parse_blob(&key), None, "{key:?}");
    }
    for key in
        [format!("i/{op}/"), format!("i/{}", &op[1..]), format!("i/{op}0"), format!("b/{op}")]
    {
        assert_eq!(keys::parse_intent(&key), None, "{key:?}");
    }
}

#[test]
fn folders_of_listings_come_back() {
    for (name, folder) in
        [("a/", "n/c/a/"), ("a/b/", "n/c/a/b/"), ("/", "n/c/%_/"), ("a//", "n/c/a/%_/")]
    {
        assert_eq!(keys::prefix("c", name), folder);
        assert_eq!(keys::parse_record(folder), Some(("c".into(), name.into())));
    }
}

#[test]
fn keys_have_nine_hundred_bytes_at_most() {
    let fits = "x".repeat(keys::MAX_ESCAPED - 2);
    let key = keys::record("c", &fits).unwrap();
    assert_eq!(key.len(), "n/".len() + keys::MAX_ESCAPED + "!".len());
    assert!(keys::record("c", &format!("{fits}x")).is_err());
    // What counts are the escaped bytes.
    assert!(keys::record("c", &"%".repeat(299)).is_ok());
    assert!(keys::record("c", &"%".repeat(300)).is_err());
    assert!(keys::record(&fits, "cc").is_err());
}

/// Names of characters that keys treat apart.
fn name() -> impl Strategy<Value = String> {
    let known: Vec<char> =
        "/.!%_-~ aZ09+\u{0}\u{1f}\u{7f}\u{80}é\u{301}\u{fffd}\u{fffe}\u{ffff}語".chars().collect();
    let one = prop_oneof![4 => prop::sample::select(known), 1 => any::<char>()];
    prop::collection::vec(one, 0..12).prop_map(|all| all.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_name_comes_back(collection in name(), name in name()) {
        prop_assume!(!collection.is_empty());
        round(&collection, &name);
    }

    #[test]
    fn a_prefix_of_a_name_is_one_of_its_key(name in name(), cut in any::<prop::sample::Index>()) {
        let ends: Vec<usize> = name.char_indices().map(|(at, _)| at).chain([name.len()]).collect();
        let prefix = &name[..*cut.get(&ends)];
        let key = keys::record("c", &name).unwrap();
        prop_assert!(key.starts_with(&keys::prefix("c", prefix)), "{prefix:?} of {name:?}");
    }

    #[test]
    fn nothing_else_begins_with_an_escaped_prefix(name in name(), prefix in name()) {
        let key = keys::record("c", &name).unwrap();
        let begins = key.starts_with(&keys::prefix("c", &prefix));
        prop_assert_eq!(begins, name.starts_with(&prefix), "{:?} of {:?}", prefix, name);
    }

    #[test]
    fn two_names_have_two_keys(a in (name(), name()), b in (name(), name())) {
        prop_assume!(a != b && !a.0.is_empty() && !b.0.is_empty());
        prop_assert_ne!(keys::record(&a.0, &a.1).unwrap(), keys::record(&b.0, &b.1).unwrap());
    }

    #[test]
    fn names_of_plain_characters_keep_their_order(a in "[a-z0-9]{1,6}", b in "[a-z0-9]{1,6}") {
        let (x, y) = (keys::record("c", &a).unwrap(), keys::record("c", &b).unwrap());
        prop_assert_eq!(a.cmp(&b), x.cmp(&y));
    }

    #[test]
    fn only_what_is_written_is_read(key in "n/[a%_2E!./]{0,8}") {
        if let Some((collection, name)) = keys::parse_record(&key) {
            let again = match key.strip_suffix('/') {
                Some(_) => keys::prefix(&collection, &name),
                None => keys::record(&collection, &name).unwrap(),
            };
            prop_assert_eq!(key, again);
        }
    }

    #[test]
    fn blobs_and_intents_come_back(operation in any::<[u8; 16]>(), number in any::<u32>()) {
        let id = BlobId { operation: Id(operation), number };
        prop_assert_eq!(keys::parse_blob(&keys::blob(id)), Some(id));
        prop_assert!(keys::blob(id).starts_with(&keys::blobs_of(id.operation)));
        prop_assert_eq!(keys::parse_intent(&keys::intent(id.operation)), Some(id.operation));
    }
}
