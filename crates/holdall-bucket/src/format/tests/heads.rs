//! The head: what opens and what is refused.

use super::super::{FORMAT, Head, MAX_FANOUT, MAX_PAYLOAD, MAX_RETIRED, MAX_SLICES, Sizes};
use super::id;
use holdall::Error;
use serde_json::{Value, json};

fn decode(edit: impl Fn(&mut Value)) -> holdall::Result<Head> {
    let stored = Head::new(id(7), Sizes::default()).encode().unwrap();
    let mut head: Value = serde_json::from_slice(&stored).unwrap();
    edit(&mut head);
    Head::decode(&serde_json::to_vec(&head).unwrap(), "the store")
}

#[test]
fn a_head_comes_back() {
    let sizes = Sizes { embedded: 64, segment: 256, slices: 8, fanout: 4, retired: 4, grace: 0 };
    for sizes in [Sizes::default(), sizes] {
        let head = Head::new(id(7), sizes);
        assert_eq!(Head::decode(&head.encode().unwrap(), "h").unwrap(), head);
    }
}

#[test]
fn what_is_no_head_of_ours_is_refused() {
    assert!(decode(|_| ()).is_ok());
    let none = |read: holdall::Result<Head>| matches!(read, Err(Error::NotAStore { .. }));
    assert!(
        none(Head::decode(b"", "h"))
            && none(Head::decode(b"{", "h"))
            && none(Head::decode(b"[]", "h"))
    );
    assert!(none(decode(|head| head["holds"] = json!("backups"))));
    assert!(none(decode(|head| head["holds"] = json!(1))));
    for store in ["", "7", "0707070707070707070707070707070G", "07070707070707070707070707070707 "]
    {
        assert!(none(decode(|head| head["store"] = json!(store))), "{store:?}");
    }
}

#[test]
fn what_later_builds_write_is_refused() {
    let refused = |read: holdall::Result<Head>| matches!(read, Err(Error::Unsupported { .. }));
    assert!(refused(decode(|head| head["format"] = json!(FORMAT + 1))));
    assert!(refused(decode(|head| head["format"] = json!("1"))));
    assert!(refused(decode(|head| head["features"] = json!(["unheard-of"]))));
    assert!(refused(decode(|head| head["more"] = json!(1))));
    assert!(refused(decode(|head| head["sizes"]["more"] = json!(1))));
    assert!(refused(decode(|head| head["sizes"] = json!({}))));
    assert!(refused(decode(|head| head["sizes"]["segment"] = json!(-1))));
}

#[test]
fn sizes_that_no_store_can_have() {
    let fits = |edit: &dyn Fn(&mut Sizes)| {
        let mut sizes = Sizes::default();
        edit(&mut sizes);
        let read = decode(|head| head["sizes"] = serde_json::to_value(sizes).unwrap());
        assert_eq!(read.is_ok(), sizes.check().is_ok(), "{sizes:?}");
        sizes.check().is_ok()
    };
    assert!(fits(&|sizes| sizes.segment = sizes.embedded));
    assert!(!fits(&|sizes| sizes.segment = sizes.embedded - 1));
    assert!(!fits(&|sizes| (sizes.segment, sizes.embedded) = (0, 0)));
    assert!(!fits(&|sizes| sizes.segment = MAX_PAYLOAD + 1));
    assert!(fits(&|sizes| sizes.embedded = 1 << 20));
    assert!(!fits(&|sizes| sizes.embedded = (1 << 20) + 1));
    assert!(fits(&|sizes| sizes.fanout = 4));
    assert!(!fits(&|sizes| sizes.fanout = 3));
    assert!(!fits(&|sizes| sizes.fanout = MAX_FANOUT + 1));
    assert!(fits(&|sizes| sizes.slices = sizes.fanout));
    assert!(!fits(&|sizes| sizes.slices = sizes.fanout - 1));
    assert!(!fits(&|sizes| sizes.slices = MAX_SLICES + 1));
    assert!(fits(&|sizes| sizes.retired = 1));
    assert!(!fits(&|sizes| sizes.retired = 0));
    assert!(!fits(&|sizes| sizes.retired = MAX_RETIRED + 1));
    assert!(fits(&|sizes| sizes.grace = u64::MAX));
}
