//! Requests under conditions.

use crate::harness::Running;

const HELLO: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

#[test]
fn a_put_under_a_condition_happens_only_if_it_is_met() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"hello", &[("if-match", HELLO)]).expect(404);
    s.call("PUT", "/box/k", b"hello", &[("if-none-match", "*")]).expect(200);
    s.call("PUT", "/box/k", b"late", &[("if-none-match", "*")]).expect(412);
    s.call("PUT", "/box/k", b"late", &[("if-match", "\"00\"")]).expect(412);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.call("PUT", "/box/k", b"next", &[("if-match", HELLO)]).expect(200);
    assert_eq!(s.get("/box/k").body, b"next");
    let long = crate::harness::bytes(3 << 20, 0);
    s.call("PUT", "/box/k", &long, &[("if-none-match", "*")]).expect(412);
    assert_eq!(s.get("/box/k").body, b"next");
}

#[test]
fn one_of_many_conditional_puts_wins() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let won: usize = std::thread::scope(|scope| {
        let put = |n: u8| {
            let s = &s;
            scope.spawn(move || {
                s.call("PUT", "/box/k", &[n], &[("if-none-match", "*")]).status == 200
            })
        };
        let all: Vec<_> = (0..8).map(put).collect();
        all.into_iter().map(|t| usize::from(t.join().unwrap())).sum()
    });
    assert_eq!(won, 1);
}

#[test]
fn reads_tell_what_did_not_change() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    let get = |name, value| s.call("GET", "/box/k", b"", &[(name, value)]).status;
    assert_eq!(get("if-none-match", HELLO), 304);
    assert_eq!(get("if-none-match", "\"00\""), 200);
    assert_eq!(get("if-match", HELLO), 200);
    assert_eq!(get("if-match", "\"00\""), 412);
    let modified = s.head("/box/k").header("last-modified").to_owned();
    assert_eq!(get("if-modified-since", &modified), 304);
    assert_eq!(get("if-unmodified-since", &modified), 200);
    assert_eq!(get("if-unmodified-since", "Mon, 01 Jan 2001 00:00:00 GMT"), 412);
    assert_eq!(get("if-modified-since", "Mon, 01 Jan 2001 00:00:00 GMT"), 200);
}

#[test]
fn a_delete_under_a_condition_happens_only_if_it_is_met() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    s.call("DELETE", "/box/k", b"", &[("if-match", "\"00\"")]).expect(412);
    s.head("/box/k").expect(200);
    s.call("DELETE", "/box/k", b"", &[("if-match", HELLO)]).expect(204);
    s.head("/box/k").expect(404);
}
