//! A figure that was measured several times: its median and how far the others lie.

use std::fmt;

use crate::picture::number::plain as number;

/// Median, least and most.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spread {
    /// The middle one; of an even number of values the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub least: f64,
    /// The largest.
    pub most: f64,
    /// How many there were.
    pub runs: usize,
}

impl Spread {
    /// Of `values`; of none all is zero.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or_default();
        let runs = sorted.len();
        let upper = at(runs / 2);
        let median = if runs.is_multiple_of(2) && runs > 0 {
            (at(runs / 2 - 1) + upper) / 2.0
        } else {
            upper
        };
        Self { median, least: at(0), most: at(runs.saturating_sub(1)), runs }
    }
}

impl fmt::Display for Spread {
    /// `12.3 (11.9–13.0)`; a lone value stands alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, least, most, runs } = *self;
        match runs {
            0 | 1 => f.write_str(&number(median)),
            _ => write!(f, "{} ({}–{})", number(median), number(least), number(most)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_middle_and_the_ends() {
        let of = |values: &[f64]| Spread::of(values);
        assert_eq!(of(&[3.0, 1.0, 2.0]).median, 2.0);
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!((of(&[]).median, of(&[]).runs), (0.0, 0));
        assert_eq!(of(&[5.0]).to_string(), "5");
        assert_eq!(of(&[5.0, 7.0, 6.0]).to_string(), "6 (5–7)");
    }
}
