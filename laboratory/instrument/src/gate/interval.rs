//! How sure a median of ratios is, and what follows for a row.
//!
//! Owns: [`Interval`], [`Verdict`] and the bounds of the gate.
//!
//! The interval is the exact one of the sign test: two order statistics of the ratios. For `n`
//! pairs it reaches from the `k`-th smallest to the `k`-th largest ratio, if `k` is the
//! greatest with `2 P(B ≤ k − 1) ≤ 0.05` and `B` counts heads in `n` tosses of a fair coin. It
//! assumes that pairs are independent and nothing about how ratios are distributed. With nine
//! pairs it leaves out one ratio at each end and covers the true median in 96.1 % of all runs,
//! so one disturbed pair does not decide. Source: Conover, Practical Nonparametric Statistics,
//! 3rd edition, section 3.2; David and Nagaraja, Order Statistics, 3rd edition, section 7.1.

use serde::Serialize;

/// Fewest pairs: with fewer the interval would have to reach to the outermost ratios.
pub const FEWEST: usize = 9;
/// Most pairs: the probabilities are exact as floating point numbers up to here, and more would
/// take days.
pub const MOST: usize = 501;
/// A row is worse if its whole interval lies below.
pub const LOSS: f64 = 0.95;
/// A row is better if its whole interval lies above.
pub const GAIN: f64 = 1.05;
/// An interval whose ends are further apart (as 0.90 and 1.10 are) says nothing of 5 %.
pub const WIDEST: f64 = 1.10 / 0.90;
/// What chance is left that the interval misses the median.
const MISSED: f64 = 0.05;

/// The median of ratios, and where the true one lies with 95 % certainty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// The middle ratio; of an even number the mean of the two in the middle.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What the gate says of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The interval lies below [`LOSS`].
    Worse,
    /// A loss of 5 % or more is not shown, and the interval is narrow enough to show one, or
    /// lies above [`LOSS`].
    NotWorse,
    /// The interval lies above [`GAIN`].
    Better,
    /// The interval reaches below [`LOSS`] and is wider than [`WIDEST`].
    NotJudged,
}

impl Interval {
    /// Of one ratio for each pair, all positive; none of fewer than [`FEWEST`] or more than
    /// [`MOST`] pairs.
    #[must_use]
    pub fn of(ratios: &[f64]) -> Option<Self> {
        if !(FEWEST..=MOST).contains(&ratios.len()) {
            return None;
        }
        let mut sorted = ratios.to_vec();
        sorted.sort_by(f64::total_cmp);
        let outside = left_out(sorted.len());
        Some(Self {
            median: crate::spread::Spread::of(&sorted).median,
            low: *sorted.get(outside)?,
            high: *sorted.get(sorted.len() - 1 - outside)?,
        })
    }

    /// What follows for the row. Ratios are of speeds: more is better.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.high < LOSS {
            Verdict::Worse
        } else if self.low > GAIN {
            Verdict::Better
        } else if self.low < LOSS && self.high > self.low * WIDEST {
            Verdict::NotJudged
        } else {
            Verdict::NotWorse
        }
    }
}

/// How many ratios lie outside the interval at each end.
fn left_out(pairs: usize) -> usize {
    let mut exactly = 0.5_f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX));
    let (mut at_most, mut heads) = (exactly, 0);
    while 2.0 * at_most <= MISSED && heads < pairs {
        exactly *= (pairs - heads) as f64 / (heads + 1) as f64;
        at_most += exactly;
        heads += 1;
    }
    // This count is too probable; the one before it is k - 1.
    heads.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    fn verdict(ratios: &[f64]) -> Verdict {
        Interval::of(ratios).unwrap().verdict()
    }

    /// Nine ratios around `middle`, the outermost `apart` from it.
    fn around(middle: f64, apart: f64) -> Vec<f64> {
        (-4..=4).map(|i| middle * (1.0 + apart * f64::from(i) / 4.0)).collect()
    }

    #[test]
    fn ends_are_those_of_the_tables() {
        let table = [(9, 1), (10, 1), (11, 1), (12, 2), (15, 3), (20, 5), (25, 7), (100, 39)];
        for (pairs, outside) in table {
            assert_eq!(left_out(pairs), outside, "{pairs}");
        }
        let found = Interval::of(&[9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!(found, Interval { median: 5.0, low: 2.0, high: 8.0 });
    }

    #[test]
    fn a_clear_loss_is_found_and_one_bad_pair_is_none() {
        assert_eq!(verdict(&around(0.90, 0.04)), Verdict::Worse);
        // However wide it is, all of it lies below.
        assert_eq!(verdict(&around(0.50, 0.60)), Verdict::Worse);
        let mut one = around(1.0, 0.02);
        one[4] = 0.1;
        assert_eq!(verdict(&one), Verdict::NotWorse);
    }

    #[test]
    fn equal_series_are_not_worse_and_a_noisy_row_is_not_judged() {
        assert_eq!(verdict(&[1.0; 9]), Verdict::NotWorse);
        assert_eq!(verdict(&around(1.0, 0.08)), Verdict::NotWorse);
        assert_eq!(verdict(&around(0.96, 0.03)), Verdict::NotWorse);
        assert_eq!(verdict(&around(1.0, 0.30)), Verdict::NotJudged);
        assert_eq!(verdict(&around(0.90, 0.30)), Verdict::NotJudged);
        // Wide, but all of it above.
        assert_eq!(verdict(&around(1.5, 0.40)), Verdict::NotWorse);
        assert_eq!(verdict(&around(1.5, 0.20)), Verdict::Better);
    }

    #[test]
    fn few_pairs_give_no_interval() {
        assert_eq!(Interval::of(&[0.5; 8]), None);
        assert!(Interval::of(&[0.5; 9]).is_some());
        assert_eq!(Interval::of(&vec![0.5; MOST + 1]), None);
    }

    /// Runs of nine skewed ratios whose true median is one: the interval holds it as often as
    /// it promises.
    #[test]
    fn it_covers_the_median_as_often_as_it_promises() {
        let mut random = SmallRng::seed_from_u64(7);
        let mut ratio = || {
            let u: f64 = random.random_range(-1.0..1.0);
            if u < 0.0 { 1.0 + u / 20.0 } else { 1.0 + u * u * 3.0 }
        };
        let mut held = 0;
        for _ in 0..10_000 {
            let found = Interval::of(&std::array::from_fn::<_, 9, _>(|_| ratio())).unwrap();
            held += usize::from(found.low <= 1.0 && 1.0 <= found.high);
        }
        assert!((9_550..9_670).contains(&held), "{held} of 10,000, 9,609 are due");
    }
}
