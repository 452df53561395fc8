//! Who keeps a transaction waiting.
//!
//! Owns: [`Busy`], a report for errors and for those who look.

use std::fmt;
use std::time::Duration;

/// The transaction that others wait for: whose it is, since when, and when it was last used. A
/// long `idle` and `has_ended` tell a transaction that was left behind from one that works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Busy {
    /// The thread that used it last: its name, or a number that this process has given it.
    pub thread: String,
    /// It is the thread that asks.
    pub is_own: bool,
    /// That thread has ended and left the transaction open.
    pub has_ended: bool,
    /// How long it has kept others out, to some milliseconds.
    pub held: Duration,
    /// Time since its last call began, to some milliseconds.
    pub idle: Duration,
    /// Nobody else writes, but a checkpoint that must come first takes longer than the wait.
    pub checkpoint: bool,
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.checkpoint {
            let text = "a checkpoint makes room for changes; allow a longer wait, or try again";
            return f.write_str(text);
        }
        let (held, idle) = (self.held.as_secs_f64(), self.idle.as_secs_f64());
        let (whose, advice) = if self.is_own {
            ("this thread".to_owned(), "commit or drop it before the next begins")
        } else if self.has_ended {
            let advice = "the thread has ended: commit or drop what it left behind";
            (self.thread.clone(), advice)
        } else {
            (self.thread.clone(), "allow a longer wait, or try again")
        };
        write!(
            f,
            "a transaction of {whose} has been open for {held:.3} s, its last call began {idle:.3} s \
             ago; {advice}"
        )
    }
}
