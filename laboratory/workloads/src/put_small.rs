//! Durable single puts of small objects.

use crate::bare::SmallSync;
use crate::report::{Goal, Row, Section};
use crate::run::{Run, interleave, rate, rate_of_threads};
use crate::{data, run};
use anyhow::Result;
use holdall::{Options, Store};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Bytes of an object.
const LEN: usize = 200;
/// Threads that put at the same time.
const THREADS: usize = 8;
/// Bytes of the objects that the other thread streams.
const STREAMED: usize = 100 << 20;

/// Creates or puts objects with ever new names, one durable commit each; for many threads.
struct Putter<'a> {
    store: &'a Store,
    next: AtomicU64,
    named: bool,
    bytes: Vec<u8>,
}

impl<'a> Putter<'a> {
    fn new(store: &'a Store, named: bool) -> Self {
        Self { store, next: AtomicU64::new(0), named, bytes: data::bytes(LEN, 2) }
    }

    fn put(&self) -> Result<()> {
        if self.named {
            let name = data::name(self.next.fetch_add(1, SeqCst));
            self.store.write(|tx| tx.put(name, &self.bytes))?;
        } else {
            self.store.write(|tx| tx.create(&self.bytes))?;
        }
        Ok(())
    }
}

/// Runs all parts.
pub fn run(run: &mut Run) -> Result<()> {
    let mut section = Section::new("Durable puts of 200 bytes, one commit each");
    rates(run, &mut section)?;
    beside_a_stream(run, &mut section)?;
    section.remark(
        "Against: one thread: 4 KiB pwrite + fdatasync, round and round in a preallocated and \
         written file; eight threads: our own one thread, and for comparison eight bare loops \
         with a file each against one; beside a stream: the same without it.",
    );
    run.finish(section);
    Ok(())
}

fn rates(run: &Run, section: &mut Section) -> Result<()> {
    run.say("small puts, one and eight threads");
    let time = run.slice();
    let unnamed_store = run.store("put-unnamed", &Options::default())?;
    let named_store = run.store("put-named", &Options::default())?;
    let (unnamed, named) = (Putter::new(&unnamed_store, false), Putter::new(&named_store, true));
    let mut bare = Vec::new();
    for i in 0..THREADS {
        bare.push(Mutex::new(SmallSync::new(&run.path(&format!("bare-{i}")))?));
    }
    let bare_put = |i: usize| match bare[i].lock() {
        Ok(mut file) => file.put(),
        Err(_) => anyhow::bail!("a thread panicked"),
    };
    // The log grows to its size in the first seconds.
    rate(time * 2, || unnamed.put())?;
    rate(time * 2, || named.put())?;
    let figures = interleave(
        run.rounds,
        &mut [
            &mut || rate(time, || bare_put(0)),
            &mut || rate(time, || unnamed.put()),
            &mut || rate(time, || named.put()),
            &mut || rate_of_threads(THREADS, time, &|_| unnamed.put()),
            &mut || rate_of_threads(THREADS, time, &|_| named.put()),
            &mut || rate_of_threads(THREADS, time, &bare_put),
        ],
    )?;
    let [one, unnamed1, named1, unnamed8, named8, bare8] = &figures[..] else {
        anyhow::bail!("six sides");
    };
    section.push(Row::against("create, unnamed", "per s", unnamed1, one).goal(Goal::AtLeast(0.8)));
    section.push(Row::against("put, named", "per s", named1, one).goal(Goal::AtLeast(0.8)));
    let goal = Goal::AtLeast(3.0);
    section.push(Row::against("create, 8 threads", "per s", unnamed8, unnamed1).goal(goal));
    section.push(Row::against("put, 8 threads", "per s", named8, named1).goal(goal));
    section.push(Row::against("bare loop, 8 threads, a file each", "per s", bare8, one));
    unnamed_store.close()?;
    named_store.close()?;
    for i in 0..THREADS {
        run.remove(&format!("bare-{i}"))?;
    }
    run.remove("put-unnamed")?;
    run.remove("put-named")
}

/// Median microseconds of `put` for `time`.
fn latency(time: Duration, mut put: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut each = Vec::new();
    rate(time, || {
        let start = Instant::now();
        put()?;
        each.push(start.elapsed().as_secs_f64() * 1e6);
        Ok(())
    })?;
    Ok(crate::report::Stats::of(&each).median)
}

/// Runs `work` while another thread calls `stream`, from after its first call on. Returns
/// what `work` does and the MB/s of the stream.
fn beside(
    mut stream: impl FnMut() -> Result<()> + Send,
    work: impl FnOnce() -> Result<f64>,
) -> Result<(f64, f64)> {
    let (stop, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            run::seconds(|| {
                while !stop.load(SeqCst) {
                    stream()?;
                    count.fetch_add(1, SeqCst);
                }
                Ok(())
            })
        });
        while count.load(SeqCst) == 0 && !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let figure = work();
        stop.store(true, SeqCst);
        let seconds = thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        let bytes = count.load(SeqCst) as f64 * STREAMED as f64;
        Ok((figure?, bytes / 1e6 / seconds))
    })
}

fn beside_a_stream(run: &Run, section: &mut Section) -> Result<()> {
    run.say("small puts beside a stream of large objects");
    let time = run.slice() * 2;
    let large = data::bytes(STREAMED, 3);
    let store = run.store("mixed", &Options::default())?;
    let mut bare = SmallSync::new(&run.path("bare"))?;
    let putter = Putter::new(&store, true);
    rate(time, || putter.put())?;
    let bare_cell = std::cell::RefCell::new(&mut bare);
    let put_bare = || bare_cell.borrow_mut().put();
    let number = AtomicU64::new(0);
    let stream = || -> Result<()> {
        let name = format!("stream-{}", number.fetch_add(1, SeqCst) % 3);
        store.write(|tx| tx.put(name, &large))?;
        Ok(())
    };
    let path = run.path("bare-large");
    let stream_bare = || crate::bare::write_once(&path, &large);
    let (speed, speed_bare) = (Cell::new(Vec::new()), Cell::new(Vec::new()));
    let note = |cell: &Cell<Vec<f64>>, (figure, speed): (f64, f64)| {
        let mut all = cell.take();
        all.push(speed);
        cell.set(all);
        figure
    };
    let figures = interleave(
        run.rounds,
        &mut [
            &mut || latency(time, || putter.put()),
            &mut || Ok(note(&speed, beside(stream, || latency(time, || putter.put()))?)),
            &mut || latency(time, put_bare),
            &mut || Ok(note(&speed_bare, beside(stream_bare, || latency(time, put_bare))?)),
        ],
    )?;
    let [alone, mixed, bare_alone, bare_mixed] = &figures[..] else { anyhow::bail!("four sides") };
    let what = "put beside a stream of 100 MiB objects, median latency";
    section.push(Row::against(what, "µs", mixed, alone).goal(Goal::AtMost(1.5)));
    let what = "bare loop beside bare writes of 100 MiB, median latency";
    section.push(Row::against(what, "µs", bare_mixed, bare_alone));
    section.push(Row::against("that stream", "MB/s", &speed.take(), &speed_bare.take()));
    store.close()?;
    run.remove("mixed")?;
    run.remove("bare")?;
    run.remove("bare-large")
}
