//! What the server does not understand, or does not offer, is refused before anything happens. The
//! requests are made from the tables of docs/serve.md.

use crate::harness::Running;

const DOCUMENT: &str = include_str!("../../../../docs/serve.md");
const HELLO: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

/// The rows of the table whose first head is this.
fn rows(title: &str) -> Vec<Vec<String>> {
    let begin = DOCUMENT.find(&format!("| {title} |")).unwrap();
    let table = DOCUMENT[begin..].lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim_start_matches('|').trim_end_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    table.map(cells).collect()
}

fn plain(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// A server with an object.
fn with_object() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"hello", &[("x-amz-meta-a", "1"), ("x-amz-tagging", "t=1")])
        .expect(200);
    s
}

/// Refuses to go on unless the object is as it was put, and alone.
fn check_unchanged(s: &Running, what: &str) {
    let got = s.get("/box/k");
    assert_eq!((got.status, got.body.as_slice()), (200, &b"hello"[..]), "{what}");
    assert_eq!(
        (got.header("x-amz-meta-a"), got.header("x-amz-tagging-count")),
        ("1", "1"),
        "{what}"
    );
    let listed = s.get("/box?list-type=2").expect(200);
    assert_eq!(listed.element("KeyCount"), "1", "{what}: {}", listed.text());
    assert!(!s.get("/box?uploads").expect(200).text().contains("<Upload>"), "{what}");
}

/// The reader of encoded words panicked at the first, and lost what stands between the second's.
#[test]
fn metadata_is_decoded_whole_or_refused() {
    let s = with_object();
    for value in [
        "=?=",
        "=?UTF-8?Q?a?= lost =?UTF-8?Q?b?=",
        "=?UTF-8?Q?a?= =?= =?UTF-8?Q?b?=",
        "=?UTF-16?B?AGE=?=",
        "=??Q?a?=",
        "=?UTF-8?X?a?=",
        "=?UTF-8?Q?a?b?=",
        "=?UTF-8?=",
        "=???=",
    ] {
        let headers = [("x-amz-meta-a", value)];
        s.call("PUT", "/box/new", b"x", &headers).expect(400);
        s.call("POST", "/box/new?uploads", b"", &headers).expect(400);
        let copies =
            [headers[0], ("x-amz-copy-source", "/box/k"), ("x-amz-metadata-directive", "REPLACE")];
        s.call("PUT", "/box/new", b"", &copies).expect(400);
        let form = format!(
            "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nnew\r\n--B\r\n\
             Content-Disposition: form-data; name=\"x-amz-meta-a\"\r\n\r\n{value}\r\n--B\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\nx\r\n--B--\r\n"
        );
        let kind = [("Content-Type", "multipart/form-data; boundary=B")];
        s.call("POST", "/box", form.as_bytes(), &kind).expect(400);
        check_unchanged(&s, value);
    }
    for (sent, kept) in [
        ("=?UTF-8?Q?a_=C3=A9?=", "=?UTF-8?Q?a_=C3=A9?="),
        ("=?utf-8?b?w6k=?= =?UTF-8?Q?=C3=A9?=", "=?UTF-8?B?w6nDqQ==?="),
        ("plain ?= text =?", "plain ?= text =?"),
    ] {
        s.call("PUT", "/box/k2", b"x", &[("x-amz-meta-a", sent)]).expect(200);
        let got = s.head("/box/k2").expect(200).header("x-amz-meta-a").to_owned();
        assert!(got == kept || got.starts_with("=?UTF-8?"), "{got}");
    }
}

/// minio-go asks for more than the rules; there are none, and that is what it hears.
#[test]
fn a_setting_that_no_bucket_has_is_told_to_all_clients() {
    let s = with_object();
    for query in ["lifecycle", "lifecycle&withUpdatedAt=true"] {
        let told = s.get(&format!("/box?{query}")).expect(404);
        assert_eq!(told.element("Code"), "NoSuchLifecycleConfiguration");
    }
    s.get("/box?lifecycle&other=true").expect(501);
    s.put("/box?lifecycle&withUpdatedAt=true", b"<x/>").expect(501);
}

#[test]
fn each_subresource_of_each_method_is_done_or_refused() {
    let s = with_object();
    let table = rows("request");
    let mut all: Vec<String> = Vec::new();
    for row in &table {
        let refused = row[2].split(", ").map(plain).filter(|cell| !cell.is_empty());
        let done = row[1].split(", ").filter_map(|cell| cell.strip_prefix('`')?.split('`').next());
        all.extend(refused.chain(done).map(str::to_owned));
    }
    all.extend(
        ["newSubresource", "AcL", "renameObject&x", "%61nnotation", "versionId=null"]
            .map(str::to_owned),
    );
    let mut refused = 0;
    for row in &table {
        let (method, path) = plain(&row[0]).split_once(' ').unwrap();
        let path = path.replace("BUCKET", "box").replace("KEY", "k");
        for query in &all {
            // A listed one is done, and tried elsewhere; what copies is by a header.
            let is_done = row[1].split(", ").any(|cell| cell.starts_with(&format!("`{query}`")));
            // A get may name the one version, as a head and a delete may.
            let version = query == "versionId=null" && path == "/box/k";
            // A key that selects with a second one is refused by itself as well.
            if is_done
                || query.starts_with("x-amz-copy")
                || (version && method != "PUT" && method != "POST")
            {
                continue;
            }
            let answer = s.call(method, &format!("{path}?{query}"), b"", &[]);
            assert_eq!(answer.status, 501, "{method} {path}?{query}: {}", answer.text());
            refused += 1;
        }
    }
    check_unchanged(&s, "all");
    assert!(refused > 500, "{refused}");
    for (method, id) in [("PUT", "RenameObject"), ("PUT", "CopyObject"), ("DELETE", "PutObject")] {
        s.call(method, &format!("/box/k?x-id={id}"), b"new", &[]).expect(501);
        check_unchanged(&s, id);
    }
    s.put("/box/k?x-id=PutObject&x-my-own=1", b"new").expect(200);
    assert_eq!(s.get("/box/k?x-id=GetObject").expect(200).body, b"new");
}

/// A request that does this operation, and a body for it.
fn request(operation: &str, id: &str) -> Option<(&'static str, String, &'static [u8])> {
    let tags = b"<Tagging><TagSet><Tag><Key>n</Key><Value>1</Value></Tag></TagSet></Tagging>";
    let delete = b"<Delete><Object><Key>k</Key></Object></Delete>";
    Some(match operation {
        "GetObject" => ("GET", "/box/k".into(), b""),
        "HeadObject" => ("HEAD", "/box/k".into(), b""),
        "PutObject" => ("PUT", "/box/k".into(), b"new"),
        "DeleteObject" => ("DELETE", "/box/k".into(), b""),
        "DeleteObjects" => ("POST", "/box?delete".into(), delete),
        "PutObjectTagging" => ("PUT", "/box/k?tagging".into(), tags),
        "PutObjectAcl" => ("PUT", "/box/k?acl".into(), b""),
        "CreateMultipartUpload" => ("POST", "/box/k?uploads".into(), b""),
        "UploadPart" => ("PUT", format!("/box/m?partNumber=1&uploadId={id}"), b"part"),
        "CompleteMultipartUpload" => ("POST", format!("/box/m?uploadId={id}"), b""),
        "AbortMultipartUpload" => ("DELETE", format!("/box/m?uploadId={id}"), b""),
        "PutBucketTagging" => ("PUT", "/box?tagging".into(), tags),
        "DeleteBucket" => ("DELETE", "/box".into(), b""),
        "ListObjectsV2" => ("GET", "/box?list-type=2".into(), b""),
        "Edit" => ("POST", "/box/k?holdall=insert&at=0".into(), b"x"),
        _ => return None,
    })
}

const TRIED: [&str; 15] = [
    "GetObject",
    "HeadObject",
    "PutObject",
    "DeleteObject",
    "DeleteObjects",
    "PutObjectTagging",
    "PutObjectAcl",
    "CreateMultipartUpload",
    "UploadPart",
    "CompleteMultipartUpload",
    "AbortMultipartUpload",
    "PutBucketTagging",
    "DeleteBucket",
    "ListObjectsV2",
    "Edit",
];

#[test]
fn each_condition_and_promise_is_honoured_or_refused() {
    let s = with_object();
    let mut tried = 0;
    let all = rows("condition").into_iter().chain(rows("promise"));
    let each = |row: Vec<String>| {
        let names: Vec<String> = row[0].split(", ").map(|name| plain(name).to_owned()).collect();
        names.into_iter().map(move |name| [vec![name], row[1..].to_vec()].concat())
    };
    for row in all.flat_map(each) {
        let name = plain(&row[0]).replace('*', "x");
        let honoured: Vec<&str> = row[1].split([',', ' ']).collect();
        let value = match name.as_str() {
            "range" => "bytes=0-1",
            name if name.contains("size") || name.contains("bytes") => "5",
            name if name.contains("since") || name.contains("time") => {
                "Sun, 06 Nov 1994 08:49:37 GMT"
            }
            _ => "\"odd\"",
        };
        for operation in TRIED.into_iter().filter(|name| !honoured.contains(name)) {
            let (method, path, body) = request(operation, "00").unwrap();
            let answer = s.call(method, &path, body, &[(&name, value)]);
            assert_eq!(answer.status, 501, "{operation} {name}: {}", answer.text());
            tried += 1;
        }
    }
    assert!(tried > 250, "{tried}");
    check_unchanged(&s, "all");
    for (name, value) in [
        ("x-amz-acl", "private"),
        ("x-amz-acl", "bucket-owner-full-control"),
        ("x-amz-storage-class", "STANDARD"),
        ("x-amz-bucket-object-lock-enabled", "false"),
    ] {
        s.call("PUT", "/box/usual", b"x", &[(name, value)]).expect(200);
    }
    for value in ["GLACIER", "REDUCED_REDUNDANCY", "standard", ""] {
        s.call("PUT", "/box/k", b"new", &[("x-amz-storage-class", value)]).expect(501);
    }
    s.call("PUT", "/box/k", b"new", &[("x-amz-never-heard-of", "1")]).expect(501);
    assert_eq!(s.get("/box/k").body, b"hello");
}

fn form(fields: &[(&str, &str)], file: &str) -> Vec<u8> {
    let mut text = String::new();
    for (name, value) in fields {
        text +=
            &format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    text += &format!(
        "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file}\"\r\n\r\nbytes\r\n--B--\r\n"
    );
    text.into_bytes()
}

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=B");

#[test]
fn a_form_asks_for_what_is_done() {
    let s = with_object();
    for (name, value) in [
        ("x-amz-storage-class", "GLACIER"),
        ("X-Amz-Server-Side-Encryption", "AES256"),
        ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-website-redirect-location", "/a"),
        ("x-amz-never-heard-of", "1"),
        ("if-none-match", "*"),
        ("If-Match", HELLO),
    ] {
        let body = form(&[("key", "k"), (name, value)], "f");
        s.call("POST", "/box", &body, &[FORM]).expect(501);
        check_unchanged(&s, name);
    }
    let twice = form(&[("key", "k"), ("acl", "private"), ("acl", "public-read")], "f");
    s.call("POST", "/box", &twice, &[FORM]).expect(400);
    s.call("POST", "/box?delete", &form(&[("key", "k")], "f"), &[FORM]).expect(501);
    s.call("POST", "/box?x-amz-meta-a=1", &form(&[("key", "k")], "f"), &[FORM]).expect(400);
    check_unchanged(&s, "forms");
    let fields =
        [("key", "k"), ("x-amz-storage-class", "STANDARD"), ("acl", "private"), ("submit", "go")];
    s.call("POST", "/box", &form(&fields, "f"), &[FORM]).expect(204);
    assert_eq!(s.get("/box/k").body, b"bytes");
}

#[test]
fn the_name_of_a_file_stands_in_a_form() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let fields = [
        ("key", "up/${filename}"),
        ("success_action_status", "201"),
        ("x-amz-meta-name", "is ${filename}"),
    ];
    let made = s.call("POST", "/box", &form(&fields, "C:\\dir/a&b.txt"), &[FORM]).expect(201);
    assert_eq!(made.element("Key"), "up/a&amp;b.txt");
    let got = s.get("/box/up/a&b.txt").expect(200);
    assert_eq!((got.body.as_slice(), got.header("x-amz-meta-name")), (&b"bytes"[..], "is a&b.txt"));
    s.head("/box/$%7Bfilename%7D").expect(404);
}
