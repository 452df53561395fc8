//! Who is logged in at the page.
//!
//! Owns: [`Sessions`]. A session is a random token in a cookie that scripts cannot read and other
//! sites cannot send, and a second one that the page sends back with each change.

use crate::users::{User, Users, Wrong};
use http::{HeaderMap, header};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a session lasts without a request.
const LIFE: Duration = Duration::from_secs(12 * 3600);
/// Sessions at a time; the oldest one ends for a further one.
const MOST: usize = 10_000;
/// The cookie.
const COOKIE: &str = "holdall";
/// The header that changes are sent with.
const CSRF: &str = "x-holdall-csrf";

/// Somebody at the page.
#[derive(Debug, Clone)]
pub struct Session {
    /// Who.
    pub user: Arc<User>,
    /// What each change is sent with.
    pub csrf: String,
    used: Instant,
}

impl Session {
    /// Whether a request carries what only the page knows.
    pub fn is_from_page(&self, headers: &HeaderMap) -> bool {
        headers.get(CSRF).is_some_and(|given| given.as_bytes() == self.csrf.as_bytes())
    }
}

/// All sessions. Clones share them; they end with the server.
#[derive(Debug, Clone)]
pub struct Sessions {
    users: Users,
    open: Arc<Mutex<HashMap<String, Session>>>,
}

fn token() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(crate::http::digest::hex(&bytes))
}

/// The token of a request's cookie.
fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(name, _)| name.trim() == COOKIE).map(|(_, value)| value.trim())
}

impl Sessions {
    /// No sessions yet.
    pub fn new(users: Users) -> Self {
        Self { users, open: Arc::default() }
    }

    /// Begins a session and returns the cookie that it is known by.
    ///
    /// # Errors
    /// Who was named, if the password is wrong.
    pub fn begin(
        &self,
        name: &str,
        password: &str,
        secure: bool,
    ) -> Result<(Session, String), Wrong> {
        let user = self.users.of_password(name, password)?;
        // A system without random numbers lets nobody in.
        let no_token = || Wrong::named(name);
        let (token, csrf) = (token().ok_or_else(no_token)?, token().ok_or_else(no_token)?);
        let session = Session { user, csrf, used: Instant::now() };
        let mut open = self.open.lock();
        open.retain(|_, session| session.used.elapsed() < LIFE);
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(token, _)| token.clone());
            oldest.and_then(|token| open.remove(&token));
        }
        open.insert(token.clone(), session.clone());
        let secure = if secure { "; Secure" } else { "" };
        let life = LIFE.as_secs();
        let cookie = format!(
            "{COOKIE}={token}; Path=/-/web/; HttpOnly; SameSite=Strict; Max-Age={life}{secure}"
        );
        Ok((session, cookie))
    }

    /// The session of a request; that of everybody if requests need no password.
    pub fn find(&self, headers: &HeaderMap) -> Option<Session> {
        let known = || {
            let mut open = self.open.lock();
            let session = open.get_mut(cookie(headers)?)?;
            if session.used.elapsed() >= LIFE {
                return None;
            }
            // Rights and passwords change while it lasts.
            session.user = self.users.still(&session.user)?;
            session.used = Instant::now();
            Some(session.clone())
        };
        let anonymous = || {
            let user = self.users.everybody()?;
            Some(Session { user, csrf: "anonymous".into(), used: Instant::now() })
        };
        known().or_else(anonymous)
    }

    /// Ends the session of a request and returns the cookie that takes it from the browser.
    pub fn end(&self, headers: &HeaderMap) -> String {
        if let Some(token) = cookie(headers) {
            self.open.lock().remove(token);
        }
        format!("{COOKIE}=; Path=/-/web/; HttpOnly; SameSite=Strict; Max-Age=0")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_found_among_other_cookies() {
        let mut headers = HeaderMap::new();
        assert_eq!(cookie(&headers), None);
        headers.append(header::COOKIE, "a=b; holdall=x1; c=d".parse().unwrap());
        assert_eq!(cookie(&headers), Some("x1"));
    }
}
