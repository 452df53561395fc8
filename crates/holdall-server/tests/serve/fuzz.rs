//! Requests with changed bytes, over a socket: whatever comes, the server answers or hangs up,
//! nothing panics, the store stays sound.
//!
//! `HOLDALL_FUZZ_RUNS` requests (600 if not set) from seed `HOLDALL_FUZZ_SEED`.

use crate::harness::{Running, engine};
use holdall_server::{Config, Grant, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Requests of every kind, most of them well-formed.
fn requests() -> Vec<Vec<u8>> {
    let with = |line: &str, headers: &str, body: &str| {
        let len = body.len();
        let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}");
        format!("{head}Content-Length: {len}\r\n\r\n{body}").into_bytes()
    };
    let plain = |line: &str| with(line, "", "");
    let signed = "Authorization: AWS4-HMAC-SHA256 Credential=root/20261124/us-east-1/s3/\
                  aws4_request, SignedHeaders=host;x-amz-date, Signature=00ff\r\n\
                  x-amz-date: 20261124T000000Z\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n";
    let chunked = "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n\
                   x-amz-decoded-content-length: 5\r\nx-amz-trailer: x-amz-checksum-crc32\r\n\
                   Content-Encoding: aws-chunked\r\n";
    let form = "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nf\r\n\
                --B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n\
                bytes\r\n--B--\r\n";
    let parts = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"00\"</ETag>\
                 </Part></CompleteMultipartUpload>";
    let delete = "<Delete><Object><Key>a</Key><VersionId>null</VersionId></Object></Delete>";
    let tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    let concat = r#"{"parts":[{"key":"a","range":"0-1"},{"bucket":"box","key":"b"}]}"#;
    vec![
        plain("GET /"),
        plain("PUT /box"),
        plain("GET /box?list-type=2&prefix=a%2F&delimiter=%2F&max-keys=10&encoding-type=url"),
        plain("GET /box?marker=a&max-keys=3"),
        plain("GET /box?versions"),
        plain("GET /box?uploads&max-uploads=3"),
        with("PUT /box/a", "x-amz-meta-a: =?UTF-8?Q?=C3=A9?=\r\nx-amz-tagging: a=b\r\n", "hello"),
        with("PUT /box/b", "x-amz-checksum-crc32: NhCmhg==\r\n", "hello"),
        with("PUT /box/c", chunked, "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"),
        with("PUT /box/d", "x-amz-copy-source: /box/a?versionId=null\r\n", ""),
        with("PUT /box/a", "x-amz-write-offset-bytes: 5\r\n", " world"),
        with("GET /box/a", "Range: bytes=1-3\r\nIf-None-Match: \"00\"\r\n", ""),
        with("GET /box/a", "If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT\r\n", ""),
        plain("GET /box/a?partNumber=1&response-content-type=text%2Fplain"),
        plain("HEAD /box/b"),
        with("GET /box/b?attributes", "x-amz-object-attributes: ETag,Checksum\r\n", ""),
        plain("POST /box/m?uploads"),
        with("PUT /box/m?partNumber=1&uploadId=00", "", "part"),
        with("POST /box/m?uploadId=00", "", parts),
        with("POST /box?delete", "", delete),
        with("PUT /box/a?tagging", "", tags),
        plain("GET /box/a?tagging"),
        with("POST /box", "Content-Type: multipart/form-data; boundary=B\r\n", form),
        with("POST /box/a?holdall=insert&at=2", "If-Match: *\r\n", "xx"),
        with("POST /box/a?holdall=replace&range=0-1", "", "yy"),
        plain("POST /box/a?holdall=delete&range=0-0"),
        with("POST /box/e?holdall=concat", "", concat),
        with("GET /box/a", signed, ""),
        plain(
            "GET /box/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=root%2F20261124%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261124T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00",
        ),
        plain("GET /-/metrics"),
        plain("DELETE /box/d"),
    ]
}

/// Changes some bytes: flips, cuts, repeats, swaps in of another request's.
fn change(rng: &mut SmallRng, request: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..rng.random_range(0..6) {
        if request.is_empty() {
            return;
        }
        let at = rng.random_range(0..request.len());
        let len = rng.random_range(0..16).min(request.len() - at);
        match rng.random_range(0..6) {
            0 => request[at] ^= 1 << rng.random_range(0..8),
            1 => request[at] = rng.random(),
            2 => drop(request.drain(at..at + len)),
            3 => {
                let piece = request[at..at + len].to_vec();
                request.splice(at..at, piece.repeat(rng.random_range(1..40)));
            }
            4 => {
                let from = rng.random_range(0..other.len());
                let piece = &other[from..(from + len).min(other.len())];
                request.splice(at..at + len, piece.iter().copied());
            }
            _ => {
                let odd: [&[u8]; 8] =
                    [b"%00", b"%ff", b"..", b"-1", b"99999999999999999999", b"\0", b"&", b"\r\n"];
                request.splice(at..at, odd[rng.random_range(0..odd.len())].iter().copied());
            }
        }
    }
}

pub fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn changed_requests_do_no_harm() {
    let (runs, seed) = (number("HOLDALL_FUZZ_RUNS", 600), number("HOLDALL_FUZZ_SEED", 1));
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let ours = std::thread::current().name().is_some_and(|name| name.starts_with("tokio"));
        PANICS.fetch_add(usize::from(ours), Ordering::Relaxed);
        before(info);
    }));
    let limits = Limits { idle_seconds: 1, header_seconds: 1, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    let (requests, mut answered) = (requests(), 0);
    let mut rng = SmallRng::seed_from_u64(seed);
    for run in 0..runs {
        let pick = rng.random_range(0..requests.len());
        let mut request = requests[pick].clone();
        let other = &requests[rng.random_range(0..requests.len())];
        change(&mut rng, &mut request, other);
        let mut stream = TcpStream::connect(&s.address).unwrap();
        // A request that lacks its end is not waited for.
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = stream.write_all(&request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        answered += u64::from(answer.starts_with(b"HTTP/1.1 2"));
        let panics = PANICS.load(Ordering::Relaxed);
        assert_eq!(panics, 0, "run {run} of seed {seed}: {}", String::from_utf8_lossy(&request));
    }
    // Most runs change little: a server that refused everything would not be tested.
    assert!(answered * 10 > runs, "{answered} of {runs} were answered");
    s.get("/-/health").expect(200);
    let store = s.store();
    let _dir = s.stop();
    assert!(engine(&store).verify(&mut |_| {}).unwrap().is_sound());
}
