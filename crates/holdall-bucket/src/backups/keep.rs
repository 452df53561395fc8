//! Which backups of a schedule stay.
//!
//! Owns: [`Keep`]: of each of the newest hours, days, weeks, months and years, the newest backup. Times are
//! in UTC. Pure.

use super::manifest::{Backups, Listed};
use holdall::{Error, Result};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::collections::BTreeSet;
use std::str::FromStr;

/// How many of each kind stay. The newest of all always stays, the newest whole one, and what a
/// backup that stays builds on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// The newest.
    pub last: u32,
    /// One of each hour.
    pub hourly: u32,
    /// One of each day.
    pub daily: u32,
    /// One of each week, which begins on Monday.
    pub weekly: u32,
    /// One of each month.
    pub monthly: u32,
    /// One of each year.
    pub yearly: u32,
}

impl FromStr for Keep {
    type Err = Error;

    /// `last=10,hourly=24,daily=7,weekly=4,monthly=12,yearly=3`, or some of these.
    fn from_str(text: &str) -> Result<Self> {
        let bad = |part: &str| {
            Error::Invalid(format!(
                "{part:?} is no rule of what stays; write as last=10,daily=7,weekly=4, from last, \
                 hourly, daily, weekly, monthly, yearly"
            ))
        };
        let mut keep = Self::default();
        let mut known = BTreeSet::new();
        for part in text.split(',') {
            let (kind, number) = part.split_once('=').ok_or_else(|| bad(part))?;
            let number: u32 = number.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad(part))?;
            let field = match kind {
                "last" => &mut keep.last,
                "hourly" => &mut keep.hourly,
                "daily" => &mut keep.daily,
                "weekly" => &mut keep.weekly,
                "monthly" => &mut keep.monthly,
                "yearly" => &mut keep.yearly,
                _ => return Err(bad(part)),
            };
            if !known.insert(kind) {
                return Err(bad(part));
            }
            *field = number;
        }
        Ok(keep)
    }
}

impl Keep {
    /// Of these backups, those that stay.
    pub(crate) fn of(&self, backups: &Backups) -> BTreeSet<[u8; 16]> {
        let mut all = backups.by_time();
        all.reverse();
        let mut stay: BTreeSet<[u8; 16]> = BTreeSet::new();
        let newest = self.last.max(1) as usize;
        stay.extend(all.iter().take(newest).map(|listed| listed.id.0));
        // A follower builds on it next.
        stay.extend(backups.newest_whole().map(|listed| listed.id.0));
        type Period = fn(DateTime) -> i64;
        let periods: [(u32, Period); 5] = [
            (self.hourly, |at| days(at) * 24 + i64::from(at.hour())),
            (self.daily, days),
            // Day 0 was a Thursday.
            (self.weekly, |at| (days(at) + 3).div_euclid(7)),
            (self.monthly, |at| i64::from(at.year()) * 12 + i64::from(at.month())),
            (self.yearly, |at| i64::from(at.year())),
        ];
        for (most, period) in periods {
            let mut seen = BTreeSet::new();
            for listed in &all {
                let period = period(at(listed));
                if seen.len() < most as usize && seen.insert(period) {
                    stay.insert(listed.id.0);
                }
            }
        }
        let kept: Vec<&Listed> = all.iter().filter(|one| stay.contains(&one.id.0)).collect();
        for listed in kept {
            // A backup whose base is missing keeps what there is of what it builds on.
            let mut next = listed.base;
            // One that stays already may have come by its own period: its bases follow in its turn.
            while let Some(base) = next.and_then(|id| backups.get(id))
                && stay.insert(base.id.0)
            {
                next = base.base;
            }
        }
        stay
    }
}

fn at(listed: &Listed) -> DateTime {
    let millis = i64::try_from(listed.time).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    time.to_zoned(TimeZone::UTC).datetime()
}

fn days(at: DateTime) -> i64 {
    let start = jiff::civil::date(1970, 1, 1);
    // Years are bounded, and so are days.
    at.date().since(start).map_or(0, |span| i64::from(span.get_days()))
}
