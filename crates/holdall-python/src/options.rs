//! How a store is opened from Python.
//!
//! Owns: [`open`] and its options, which are those of [`Options`] and three of the package:
//! `keys`, `timeout`, `wait`.

use crate::errors::{Fail, Outcome};
use crate::handle::{Handle, Held, Settings};
use crate::keys::Form;
use crate::source::{Objects, Source};
use holdall::{Cancel, Durability, Error, Options, Store, Wait};
use parking_lot::Mutex;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The path that stands for a store in memory.
const IN_MEMORY: &str = ":memory:";

/// The value of an option, as Python gave it.
#[derive(Debug, Clone, PartialEq, IntoPyObject)]
pub enum Given {
    /// Of a switch.
    Flag(bool),
    /// Of bytes.
    Number(u64),
    /// Of a factor or of seconds.
    Fraction(f64),
    /// Of a choice.
    Text(String),
    /// No bound.
    Nothing(Option<bool>),
}

/// Seconds that an option gives.
///
/// # Errors
/// ValueError if they are below 0 or no number.
pub fn seconds(option: &str, given: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(given).map_err(|e| PyValueError::new_err(format!("{option}: {e}")))
}

/// Opens a store.
///
/// mode: "r" to read, "r+" to write what is there, "a" to write and make it if it is
/// missing, "w" to make it anew, "x" to make it if there is none.
#[pyfunction]
#[pyo3(signature = (path, mode, **options))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Source> {
    let (settings, wait) = settings_of(options)?;
    let mode = mode.to_owned();
    let made = py.detach(|| opened(&path, &mode, settings, wait))?;
    Ok(Source(Objects::Newest(Held::new(made), Durability::Immediate)))
}

fn opened(path: &Path, mode: &str, settings: Settings, wait: Wait) -> Outcome<Handle> {
    if !["r", "r+", "a", "w", "x"].contains(&mode) {
        let text = format!("mode {mode:?} is none of \"r\", \"r+\", \"a\", \"w\", \"x\"");
        return Err(Error::Invalid(text).into());
    }
    if path.as_os_str().is_empty() {
        let text = format!("the path of a store is empty; \"{IN_MEMORY}\" is one in memory");
        return Err(Error::Invalid(text).into());
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Error::Invalid("a path has no byte 0".into()).into());
    }
    if path.as_os_str() == IN_MEMORY {
        if mode.starts_with('r') {
            let text =
                format!("a store in memory is new, and mode {mode:?} needs one that is there");
            return Err(Error::NotFound(text).into());
        }
        let store = settings.options.create_in_memory()?;
        return Ok(Handle::new(PathBuf::new(), false, settings, store));
    }
    let path = std::path::absolute(path)
        .map_err(|e| Error::io(format!("finding {}", path.display()), e))?;
    let raised = Arc::new(Mutex::new(None));
    let raises = raised.clone();
    let interrupted = Cancel::when(move || {
        *raises.lock() = Python::attach(|py| py.check_signals()).err();
        raises.lock().is_some()
    });
    let options = settings.options.clone().wait(wait).cancel(interrupted);
    let store = open_file(&path, mode, &options).map_err(|e| match raised.lock().take() {
        Some(raised) => Fail::Python(raised),
        None => e,
    })?;
    if mode != "r" {
        crate::file::drop_drafts(&store)?;
    }
    let (reads, listens) = (mode == "r", settings.control && mode != "r");
    let handle = Handle::new(path, reads, settings, store);
    if listens {
        handle.listen();
    }
    Ok(handle)
}

fn open_file(path: &Path, mode: &str, options: &Options) -> Outcome<Store> {
    Ok(match mode {
        "r" => options.open_read_only(path)?,
        "r+" => options.open(path)?,
        "a" => options.open_or_create(path)?,
        "x" => options.create(path)?,
        _ => anew(path, options)?,
    })
}

/// Makes a store in place of one that is there. Any other file stays.
fn anew(path: &Path, options: &Options) -> Outcome<Store> {
    match options.open(path) {
        Ok(old) => {
            old.close()?;
            // Closed, it has no log.
            std::fs::remove_file(path)
                .map_err(|e| Error::io(format!("removing {}", path.display()), e))?;
        }
        Err(Error::NotFound(_) | Error::Unfinished { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(options.create(path)?)
}

/// How long an opening waits for others that have the store open.
fn wait_of(given: &Bound<'_, PyAny>) -> PyResult<Wait> {
    match given.extract::<bool>() {
        Ok(true) => Ok(Wait::Forever),
        Ok(false) => Ok(Wait::Not),
        Err(_) => seconds("wait", given.extract()?).map(Wait::from),
    }
}

/// Options by their names in Python, and how long the opening waits.
fn settings_of(given: Option<&Bound<'_, PyDict>>) -> PyResult<(Settings, Wait)> {
    let mut set = Settings {
        options: Options::default(),
        form: Form::default(),
        limit: None,
        control: true,
        given: BTreeMap::new(),
    };
    let mut wait = Wait::Not;
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        if name == "wait" {
            wait = wait_of(&value)?;
            continue;
        }
        set.given.insert(name.clone(), given_of(&value)?);
        match name.as_str() {
            "control" => set.control = value.extract()?,
            "keys" => set.form = Form::parse(&value.extract::<String>()?)?,
            "timeout" => {
                let limit: Option<f64> = value.extract()?;
                set.limit = limit.map(|limit| seconds("timeout", limit)).transpose()?;
            }
            _ => set.options = with_option(set.options, &name, &value)?,
        }
    }
    Ok((set, wait))
}

fn given_of(value: &Bound<'_, PyAny>) -> PyResult<Given> {
    if value.is_none() {
        return Ok(Given::Nothing(None));
    }
    if let Ok(flag) = value.cast::<pyo3::types::PyBool>() {
        return Ok(Given::Flag(flag.is_true()));
    }
    if let Ok(number) = value.extract() {
        return Ok(Given::Number(number));
    }
    if let Ok(number) = value.extract() {
        return Ok(Given::Fraction(number));
    }
    value.extract().map(Given::Text)
}

fn with_option(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(match name {
        "cache_bytes" => options.cache_bytes(value.extract()?),
        "max_bytes" => options.max_bytes(value.extract::<Option<u64>>()?),
        "space_factor" => options.space_factor(value.extract()?),
        "page_size" => options.page_size(value.extract()?),
        "pinned_bytes" => options.pinned_bytes(value.extract::<Option<u64>>()?),
        "old_version_bytes" => options.old_version_bytes(value.extract()?),
        "map_reads" => options.map_reads(value.extract()?),
        "direct_reads" => options.direct_reads(value.extract()?),
        "background" => options.background(value.extract()?),
        "defer" => options.defer(seconds("defer", value.extract()?)?),
        other => return Err(PyTypeError::new_err(format!("open() has no option {other:?}"))),
    })
}
