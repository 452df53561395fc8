//! `holdall stat`: figures about a store or one object.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use holdall::frag::FragReport;
use holdall::{Attributes, Layout, Metadata, Segments, StoreStat};
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::store::ObjectInfo;
use holdall_control::Client;
use holdall_report::words::first_remedy;
use serde_json::{Map, Value, json};

use crate::at::{Place, StoreAt};
use crate::bucket;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Out};
use crate::{files, name, open, time, wait, watch};

/// Show figures about a store, or about one object
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// Name or OID of an object; the store itself if not given
    name: Option<OsString>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// The collection of the object, "default" if not given
    #[arg(long, value_name = "C", requires = "name")]
    collection: Option<String>,
    /// Show what the process that has the store open does, again after each time of this length
    #[arg(
        long,
        value_name = "DURATION",
        require_equals = true,
        value_parser = wait::duration,
        conflicts_with = "name"
    )]
    #[expect(clippy::option_option, reason = "clap's form of an option with an optional value")]
    watch: Option<Option<Duration>>,
}

/// Between two looks, by default.
const PAUSE: Duration = Duration::from_secs(2);

/// Prints the figures.
pub fn run(args: &Args) -> Outcome {
    let named: Vec<&OsStr> = args.name.iter().map(AsRef::as_ref).collect();
    args.at.check(true, &named)?;
    if let Some(pause) = args.watch {
        return watch::watch(args.at.path(), pause.unwrap_or(PAUSE), args.json);
    }
    let path = match args.at.place(args.collection.as_deref())? {
        Place::File(path) => path,
        Place::Bucket(store) => return in_bucket(args, &store),
    };
    let store = open::held(path)?;
    match &args.name {
        None => {
            // What is open and waits there only the process knows that has the store open.
            let asked = Client::connect(path).ok().flatten();
            let asked = asked.and_then(|mut client| client.stat().ok());
            let stat = asked.map_or_else(|| store.stat(), Ok)?;
            let frag = store.frag(&mut |_, _| ())?;
            if args.json {
                output::json(&holdall_report::json::stat(&stat, &frag))
            } else {
                store_text(&stat, &frag)
            }
        }
        Some(arg) => {
            let reader = open::reader(&store, args.collection.as_deref())?;
            let data = reader.metadata(name::key(arg))?;
            let segments = reader.segments(data.oid)?;
            if args.json {
                object_json(arg, &data, &segments)
            } else {
                object_text(arg, &data, &segments)
            }
        }
    }
}

/// As [`run`], of an object in a bucket. Figures about the whole store would go here.
fn in_bucket(args: &Args, store: &BucketStore) -> Outcome {
    let Some(name) = &args.name else {
        let what = "there are no figures about a store in a bucket yet";
        return Err(Failure::new(what, "name an object, or see `holdall ls --long`"));
    };
    let name = bucket::text(name)?;
    let info = store.info(name)?.ok_or_else(|| bucket::missing(store, name))?;
    if args.json {
        let mut object = Map::new();
        describe_in_bucket(&mut object, &info);
        return output::json(&Value::Object(object));
    }
    let mut out = Out::new();
    let mut row = |label: &str, value: String| out.line(format_args!("{label:<17} {value}"));
    row("name", name::escape(info.name.as_bytes()))?;
    row("version", info.version.to_string())?;
    row("size", info.size.to_string())?;
    row("created", time::date(time::to_nanos(info.created)))?;
    row("modified", time::date(time::to_nanos(info.modified)))?;
    attribute_rows(&info.attributes, &mut row)?;
    out.finish()
}

/// Adds what is known about an object in a bucket to a JSON object.
pub fn describe_in_bucket(object: &mut Map<String, Value>, info: &ObjectInfo) {
    let millis = |at| json!(i64::try_from(time::to_nanos(at) / 1_000_000).ok());
    name::to_json(object, "name", info.name.as_bytes());
    object.insert("version".into(), info.version.to_string().into());
    object.insert("size".into(), info.size.into());
    object.insert("created".into(), millis(info.created));
    object.insert("modified".into(), millis(info.modified));
    object.insert("attributes".into(), attributes(&info.attributes));
}

fn attributes(of: &Attributes) -> Value {
    let mut attributes = Map::new();
    for (key, value) in of {
        name::to_json(&mut attributes, key, value);
    }
    Value::Object(attributes)
}

fn attribute_rows(of: &Attributes, row: &mut dyn FnMut(&str, String) -> Outcome) -> Outcome {
    for (key, value) in of {
        let mut text = name::escape(value);
        if let Some(nanos) = time::parse(value).filter(|_| key == files::MTIME) {
            text = format!("{} ({nanos} ns)", time::date(nanos));
        }
        row(&name::escape(key.as_bytes()), text)?;
    }
    Ok(())
}

fn store_text(stat: &StoreStat, frag: &FragReport) -> Outcome {
    let mut out = Out::new();
    let mut row = |label: &str, value: String| out.line(format_args!("{label:<17} {value}"));
    row("objects", stat.objects.to_string())?;
    row("logical bytes", stat.logical_bytes.to_string())?;
    row("file bytes", stat.file_bytes.to_string())?;
    row("utilization", percent(stat.utilization))?;
    row("heap utilization", percent(stat.heap_utilization))?;
    row("free bytes", format!("{}, {} of them given back", stat.free_bytes, stat.hole_bytes))?;
    row("waiting bytes", format!("{}, {} for readers", stat.waiting_bytes, stat.pinned_bytes))?;
    for reader in &stat.readers {
        let (age, bytes) = (reader.age.as_secs_f64(), reader.pinned_bytes);
        row("reader", format!("{}, {age:.1} s old, keeps {bytes} bytes", reader.thread))?;
    }
    let (images, scratch) = (stat.elsewhere.images, stat.elsewhere.scratch_bytes);
    if images > 0 || scratch > 0 {
        row("elsewhere", format!("{images} pages, {scratch} bytes of old versions"))?;
    }
    let f = &stat.fullness;
    row(
        "full",
        format!(
            "{}: {} stored, of {} less {} reserve and {} metadata",
            percent(f.share()),
            f.stored_bytes,
            f.limit_bytes,
            f.reserve_bytes,
            f.metadata_bytes
        ),
    )?;
    let c = &frag.contract;
    let promise = if c.holds { "holds" } else { "does not hold" };
    row("contract", format!("{promise}: {} of at most {} bytes", c.left_bytes, c.right_bytes))?;
    row("remedy", first_remedy(frag))?;
    row("page size", stat.page_size.to_string())?;
    row("spaces", format!("{} of {} pages", stat.spaces, stat.space_pages))?;
    row("format version", stat.format_version.to_string())?;
    row(
        "checkpoint",
        format!(
            "lsn {}, epoch {}, {} dirty pages",
            stat.checkpoint_lsn, stat.epoch, stat.dirty_pages
        ),
    )?;
    row(
        "log",
        format!(
            "lsn {}, {} of {} bytes used, file of {} bytes",
            stat.durable_lsn, stat.log_used, stat.log_capacity, stat.log_file_bytes
        ),
    )?;
    for c in &stat.collections {
        let name = name::escape(c.name.as_bytes());
        row("collection", format!("{name}: {} objects, {} bytes", c.objects, c.logical_bytes))?;
    }
    out.finish()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The name to show: the object's own, or the one it was asked for by.
fn display_name<'a>(arg: &'a OsStr, data: &'a Metadata) -> Option<&'a [u8]> {
    let asked = name::as_oid(arg).is_none().then(|| name::bytes(arg));
    data.name.as_deref().or(asked)
}

fn object_json(arg: &OsStr, data: &Metadata, segments: &Segments) -> Outcome {
    let mut object = Map::new();
    match display_name(arg, data) {
        Some(name) => name::to_json(&mut object, "name", name),
        None => drop(object.insert("name".into(), Value::Null)),
    }
    describe(&mut object, data, segments);
    output::json(&Value::Object(object))
}

/// Adds what is known about an object, its name aside, to a JSON object.
pub fn describe(object: &mut Map<String, Value>, data: &Metadata, segments: &Segments) {
    object.insert("oid".into(), data.oid.to_string().into());
    object.insert("size".into(), data.size.into());
    let nanos = data.modified.map(time::to_nanos);
    object.insert(
        "modified".into(),
        nanos.map_or(Value::Null, |n| json!(i64::try_from(n / 1_000_000).ok())),
    );
    object.insert("attributes".into(), attributes(&data.attributes));
    let layout = match &data.layout {
        Layout::Small => json!({ "kind": "small" }),
        Layout::Large { levels, threshold, tail, append_mostly, .. } => {
            let Segments { segments, nodes, pages, shared_pages, space, .. } = *segments;
            json!({
                "kind": "large", "segments": segments, "nodes": nodes, "levels": levels,
                "pages": pages, "shared_pages": shared_pages, "threshold": threshold,
                "tail": tail, "append_mostly": append_mostly,
                "utilization": data.size as f64 / space.max(1) as f64,
            })
        }
    };
    object.insert("layout".into(), layout);
}

fn object_text(arg: &OsStr, data: &Metadata, segments: &Segments) -> Outcome {
    let Segments { segments, nodes, pages, shared_pages, space, .. } = *segments;
    let mut out = Out::new();
    let mut row = |label: &str, value: String| out.line(format_args!("{label:<17} {value}"));
    row("name", display_name(arg, data).map_or_else(|| "-".to_owned(), name::escape))?;
    row("oid", data.oid.to_string())?;
    row("size", data.size.to_string())?;
    row("modified", data.modified.map_or("-".into(), |at| time::date(time::to_nanos(at))))?;
    let layout = match &data.layout {
        Layout::Small => "small: in a heap record".to_owned(),
        Layout::Large { levels, threshold, tail, .. } => {
            format!(
                "large: {segments} segments of {pages} pages ({shared_pages} shared), {nodes} nodes \
                 on {levels} levels, threshold {threshold}, tail of {tail} bytes"
            )
        }
    };
    row("layout", layout)?;
    if let Layout::Large { append_mostly, .. } = data.layout {
        row("utilization", format!("{:.1} %", 100.0 * data.size as f64 / space.max(1) as f64))?;
        if append_mostly {
            row("hint", "append mostly".to_owned())?;
        }
    }
    attribute_rows(&data.attributes, &mut row)?;
    out.finish()
}
