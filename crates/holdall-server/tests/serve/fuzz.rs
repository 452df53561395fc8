//! Requests with changed bytes, over a socket: whatever comes, the server answers or hangs up,
//! nothing panics, its memory stays bounded, the store stays sound.
//!
//! `HOLDALL_FUZZ_RUNS` requests (600 if not set) from seed `HOLDALL_FUZZ_SEED`, or as many as
//! `HOLDALL_FUZZ_MINUTES` leave time for.

use crate::fuzz_requests::{of_page, of_s3, of_webdav};
use crate::harness::{KEYS, Running, engine};
use crate::web::Page;
use holdall_server::{Config, Grant, Limits};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Bytes by which the process may grow once it is warm.
const GROWTH: u64 = 128 << 20;
static HOOK: Once = Once::new();
static PANICS: AtomicUsize = AtomicUsize::new(0);

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

fn watch_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let ours = std::thread::current().name().is_some_and(|name| name.starts_with("tokio"));
            PANICS.fetch_add(usize::from(ours), Ordering::Relaxed);
            before(info);
        }));
    });
}

/// Bytes of memory that the process holds (`VmRSS`), or held at most (`VmHWM`); Linux only.
fn memory(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    let kib: u64 = line.trim_start_matches(':').trim().split(' ').next()?.parse().ok()?;
    Some(kib << 10)
}

fn serve() -> Running {
    let limits = Limits { idle_seconds: 1, header_seconds: 1, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"])
}

/// Sends changed requests; the share of them that are answered well is more than a twentieth.
fn play(s: Running, protocol: &str, requests: &[Vec<u8>]) {
    watch_panics();
    let (runs, seed) = (number("HOLDALL_FUZZ_RUNS", 600), number("HOLDALL_FUZZ_SEED", 1));
    let time = Duration::from_secs(60 * number("HOLDALL_FUZZ_MINUTES", 0));
    let mut rng = SmallRng::seed_from_u64(seed);
    let (begun, mut run, mut answered, mut warm) = (Instant::now(), 0, 0, None);
    while if time.is_zero() { run < runs } else { begun.elapsed() < time } {
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
        run += 1;
        if warm.is_none() && begun.elapsed() > time / 4 {
            warm = memory("VmRSS");
        }
    }
    let peak = memory("VmHWM").unwrap_or_default() >> 20;
    println!("{protocol}: {run} requests, {answered} answered 2xx, {peak} MiB at most");
    if let (Some(warm), Some(now), false) = (warm, memory("VmRSS"), time.is_zero()) {
        assert!(now < warm + GROWTH, "it grew from {warm} to {now} bytes");
    }
    // Most runs change little: a server that refused everything would not be tested.
    assert!(answered * 20 > run, "{answered} of {run} were answered");
    s.get("/-/health").expect(200);
    let store = s.store();
    let _dir = s.stop();
    assert!(engine(&store).verify().unwrap().is_sound());
}

#[test]
fn changed_requests_over_s3_do_no_harm() {
    play(serve(), "s3", &of_s3());
}

#[test]
fn changed_requests_over_webdav_do_no_harm() {
    play(serve(), "webdav", &of_webdav());
}

#[test]
fn changed_requests_over_the_page_do_no_harm() {
    let s = serve();
    let session = Page::open(&s, KEYS).headers();
    play(s, "page", &of_page(&session));
}
