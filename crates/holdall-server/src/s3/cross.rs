//! Requests from web pages of other origins: which a bucket's rules let pages make, and the
//! headers by which browsers know.
//!
//! Owns: [`Cross`]. It changes no rights: browsers ask it before they let a page send a
//! request, or see its answer.

use crate::http::host::Domain;
use crate::objects::catalog::Catalog;
use crate::objects::records::{self, Rule};
use crate::s3::error::{blocking, custom, from_store};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use percent_encoding::percent_decode_str;
use s3s::{Body, S3Error, S3Result, s3_error};
use std::sync::Arc;

/// What an answer depends on beside its address.
const VARY: &str = "Origin, Access-Control-Request-Headers, Access-Control-Request-Method";

/// Whether a text is as a pattern with at most one star has it.
fn like(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((first, last)) => {
            text.len() >= first.len() + last.len()
                && text.starts_with(first)
                && text.ends_with(last)
        }
    }
}

impl Rule {
    /// Whether it lets a page of this origin send this method with these headers.
    fn allows(&self, cross: &Cross) -> bool {
        let header = |asked: &String| {
            self.headers.iter().any(|header| like(&header.to_ascii_lowercase(), asked))
        };
        self.origins.iter().any(|origin| like(origin, &cross.origin))
            && self.methods.contains(&cross.method)
            && cross.headers.iter().all(header)
    }
}

/// A request from a page of another origin, or what a browser asks before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cross {
    bucket: String,
    origin: String,
    /// What is sent, or is going to be.
    method: String,
    /// Headers that are going to be sent, in lower case; empty once they are.
    headers: Vec<String>,
}

fn text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// The bucket that a request names in its host or its path.
fn bucket_of<T>(req: &Request<T>, domain: Option<&Domain>) -> Option<String> {
    let by_host = || domain?.bucket_of(req.headers(), req.uri());
    let by_path = || {
        let first = req.uri().path().trim_start_matches('/').split('/').next()?;
        Some(percent_decode_str(first).decode_utf8().ok()?.into_owned())
    };
    by_host().or_else(by_path)
}

impl Cross {
    /// What a request from another origin asks; `None` for those that name no origin.
    pub fn from_request<T>(req: &Request<T>, domain: Option<&Domain>) -> Option<Self> {
        let headers = req.headers();
        let origin = text(headers, header::ORIGIN)?;
        let before = req.method() == Method::OPTIONS;
        let asked = text(headers, header::ACCESS_CONTROL_REQUEST_METHOD);
        let method = match asked {
            None if before => return None,
            asked => asked.unwrap_or_else(|| req.method().as_str().to_owned()),
        };
        let names = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS).into_iter();
        let names = names.filter(|_| before).filter_map(|list| list.to_str().ok());
        let names = names.flat_map(|list| list.split(',')).map(str::trim);
        let headers = names.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect();
        Some(Self { bucket: bucket_of(req, domain)?, origin, method, headers })
    }

    /// The bucket's rules; none if it has none, or is not there.
    async fn rules(&self, catalog: &Catalog) -> S3Result<Option<Vec<Rule>>> {
        let Ok(bucket) = catalog.bucket(&self.bucket) else { return Ok(None) };
        blocking(move || {
            let reader = bucket.served.read()?;
            records::bucket_cors(&reader, &bucket.name).map_err(from_store)
        })
        .await
    }

    /// Adds to an answer what lets the browser know whether the page may see it.
    pub async fn add(&self, catalog: &Catalog, response: &mut Response<Body>) {
        let Ok(Some(rules)) = self.rules(catalog).await else { return };
        let rule = rules.iter().find(|rule| rule.allows(self));
        self.tell(rule, response.headers_mut());
    }

    fn tell(&self, rule: Option<&Rule>, to: &mut HeaderMap) {
        to.append(header::VARY, HeaderValue::from_static(VARY));
        let Some(rule) = rule else { return };
        let mut set = |name, value: &str| {
            // Rules and requests were checked: each is text that a header can hold.
            if let Ok(value) = HeaderValue::from_str(value) {
                to.insert(name, value);
            }
        };
        if rule.origins.iter().any(|origin| origin == "*") {
            set(header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        } else {
            set(header::ACCESS_CONTROL_ALLOW_ORIGIN, &self.origin);
            set(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        set(header::ACCESS_CONTROL_ALLOW_METHODS, &rule.methods.join(", "));
        if !self.headers.is_empty() {
            set(header::ACCESS_CONTROL_ALLOW_HEADERS, &self.headers.join(", "));
        }
        if !rule.expose.is_empty() {
            set(header::ACCESS_CONTROL_EXPOSE_HEADERS, &rule.expose.join(", "));
        }
        if let Some(seconds) = rule.max_age {
            set(header::ACCESS_CONTROL_MAX_AGE, &seconds.to_string());
        }
    }
}

fn forbidden(text: &'static str) -> S3Error {
    custom("AccessForbidden", StatusCode::FORBIDDEN, text)
}

/// Answers what a browser asks before it sends a page's request. It needs no signature.
///
/// # Errors
/// BadRequest if it does not say what is going to be sent, AccessForbidden if no rule allows
/// it: also for a bucket that is not there, lest anybody learn which are.
pub async fn preflight(cross: Option<&Cross>, catalog: &Arc<Catalog>) -> S3Result<Response<Body>> {
    let Some(cross) = cross else {
        let told = "name Origin and Access-Control-Request-Method";
        return Err(custom("BadRequest", StatusCode::BAD_REQUEST, told));
    };
    let rules = cross.rules(catalog).await?;
    let rules = rules.ok_or_else(|| forbidden("CORS is not enabled for this bucket"))?;
    let rule = rules.iter().find(|rule| rule.allows(cross));
    let rule = rule.ok_or_else(|| forbidden("no rule of the bucket allows this"))?;
    let mut response = Response::new(Body::empty());
    cross.tell(Some(rule), response.headers_mut());
    Ok(response)
}

/// Refuses rules that S3 would not take.
///
/// # Errors
/// InvalidRequest, MalformedXML if there is no rule, or more than a hundred.
pub fn check(rules: &[Rule]) -> S3Result<()> {
    const METHODS: [&str; 5] = ["GET", "PUT", "POST", "DELETE", "HEAD"];
    if rules.is_empty() || rules.len() > 100 {
        return Err(s3_error!(MalformedXML, "there are between 1 and 100 rules"));
    }
    let printable = |text: &String| HeaderValue::from_str(text).is_ok();
    for rule in rules {
        if rule.origins.is_empty() || rule.methods.is_empty() {
            return Err(s3_error!(MalformedXML, "a rule names origins and methods"));
        }
        if let Some(method) = rule.methods.iter().find(|m| !METHODS.contains(&m.as_str())) {
            return Err(s3_error!(InvalidRequest, "the method {method:?} is none that rules name"));
        }
        let patterns = || rule.origins.iter().chain(&rule.headers);
        if let Some(pattern) = patterns().find(|p| p.matches('*').count() > 1) {
            return Err(s3_error!(InvalidRequest, "{pattern:?} has more than one star"));
        }
        let names = |name: &String| header::HeaderName::try_from(name.as_str()).is_ok();
        if let Some(name) = rule.expose.iter().find(|n| n.contains('*') || !names(n)) {
            return Err(s3_error!(InvalidRequest, "{name:?} is not the name of a header"));
        }
        let id = rule.id.as_ref().is_none_or(|id| id.chars().count() <= 255);
        if !id || rule.max_age.is_some_and(i32::is_negative) || !patterns().all(printable) {
            return Err(s3_error!(InvalidRequest, "a rule's ID, age or pattern cannot be used"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origin: &str, header: &str) -> Rule {
        let (origins, methods) = (vec![origin.to_owned()], vec!["GET".to_owned()]);
        Rule { origins, methods, headers: vec![header.to_owned()], ..Rule::default() }
    }

    fn asked(origin: &str, headers: &str) -> Cross {
        let req =
            Request::builder().method("OPTIONS").uri("/b%61sket/key").header("origin", origin);
        let req = req.header("access-control-request-method", "GET");
        let req = req.header("access-control-request-headers", headers).body(()).unwrap();
        Cross::from_request(&req, None).unwrap()
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, yes, no) in [
            ("*", "https://a.example", None),
            ("https://*.example", "https://a.example", Some("http://a.example")),
            ("start*end", "startend", Some("staend")),
            ("aba*aba", "abaaba", Some("aba")),
            ("https://a.example", "https://a.example", Some("https://a.example.evil")),
        ] {
            assert!(rule(pattern, "*").allows(&asked(yes, "")), "{pattern}");
            assert!(no.is_none_or(|no| !rule(pattern, "*").allows(&asked(no, ""))), "{pattern}");
        }
    }

    #[test]
    fn headers_are_compared_without_case() {
        let rule = rule("*", "X-Amz-*");
        assert!(rule.allows(&asked("a", "x-amz-acl, X-AMZ-DATE")));
        assert!(!rule.allows(&asked("a", "x-amz-acl,content-type")));
        assert_eq!(asked("a", "").bucket, "basket");
    }

    #[test]
    fn a_bucket_is_named_by_host_or_path() {
        let domain = Domain::new("s3.example.org").unwrap();
        let bucket = |host: &str| {
            let req = Request::builder().uri("/first/key").header("host", host).body(()).unwrap();
            bucket_of(&req, Some(&domain)).unwrap()
        };
        assert_eq!(bucket("photos.s3.example.org"), "photos");
        assert_eq!(bucket("photos.s3.example.org:9000"), "photos");
        assert_eq!(bucket("s3.example.org"), "first");
        assert_eq!(bucket("127.0.0.1:9000"), "first");
    }

    #[test]
    fn rules_that_s3_would_not_take_are_refused() {
        check(&[rule("https://*", "*")]).unwrap();
        check(&[]).unwrap_err();
        check(&[rule("*.a.*", "*")]).unwrap_err();
        check(&[rule("*", "x-*-*")]).unwrap_err();
        check(&[Rule { methods: vec!["PATCH".into()], ..rule("*", "*") }]).unwrap_err();
        check(&[Rule { methods: Vec::new(), ..rule("*", "*") }]).unwrap_err();
        check(&[Rule { expose: vec!["*".into()], ..rule("*", "*") }]).unwrap_err();
        check(&[Rule { expose: vec!["a\r\nb".into()], ..rule("*", "*") }]).unwrap_err();
        check(&[Rule { max_age: Some(-1), ..rule("*", "*") }]).unwrap_err();
        check(&vec![rule("*", "*"); 101]).unwrap_err();
    }
}
