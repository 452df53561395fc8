//! Objects read.

use crate::attributes::{from_stored, meta};
use crate::error;
use crate::store::HoldallObjectStore;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use holdall::{Object, Reader};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, Result};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of an object read at a time.
const BYTES_PER_READ: u64 = 1 << 20;

fn reader(own: &HoldallObjectStore, path: &Path) -> Result<Reader> {
    let reader = own.reader().map_err(|e| error::convert(path.as_ref(), e))?;
    reader.ok_or_else(|| error::none(path))
}

/// The bytes that are asked for of an object.
///
/// # Errors
/// NotModified and Precondition as the options say; a range that begins outside the object.
pub fn wanted(options: &GetOptions, of: &ObjectMeta) -> Result<Range<u64>> {
    options.check_preconditions(of)?;
    match &options.range {
        None => Ok(0..of.size),
        Some(range) => range.as_range(of.size).map_err(|e| error::message(e.to_string())),
    }
}

/// As [`wanted`], of one of several ranges.
///
/// # Errors
/// A range that begins outside the object.
pub fn inside(range: &Range<u64>, size: u64) -> Result<Range<u64>> {
    let asked = GetRange::Bounded(range.clone());
    asked.as_range(size).map_err(|e| error::message(e.to_string()))
}

/// Refuses what no store here has.
///
/// # Errors
/// NotSupported for a version: of an object there is the newest only.
pub fn check(options: &GetOptions) -> Result<()> {
    match options.version {
        None => Ok(()),
        Some(_) => Err(error::unsupported("old versions of objects are not kept")),
    }
}

/// Finds an object and reads the first piece of what is asked for. Cost: a look-up, and the reads
/// of a piece.
///
/// # Errors
/// NotFound; those of [`check`] and [`wanted`]; those of the engine.
pub fn get(own: &HoldallObjectStore, location: Path, options: &GetOptions) -> Result<GetResult> {
    check(options)?;
    let reader = reader(own, &location)?;
    let engine = |e| error::convert(location.as_ref(), e);
    let found = reader.metadata(location.as_ref()).map_err(engine)?;
    let modified = found.last_modified();
    let told = meta(location.clone(), found.size, found.version, modified);
    let range = wanted(options, &told)?;
    let payload = if options.head {
        stream::empty().boxed()
    } else {
        let object = reader.open(found.oid).map_err(engine)?;
        pieces(location, object, range.clone())?
    };
    Ok(GetResult {
        payload: GetResultPayload::Stream(payload),
        meta: told,
        range,
        attributes: from_stored(&found.attributes),
        extensions: Default::default(),
    })
}

fn piece(path: &Path, object: &Object, range: Range<u64>) -> Result<Bytes> {
    let len =
        usize::try_from(range.end - range.start).map_err(|e| error::message(e.to_string()))?;
    let mut bytes = vec![0; len];
    object.read_at(range.start, &mut bytes).map_err(|e| error::convert(path.as_ref(), e))?;
    Ok(bytes.into())
}

/// The bytes of a range, the first piece at once and each further one when it is asked for.
fn pieces(
    path: Path,
    object: Object,
    range: Range<u64>,
) -> Result<BoxStream<'static, Result<Bytes>>> {
    if range.is_empty() {
        return Ok(stream::empty().boxed());
    }
    let next = |at: u64| at..range.end.min(at.saturating_add(BYTES_PER_READ));
    let first = next(range.start);
    let begun = piece(&path, &object, first.clone())?;
    let once = stream::once(async { Ok(begun) });
    if first.end == range.end {
        return Ok(once.boxed());
    }
    let shared = Arc::new((path, object));
    let rest = stream::try_unfold(first.end, move |at| {
        let shared = shared.clone();
        let next = at..range.end.min(at.saturating_add(BYTES_PER_READ));
        async move {
            if next.is_empty() {
                return Ok(None);
            }
            let end = next.end;
            let read = tokio::task::spawn_blocking(move || piece(&shared.0, &shared.1, next));
            let bytes = read.await.unwrap_or_else(|e| Err(error::message(e.to_string())))?;
            Ok(Some((bytes, end)))
        }
    });
    Ok(once.chain(rest).boxed())
}

/// The bytes of several ranges, of one state.
///
/// # Errors
/// NotFound; a range that begins outside the object; those of the engine.
pub fn ranges(
    own: &HoldallObjectStore,
    location: &Path,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>> {
    let object = reader(own, location)?.open(location.as_ref());
    let object = object.map_err(|e| error::convert(location.as_ref(), e))?;
    let one = |range: &Range<u64>| piece(location, &object, inside(range, object.size())?);
    ranges.iter().map(one).collect()
}
