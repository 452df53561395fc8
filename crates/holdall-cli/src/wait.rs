//! Waiting for others who have the store open: the option `--wait`.
//!
//! Owns: [`Waiting`]; how times are written on the command line.

use std::time::Duration;

use holdall::{Options, Wait};

/// What every command has that opens a store for changes.
#[derive(clap::Args, Default)]
pub struct Waiting {
    /// Wait while others have the store open, at most so long (as 500ms, 10s, 5m, 1h) if given
    #[arg(long, value_name = "DURATION", require_equals = true, value_parser = duration)]
    #[expect(clippy::option_option, reason = "clap's form of an option with an optional value")]
    wait: Option<Option<Duration>>,
}

impl Waiting {
    /// How long an opening waits.
    pub fn as_wait(&self) -> Wait {
        match self.wait {
            None => Wait::Not,
            Some(None) => Wait::Forever,
            Some(Some(limit)) => limit.into(),
        }
    }

    /// Options of the opening.
    pub fn options(&self) -> Options {
        Options::default().wait(self.as_wait())
    }
}

/// A time with its unit; without one, seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let form = "write a number with ms, s, m or h behind it, as 500ms, 10s or 1.5h";
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("ms") => 0.001,
        Some("" | "s") => 1.0,
        Some("m") => 60.0,
        Some("h") => 3600.0,
        _ => return Err(form.into()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(form.into());
    }
    let number: f64 = digits.parse().map_err(|_| form.to_owned())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| "longer than any wait".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let cases = [("500ms", 500), ("10s", 10_000), ("1.5m", 90_000), ("2h", 7_200_000)];
        for (text, millis) in cases {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(duration("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "s", "-1s", "1e3", "1d", "nan", "inf", "1.2.3s", "99999999999999999999h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
