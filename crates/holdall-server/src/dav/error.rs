//! What WebDAV answers to a request that is not done: a status and a line of text.
//!
//! Owns: [`Error`], [`refusal`], [`blocking`].

use crate::http::answer::{empty, set};
use crate::http::body;
use crate::refusal::{Refusal, Why};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use s3s::Body;

/// A request that is not done.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// The status of the answer.
    pub status: StatusCode,
    /// Its text.
    pub text: String,
    /// Whether a right is missing, which nobody has lost by saying who he is.
    pub denied: bool,
    /// Further headers of the answer.
    pub headers: Box<HeaderMap>,
}

/// What becomes of a request, or of a step of it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal with this status.
pub fn refusal(status: StatusCode, text: impl Into<String>) -> Error {
    Error { status, text: text.into(), denied: false, headers: Box::default() }
}

impl From<Refusal> for Error {
    fn from(e: Refusal) -> Self {
        Self { denied: e.why == Why::Denied, ..refusal(e.why.status(), e.text) }
    }
}

impl From<holdall::Error> for Error {
    fn from(e: holdall::Error) -> Self {
        Refusal::from(e).into()
    }
}

impl Error {
    /// The answer.
    pub fn answer(self) -> Response<Body> {
        let mut response = empty(self.status);
        if self.status != StatusCode::NOT_MODIFIED {
            *response.body_mut() = Body::from(Bytes::from(format!("{}\n", self.text)));
            set(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
        }
        response.headers_mut().extend(*self.headers);
        response
    }
}

/// As [`body::blocking`], of WebDAV's requests.
///
/// # Errors
/// Those of `work`.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    body::run(work).await
}
