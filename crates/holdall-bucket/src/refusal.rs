//! What a server's refusal means.
//!
//! Owns: which error a failed request becomes ([`refused`]), its text ([`told`]), and which server's
//! words mean that there is no bucket or no room.

use crate::address::SCHEME;
use holdall::Error;
use std::io::ErrorKind;

/// Most of a server's answer in an error, in characters.
const MOST_TOLD: usize = 300;

/// What servers and directories say that have no room.
const FULL: [&str; 6] = [
    "507 ",
    "QuotaExceeded",
    "StorageFull",
    "InsufficientStorage",
    "No space left",
    "File too large",
];

/// What comes before the status in the client's text of an answer.
const STATUS: &str = "non-2xx status code: ";

/// Whether it is the bucket that was not found.
pub(crate) fn names_bucket(source: &(dyn std::error::Error + 'static)) -> bool {
    source.to_string().contains("NoSuchBucket")
}

/// What a server's refusal means. `place` is what the bucket was opened as.
pub(crate) fn refused(place: &str, action: &str, e: object_store::Error) -> Error {
    use object_store::Error as E;
    let text = told(&e);
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let said = format!("{action}: {text}");
    match &e {
        _ if has(&["NoSuchBucket"]) => {
            let bucket = bucket_of(place);
            Error::NotFound(format!("bucket {bucket:?}: the server has none of this name"))
        }
        _ if has(&FULL) => Error::Full(said),
        E::NotFound { .. } => Error::NotFound(said),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            Error::Invalid(format!("the server refuses these credentials: {said}"))
        }
        _ => {
            let source = std::io::Error::new(ErrorKind::NotConnected, text);
            Error::Io { action: action.to_owned(), source }
        }
    }
}

/// The bucket of `s3://BUCKET/PREFIX`.
fn bucket_of(place: &str) -> &str {
    let rest = place.strip_prefix(SCHEME).unwrap_or(place);
    rest.split_once('/').map_or(rest, |(bucket, _)| bucket)
}

/// What happened, with its causes, in one line.
pub(crate) fn told(e: &(dyn std::error::Error + 'static)) -> String {
    let mut text = e.to_string();
    let mut cause = e.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(MOST_TOLD) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Whether a conditional request that failed so surely had no effect, and would be refused again;
/// in doubt it is not so.
pub(crate) fn for_good(e: &object_store::Error) -> bool {
    use object_store::Error as E;
    match e {
        E::PermissionDenied { .. }
        | E::Unauthenticated { .. }
        | E::NotFound { .. }
        | E::InvalidPath { .. }
        | E::NotSupported { .. }
        | E::NotImplemented { .. }
        | E::UnknownConfigurationKey { .. } => true,
        E::Precondition { source, .. } => names_bucket(&**source),
        E::Generic { source, .. } => {
            let text = source.to_string();
            // 408 and RequestTimeout: it came too slowly. 429 and SlowDown: too many at once.
            match status(&text) {
                Some(408 | 429) => false,
                Some(400..=499) => !text.contains("RequestTimeout") && !text.contains("SlowDown"),
                Some(501 | 507) => true,
                _ => false,
            }
        }
        _ => false,
    }
}

/// The status of the answer, which the client gives as text only.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once(STATUS)?;
    rest.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn only_what_surely_had_no_effect_is_refused_for_good() {
        let text = "Error performing PUT http://a/b in 1ms - Server returned non-2xx status code: ";
        for (status, good) in [
            ("400 Bad Request: InvalidArgument", true),
            ("400 Bad Request: RequestTimeout", false),
            ("408 Request Timeout: ", false),
            ("413 Payload Too Large: ", true),
            ("429 Too Many Requests: ", false),
            ("500 Internal Server Error: No space left", false),
            ("501 Not Implemented: ", true),
            ("503 Service Unavailable: SlowDown", false),
            ("507 Insufficient Storage: ", true),
        ] {
            assert_eq!(for_good(&generic(&format!("{text}{status}"))), good, "{status}");
        }
        assert!(!for_good(&generic("HTTP error: error sending request")));
    }

    #[test]
    fn a_bucket_that_is_not_there_is_named() {
        for place in ["s3://films", "s3://films/x/y"] {
            let e = generic("Server returned non-2xx status code: 404: <Code>NoSuchBucket</Code>");
            let text = refused(place, "reading holdall", e).to_string();
            assert!(text.contains("bucket \"films\": ") && !text.contains("Code"), "{text}");
        }
    }

    #[test]
    fn texts_are_one_line_and_short() {
        let told = told(&generic(&"a\n b".repeat(1000)));
        assert!(told.len() < MOST_TOLD + 8 && !told.contains('\n'), "{told}");
        assert!(told.ends_with("..."));
    }
}
