//! How errors of the engine become those of `object_store`.

use object_store::Error;
use object_store::path::Path;

/// What errors name as their store.
pub const NAME: &str = "Holdall";

/// An error of the engine about the object at `path`.
pub fn convert(path: &str, e: holdall::Error) -> Error {
    use holdall::Error as Engine;
    let (path, source) = (path.to_owned(), Box::new(e));
    match &*source {
        Engine::NotFound(_) | Engine::Dangling(_) => Error::NotFound { path, source },
        Engine::Exists(_) => Error::AlreadyExists { path, source },
        Engine::Conflict { .. } => Error::Precondition { path, source },
        Engine::ReadOnly => Error::PermissionDenied { path, source },
        _ => Error::Generic { store: NAME, source },
    }
}

/// That there is no object at `path`.
pub fn none(path: &Path) -> Error {
    convert(path.as_ref(), holdall::Error::NotFound(path.to_string()))
}

/// The error of a copy or rename: of its target if that is there already, else of its source.
pub fn at(from: &Path, to: &Path) -> impl FnOnce(holdall::Error) -> Error {
    let (from, to) = (from.to_string(), to.to_string());
    move |e| {
        let path = if matches!(e, holdall::Error::Exists(_)) { to } else { from };
        convert(&path, e)
    }
}

/// An error in words.
pub fn message(text: impl Into<String>) -> Error {
    Error::Generic { store: NAME, source: text.into().into() }
}

/// That something is not offered.
pub fn unsupported(text: &str) -> Error {
    Error::NotSupported { source: text.to_owned().into() }
}
