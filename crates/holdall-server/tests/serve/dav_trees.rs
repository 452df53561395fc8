//! Trees that WebDAV copies, moves and deletes: nothing is lost that was not named, and what
//! belongs to a folder or a collection goes along.

use crate::harness::{Answer, Running};
use holdall_server::{Config, Grant};

/// A server of two stores, with the collections `box` and `away`, one in each.
fn serve() -> Running {
    let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
    let dir = tempfile::tempdir().unwrap();
    for (store, name) in [("a.holdall", "box"), ("b.holdall", "away")] {
        let store = holdall::Store::create(dir.path().join(store)).unwrap();
        store.write(|tx| tx.collection(name)?.create_collection()).unwrap();
    }
    let config = Config { public_acls: true, ..config };
    Running::within(dir, config, &["a.holdall", "b.holdall"])
}

/// All objects of a collection with their bytes.
fn all(server: &Running, name: &str) -> Vec<(String, String)> {
    let listed = server.get(&format!("/{name}?list-type=2")).expect(200).text();
    let keys = listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
    keys.map(|key| (key.clone(), server.get(&format!("/{name}/{key}")).expect(200).text()))
        .collect()
}

fn fill(server: &Running, keys: &[&str]) {
    for (key, _) in all(server, "box") {
        server.delete(&format!("/box/{key}")).expect(204);
    }
    for key in keys {
        server.put(&format!("/box/{key}"), key.as_bytes()).expect(200);
    }
}

fn carry(server: &Running, method: &str, from: &str, to: &str, more: &[(&str, &str)]) -> Answer {
    let to = format!("http://{}/-/dav/{to}", server.address);
    let headers = [&[("Destination", to.as_str())], more].concat();
    server.call(method, &format!("/-/dav/{from}"), b"", &headers)
}

/// Refuses to go on unless a copy, and a move, is answered so and changes nothing.
#[track_caller]
fn refused(server: &Running, statuses: &[u16], from: &str, to: &str) {
    let before = (all(server, "box"), all(server, "away"));
    for method in ["COPY", "MOVE"] {
        for overwrite in ["T", "F"] {
            let answer = carry(server, method, from, to, &[("Overwrite", overwrite)]);
            let known = statuses.contains(&answer.status) || answer.status == 412;
            assert!(known && (overwrite == "F" || answer.status != 412), "{method} {answer:?}");
            assert_eq!((all(server, "box"), all(server, "away")), before, "{method} {from} {to}");
        }
    }
}

#[test]
fn no_object_takes_a_name_of_folders() {
    for keys in [&["f", "/lead1", "/lead2", "a//b", "dir/x"][..], &["f", "a/b", "dir/x"]] {
        let server = serve();
        server.put("/away/f", b"f").expect(200);
        fill(&server, keys);
        for from in ["box/f", "away/f"] {
            for to in ["holdall-hex-", "a/holdall-hex-", "dir/holdall-hex-", "holdall-hex-/"] {
                refused(&server, &[409], from, &format!("box/{to}"));
            }
        }
        let before = all(&server, "box");
        for to in ["holdall-hex-", "a/holdall-hex-"] {
            server.call("PUT", &format!("/-/dav/box/{to}"), b"new", &[]).expect(405);
            let lock = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope><locktype>\
                <write/></locktype></lockinfo>";
            let locked = server.call("LOCK", &format!("/-/dav/box/{to}"), lock, &[]);
            let there = [200, 403].contains(&locked.status);
            assert!(there, "{to}: {}", locked.text());
        }
        assert_eq!(all(&server, "box"), before);
    }
    // A folder may have it.
    let server = serve();
    fill(&server, &["d/x"]);
    carry(&server, "COPY", "box/d/", "box/holdall-hex-/", &[]).expect(201);
    assert_eq!(all(&server, "box"), [("/x".into(), "d/x".into()), ("d/x".into(), "d/x".into())]);
}

#[test]
fn a_destination_in_its_source_is_not_removed() {
    let server = serve();
    fill(&server, &["o/sub/z"]);
    refused(&server, &[403], "box/o/", "box/o/sub/");
    refused(&server, &[403], "box/o/", "box/o/sub/z");
    refused(&server, &[403], "box/", "box/o/");
    refused(&server, &[403], "box/o/sub/", "box/o/");
    refused(&server, &[403], "box/o/sub/z", "box/o/");
    refused(&server, &[403], "box/o/sub/z", "box/");
    fill(&server, &["o/sub", "o/y"]);
    refused(&server, &[403], "box/o/", "box/o/sub");
    fill(&server, &["a/x", "a//b"]);
    refused(&server, &[403], "box/a/", "box/a/holdall-hex-/");
    let zero = carry(&server, "COPY", "box/a/", "box/a/holdall-hex-/", &[("Depth", "0")]);
    zero.expect(403);
    assert_eq!(all(&server, "box").len(), 2);
    // If nothing is it is made, without a copy of itself.
    carry(&server, "COPY", "box/a/", "box/a/in/", &[]).expect(201);
    let keys: Vec<_> = all(&server, "box").into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a//b", "a/in//b", "a/in/x", "a/x"]);
}

#[test]
fn a_destination_is_as_after_a_delete() {
    let server = serve();
    fill(&server, &["d/x", "e/old"]);
    carry(&server, "COPY", "box/d/", "box/e/", &[("Depth", "0")]).expect(204);
    assert_eq!(all(&server, "box"), [("d/x".into(), "d/x".into()), ("e/".into(), String::new())]);
    for (from, to) in [("box", "other"), ("box", "away")] {
        server.put(&format!("/{to}"), b"");
        server.put(&format!("/{to}/old"), b"old").expect(200);
        server.call("PUT", &format!("/{to}?acl"), b"", &[("x-amz-acl", "public-read")]).expect(200);
        let (from, at) = (format!("{from}/"), format!("{to}/"));
        carry(&server, "COPY", &from, &at, &[("Depth", "0")]).expect(204);
        assert_eq!(all(&server, to), []);
        let acl = server.get(&format!("/{to}?acl")).expect(200).text();
        assert!(!acl.contains("AllUsers"), "{acl}");
    }
    assert_eq!(all(&server, "box").len(), 2);
}

const COLOUR: &[u8] =
    b"<propertyupdate xmlns=\"DAV:\"><set><prop><c xmlns=\"urn:c\">red</c></prop>\
    </set></propertyupdate>";

fn colour(server: &Running, path: &str) -> bool {
    let body = b"<propfind xmlns=\"DAV:\"><allprop/></propfind>";
    let found = server.call("PROPFIND", &format!("/-/dav/{path}"), body, &[("Depth", "0")]);
    found.expect(207).text().contains(">red<")
}

#[test]
fn what_a_collection_has_goes_along() {
    let server = serve();
    let tags = b"<Tagging><TagSet><Tag><Key>a</Key><Value>tag</Value></Tag></TagSet></Tagging>";
    let cors = b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET\
        </AllowedMethod></CORSRule></CORSConfiguration>";
    let has = |name: &str| {
        let acl = server.get(&format!("/{name}?acl")).expect(200).text();
        let tags = server.get(&format!("/{name}?tagging"));
        let cors = server.get(&format!("/{name}?cors"));
        [
            tags.status == 200 && tags.text().contains("tag"),
            cors.status == 200,
            acl.contains("AllUsers"),
            colour(&server, &format!("{name}/")),
        ]
    };
    // New collections lie in the first store, so that the second one is another store's.
    for from in ["box", "away"] {
        server.put(&format!("/{from}/k"), b"bytes").expect(200);
        server.put(&format!("/{from}?tagging"), tags);
        server.put(&format!("/{from}?cors"), cors).expect(200);
        server
            .call("PUT", &format!("/{from}?acl"), b"", &[("x-amz-acl", "public-read")])
            .expect(200);
        server.call("PROPPATCH", &format!("/-/dav/{from}/"), COLOUR, &[]).expect(207);
        assert_eq!(has(from), [true; 4]);
        let copied = format!("{from}-copy");
        carry(&server, "COPY", &format!("{from}/"), &format!("{copied}/"), &[]).expect(201);
        assert_eq!(has(&copied), [false, false, false, true]);
        // A folder has no place for them.
        let folder = format!("{copied}/in/");
        carry(&server, "MOVE", &format!("{from}/"), &folder, &[]).expect(409);
        assert_eq!(has(from), [true; 4]);
        let moved = format!("{from}-moved");
        carry(&server, "MOVE", &format!("{from}/"), &format!("{moved}/"), &[]).expect(201);
        assert_eq!(has(&moved), [true; 4]);
        assert_eq!(all(&server, &moved), [("k".into(), "bytes".into())]);
        server.get(&format!("/{from}")).expect(404);
        // Over another one: as after a delete.
        carry(&server, "COPY", &format!("{copied}/"), &format!("{moved}/"), &[]).expect(204);
        assert_eq!(has(&moved), [false, false, false, true]);
    }
}

#[test]
fn a_folder_keeps_its_properties_in_another_store() {
    let server = serve();
    server.call("MKCOL", "/-/dav/box/d", b"", &[]).expect(201);
    server.put("/box/d/x", b"x").expect(200);
    server.call("PROPPATCH", "/-/dav/box/d/", COLOUR, &[]).expect(207);
    carry(&server, "COPY", "box/d/", "away/zero/", &[("Depth", "0")]).expect(201);
    carry(&server, "COPY", "box/d/", "away/deep/", &[]).expect(201);
    assert!(colour(&server, "away/zero/") && colour(&server, "away/deep/"));
    let there = [("deep/", ""), ("deep/x", "x"), ("zero/", "")];
    assert_eq!(all(&server, "away"), there.map(|(key, bytes)| (key.into(), bytes.into())));
}

#[test]
fn an_object_of_another_store_takes_a_place_at_once() {
    let server = serve();
    server.put("/box/f", b"new").expect(200);
    server.put("/away/f", b"old").expect(200);
    for method in ["COPY", "MOVE"] {
        let done = carry(&server, method, "box/f", "away/f", &[]).expect(204);
        let transactions = if method == "COPY" { "" } else { "2" };
        assert!(["", transactions].contains(&done.header("holdall-transactions")), "{done:?}");
        assert_eq!(server.get("/away/f").expect(200).text(), "new");
    }
    server.get("/box/f").expect(404);
}

#[test]
fn a_copy_has_the_time_that_it_is_given() {
    let server = serve();
    fill(&server, &["f", "d/x"]);
    let time = [("X-OC-Mtime", "784111777")];
    for (method, to) in [("COPY", "box/g"), ("COPY", "away/g"), ("MOVE", "box/h")] {
        let done = carry(&server, method, "box/f", to, &time).expect(201);
        assert_eq!(done.header("x-oc-mtime"), "accepted");
        let told = server.get(&format!("/{to}")).expect(200);
        assert_eq!(told.header("last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(told.text(), "f");
    }
    carry(&server, "COPY", "box/d/", "box/e/", &time).expect(400);
    carry(&server, "COPY", "box/h", "box/e", &[("X-OC-Mtime", "x")]).expect(400);
    server.get("/box/e").expect(404);
}

#[test]
fn the_servers_own_collection_is_not_made() {
    let server = serve();
    fill(&server, &["d/x"]);
    server.call("MKCOL", "/-/dav/.s3", b"", &[]).expect(403);
    server.call("MKCOL", "/-/dav/.s3/", b"", &[]).expect(403);
    for method in ["COPY", "MOVE"] {
        carry(&server, method, "box/d/", ".s3/", &[]).expect(403);
        carry(&server, method, "box/", ".s3", &[]).expect(403);
    }
    assert_eq!(all(&server, "box"), [("d/x".into(), "d/x".into())]);
}

#[test]
fn a_time_that_nobody_knows_meets_no_condition() {
    let server = serve();
    fill(&server, &["d/x"]);
    for date in ["Wed, 25 Nov 2000 00:00:00 GMT", "Wed, 25 Nov 2099 00:00:00 GMT"] {
        let headers = [("If-Unmodified-Since", date)];
        for path in ["/-/dav/box/d/", "/-/dav/box/"] {
            server.call("DELETE", path, b"", &headers).expect(412);
            server.call("PROPPATCH", path, COLOUR, &headers).expect(412);
        }
        carry(&server, "MOVE", "box/d/", "box/e/", &headers).expect(412);
    }
    assert_eq!(all(&server, "box"), [("d/x".into(), "d/x".into())]);
}
