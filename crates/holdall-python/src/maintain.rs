//! Looking after a store: figures, checks, order.
//!
//! Owns: those methods of [`Source`] that concern the store as a whole. Reports leave as JSON,
//! which the package makes dictionaries of.

use crate::errors::{Fail, Outcome};
use crate::source::Source;
use holdall::{DefragOptions, DefragReport, FileId, Progress, VerifyOptions};
use holdall_report::{draw, json, page};
use pyo3::prelude::*;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time between two calls of a progress function.
const PACE: Duration = Duration::from_millis(100);

/// A Python function that learns how far a long task is.
pub(crate) struct Watcher {
    call: Option<Py<PyAny>>,
    told: Option<Instant>,
    /// What it raised, or that the user interrupted.
    raised: Option<PyErr>,
}

impl Watcher {
    pub(crate) fn new(call: Option<Py<PyAny>>) -> Self {
        Self { call, told: None, raised: None }
    }

    /// Tells it now and then; whether to go on.
    pub(crate) fn tell(&mut self, done: u64, total: u64, last: bool) -> bool {
        if self.raised.is_some() {
            return false;
        }
        if !last && self.told.is_some_and(|told| told.elapsed() < PACE) {
            return true;
        }
        self.told = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.call.as_ref().map_or(Ok(()), |call| call.call1(py, (done, total)).map(drop))
        });
        self.raised = told.err();
        self.raised.is_none()
    }

    pub(crate) fn ended<T>(self, value: T) -> Outcome<T> {
        self.raised.map_or(Ok(value), |e| Err(Fail::Python(e)))
    }
}

#[pymethods]
impl Source {
    /// Whether the file of this number on this device is the store's file or its log.
    fn is_own_file(&self, py: Python<'_>, device: u64, inode: u64) -> PyResult<bool> {
        let file = FileId { device, inode };
        Ok(py.detach(|| self.0.handle().with(|store| Ok(store.is_own_file(file)?)))?)
    }

    /// Whether the store's log has its place in this directory under this name.
    fn is_log_place(
        &self,
        py: Python<'_>,
        device: u64,
        inode: u64,
        name: OsString,
    ) -> PyResult<bool> {
        let dir = FileId { device, inode };
        Ok(py.detach(|| self.0.handle().with(|store| Ok(store.is_log_place(dir, &name)?)))?)
    }

    /// Figures of the store, as JSON.
    fn stat(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| {
            self.0.handle().with(|store| {
                let frag = store.frag(&mut |_, _| ())?;
                Ok(json::stat(&store.stat()?, &frag).to_string())
            })
        })?)
    }

    /// How fragmented the store is: as "json", "svg", the "map" alone as SVG, or a "page".
    #[pyo3(signature = (form, progress=None))]
    fn frag(&self, py: Python<'_>, form: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
        let form = form.to_owned();
        Ok(py.detach(|| {
            let mut watcher = Watcher::new(progress);
            let (report, title) = self.0.handle().with(|store| {
                let report = store.frag(&mut |done, total| {
                    watcher.tell(done, total, false);
                })?;
                Ok((report, self.0.handle().path.display().to_string()))
            })?;
            watcher.ended(match form.as_str() {
                "svg" => draw::document(&report, &title),
                "page" => page::document(&report, &title),
                "map" => {
                    let [map, ..] = draw::parts(&report);
                    format!("<style>{}</style>{}", draw::STYLE, draw::inline(&map))
                }
                _ => json::frag(&report).to_string(),
            })
        })?)
    }

    /// Checks everything; the report as JSON.
    #[pyo3(signature = (data=true, progress=None))]
    fn verify(&self, py: Python<'_>, data: bool, progress: Option<Py<PyAny>>) -> PyResult<String> {
        Ok(py.detach(|| {
            let mut watcher = Watcher::new(progress);
            let report = self.0.handle().with(|store| {
                Ok(store.verify_with(&VerifyOptions { data }, &mut |at: Progress| {
                    watcher.tell(at.done, at.total, at.done == at.total);
                })?)
            })?;
            watcher.ended(json::verify(&report).to_string())
        })?)
    }

    /// Puts the store in order; what was done as JSON.
    #[pyo3(signature = (rate=None, join=true, progress=None))]
    fn defrag(
        &self,
        py: Python<'_>,
        rate: Option<u64>,
        join: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        Ok(py.detach(|| {
            let mut watcher = Watcher::new(progress);
            self.0.handle().await_others()?;
            let report: DefragReport = self.0.handle().with(|store| {
                let told = &mut |moved: &holdall::Moved| {
                    if watcher.tell(moved.bytes(), 0, false) {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                };
                Ok(store.defrag(&DefragOptions { rate, join }, told)?)
            })?;
            watcher.ended(json::defrag(&report).to_string())
        })?)
    }

    /// Keeps the store in order from now on, at this many bytes a second; or ends that.
    #[pyo3(signature = (on, rate=None))]
    fn keep_in_order(&self, py: Python<'_>, on: bool, rate: Option<u64>) -> PyResult<()> {
        let options = on.then_some(DefragOptions { rate, join: true });
        Ok(py.detach(|| self.0.handle().keep_in_order(options.as_ref()))?)
    }

    /// Makes all commits durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.0.handle().with(|store| Ok(store.flush()?)))?)
    }

    /// Makes all commits durable and brings them to their place in the file.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.0.handle().with(|store| Ok(store.checkpoint()?)))?)
    }
}
