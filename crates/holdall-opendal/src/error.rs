//! The engine's errors as OpenDAL's.

use opendal_core::{Error, ErrorKind, Result};

/// An error of the engine about `name`.
pub fn convert(name: &str, e: holdall::Error) -> Error {
    use holdall::Error as E;
    let kind = match &e {
        E::NotFound(_) | E::Dangling(_) => ErrorKind::NotFound,
        E::Exists(_) | E::Conflict { .. } => ErrorKind::ConditionNotMatch,
        E::ReadOnly => ErrorKind::PermissionDenied,
        // Never temporary: a layer that retries might do a change twice whose outcome is unknown.
        _ => ErrorKind::Unexpected,
    };
    Error::new(kind, e.to_string()).with_context("name", name).set_source(e)
}

/// Runs what may wait for a disk or a lock where waiting hurts nobody.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(e) => Err(Error::new(ErrorKind::Unexpected, "the call has ended early").set_source(e)),
    }
}
