//! Backups of a store, and stores made from them, or of what is whole of damaged ones.
//!
//! Owns: the choice between a file and a place in a bucket, by how it is named.

use crate::errors::{Fail, Outcome};
use crate::maintain::Watcher;
use crate::source::Source;
use holdall::{Backup, BackupInfo, BackupPart, Error, Progress, Salvage, Store};
use holdall_bucket::{Access, Base, Bucket, Settings, is_bucket};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a bucket is reached: endpoint, region, profile, remote.
pub type Reach = (Option<String>, Option<String>, Option<String>, Option<String>);

/// The place that this names, if it names one in a bucket.
fn place(path: &Path, reach: &Reach) -> Outcome<Option<Arc<Bucket>>> {
    let Some(text) = path.to_str().filter(|text| is_bucket(text)) else { return Ok(None) };
    Ok(Some(Arc::new(Bucket::open(text, &access(reach.clone()))?)))
}

/// What there is to reach a bucket.
pub fn access((endpoint, region, profile, remote): Reach) -> Access {
    Access { endpoint, region, profile, remote, ..Access::default() }
}

fn told(watcher: &mut Watcher, at: Progress) -> ControlFlow<()> {
    match watcher.tell(at.done, at.total, at.done == at.total) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// What came of it; what the function raised comes before the error that it led to.
fn outcome<T>(watcher: Watcher, done: holdall::Result<T>) -> Outcome<T> {
    match done {
        Err(Error::Cancelled) => watcher.ended(()).and(Err(Fail::Store(Error::Cancelled))),
        done => Ok(done?),
    }
}

fn to_bucket(
    store: &mut Store,
    place: &Bucket,
    base: bool,
    (verify, rate): (bool, Option<u64>),
    mut watcher: Watcher,
) -> Outcome<String> {
    let base = if base { Base::Newest } else { Base::None };
    let settings = Settings { base, verify, rate };
    let done = place.back_up(store, settings, &mut |at| told(&mut watcher, at));
    let added = outcome(watcher, done)?;
    let base = added.listed.base.map(|base| format!("\"{base}\""));
    Ok(format!(
        "{{\"id\": \"{}\", \"base\": {}, \"in_use_bytes\": {}, \"written_bytes\": {}}}",
        added.listed.id,
        base.as_deref().unwrap_or("null"),
        added.in_use,
        added.bytes
    ))
}

#[pymethods]
impl Source {
    /// Takes a backup to a file or a place in a bucket; what was done as JSON.
    fn backup(
        &self,
        py: Python<'_>,
        places: (PathBuf, Option<PathBuf>),
        verify: bool,
        rate: Option<u64>,
        reach: Reach,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        Ok(py.detach(|| {
            let (dest, base) = places;
            let mut watcher = Watcher::new(progress);
            let mut store = self.0.handle().with(|store| Ok(store.clone()))?;
            if let Some(place) = place(&dest, &reach)? {
                let same = base.as_ref().is_none_or(|base| *base == dest);
                if !same {
                    let text = "an increment lies where its base lies: name that place as the base";
                    return Err(Error::Invalid(text.into()).into());
                }
                return to_bucket(&mut store, &place, base.is_some(), (verify, rate), watcher);
            }
            let mut backup = Backup::new().verify(verify);
            if let Some(rate) = rate {
                backup = backup.rate(rate);
            }
            if let Some(base) = base {
                let info = BackupInfo::read(base)?;
                let none = || Error::Invalid("nothing can build on that backup".into());
                backup = backup.base(info.id.ok_or_else(none)?);
            }
            let done = backup.to_file(&mut store, &dest, &mut |at| told(&mut watcher, at));
            let report = outcome(watcher, done)?;
            let id = report.id.map(|id| format!("\"{id}\""));
            Ok(format!(
                "{{\"id\": {}, \"in_use_bytes\": {}, \"copied_bytes\": {}}}",
                id.as_deref().unwrap_or("null"),
                report.in_use,
                report.copied
            ))
        })?)
    }
}

/// Makes a store of a whole backup and increments, or of a place in a bucket; what was done as JSON.
#[pyfunction]
pub fn restore(
    py: Python<'_>,
    places: (PathBuf, Vec<PathBuf>),
    at: Option<String>,
    reach: Reach,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    Ok(py.detach(|| -> Outcome<String> {
        let (dest, parts) = places;
        let mut watcher = Watcher::new(progress);
        let which = at.as_deref().map(str::parse).transpose()?;
        let (mut found, mut asked) = (Vec::new(), false);
        for part in parts {
            match place(&part, &reach)? {
                Some(place) => {
                    asked = true;
                    found.extend(place.parts(which.unwrap_or_default())?);
                }
                None => found.push(BackupPart::File(part)),
            }
        }
        if which.is_some() && !asked {
            return Err(Error::Invalid("at is of use with a bucket only".into()).into());
        }
        let done = holdall::restore(dest, found, &mut |at| told(&mut watcher, at));
        let report = outcome(watcher, done)?;
        let id = report.id.map(|id| format!("\"{id}\""));
        Ok(format!(
            "{{\"id\": {}, \"time\": {}, \"written_bytes\": {}, \"objects\": {}}}",
            id.as_deref().unwrap_or("null"),
            report.time,
            report.written,
            report.verified.objects
        ))
    })?)
}

/// Makes a store of what is whole of a damaged one; what was brought and what is lost as JSON.
#[pyfunction]
pub fn salvage(
    py: Python<'_>,
    damaged: PathBuf,
    new: PathBuf,
    partial: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    Ok(py.detach(|| -> Outcome<String> {
        let mut watcher = Watcher::new(progress);
        let salvage = Salvage::new().partial(partial);
        let done = salvage.to_file(damaged, new, &mut |at| told(&mut watcher, at));
        Ok(holdall_report::json::salvage(&outcome(watcher, done)?).to_string())
    })?)
}
