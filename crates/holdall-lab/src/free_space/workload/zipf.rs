//! Ranks by Zipf's law. Owns the constants of Gray's method (Gray et al., SIGMOD 1994), which
//! draws in constant time after one pass over the ranks. No threads.

use rand::Rng;
use rand::rngs::SmallRng;

/// Draws ranks 0..n, rank i with a probability in proportion to (i + 1)^-theta.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    n: f64,
    theta: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// Of `n` ranks, at least 2; `theta` between 0 and 1, both excluded.
    pub(super) fn new(n: usize, theta: f64) -> Self {
        let zeta = |n: usize| (1..=n).map(|i| (i as f64).powf(-theta)).sum::<f64>();
        let (all, two) = (zeta(n), zeta(2));
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - two / all);
        Self { n: n as f64, theta, zeta: all, alpha: 1.0 / (1.0 - theta), eta }
    }

    pub(super) fn draw(&self, rng: &mut SmallRng) -> usize {
        let u: f64 = rng.random();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let rank = self.n * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as usize).min(self.n as usize - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn frequencies_follow_the_law() {
        let zipf = Zipf::new(1000, 0.99);
        let mut rng = SmallRng::seed_from_u64(1);
        let mut counts = vec![0_u32; 1000];
        for _ in 0..400_000 {
            counts[zipf.draw(&mut rng)] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio - 2_f64.powf(0.99)).abs() < 0.1, "{ratio}");
        let head = f64::from(counts.iter().take(100).sum::<u32>()) / 400_000.0;
        let harmonic = |n: u32| (1..=n).map(|i| f64::from(i).powf(-0.99)).sum::<f64>();
        assert!((head - harmonic(100) / harmonic(1000)).abs() < 0.02, "{head}");
    }
}
