//! What is run and what comes out: a case, and its points by storage age (Sears §4.5, §4.6).

use rand::Rng;
use rand::rngs::SmallRng;
use serde::{Deserialize, Serialize};

use super::system::{Ask, Kind};
use holdall_instrument::experiment::Settings;

/// What is added to the name of a system that gets sizes before bytes.
pub const KNOWN: &str = ", size known";

/// Sizes of objects in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All the same.
    Constant(usize),
    /// Even between a tenth and nineteen tenths of the mean, drawn anew with each version.
    Uniform(usize),
}

impl Sizes {
    /// The next object's.
    pub fn draw(self, rng: &mut SmallRng) -> usize {
        match self {
            Self::Constant(size) => size,
            Self::Uniform(mean) => rng.random_range(mean / 10..=mean * 19 / 10),
        }
    }

    /// Sizes of the objects that fill `wanted` bytes: the next would not fit. One object if
    /// not even the first does.
    pub fn filling(self, wanted: u64, rng: &mut SmallRng) -> Vec<usize> {
        let mut sum = 0;
        let drawn = std::iter::repeat_with(|| self.draw(rng));
        let mut sizes: Vec<usize> = drawn
            .take_while(|&size| {
                sum += size as u64;
                sum <= wanted
            })
            .collect();
        if sizes.is_empty() {
            sizes.extend(usize::try_from(wanted));
        }
        sizes
    }
}

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// On which system.
    pub kind: Kind,
    /// Objects.
    pub sizes: Sizes,
    /// Bytes of the volume.
    pub volume: u64,
    /// Share of it that live objects take.
    pub occupancy: f64,
    /// How bytes come.
    pub ask: Ask,
    /// Objects that are appended to in turns, each append durable; 1 for safe writes.
    pub together: usize,
    /// Whether the objects are loaded into gaps between small ones, which go then.
    pub in_gaps: bool,
    /// At which it is measured, rising; the filled store is age 0.
    pub ages: Vec<u32>,
    /// Seconds of writing after which it is cut off.
    pub limit: u64,
}

impl Case {
    /// What tables call the system, and how it is used.
    pub fn system(&self) -> String {
        format!("{}{}", self.kind.name(), if self.ask.hint { KNOWN } else { "" })
    }

    /// All that a result depends on, for the name of a part.
    pub fn name(&self, settings: &Settings<'_>) -> String {
        format!("aging {self:?} s{}", settings.seed)
    }
}

/// A store at an age.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Bytes of safe writes over live bytes.
    pub age: f64,
    /// Fragments of an object, mean.
    pub fragments: f64,
    /// Fragments of the object that has most.
    pub most: u32,
    /// MB of 10^6 per second that random objects are read at, from the disk.
    pub read: f64,
    /// MB of 10^6 per second that were written since the point before.
    pub write: f64,
}

/// A case's result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The system's name.
    pub system: String,
    /// By age; none if the system was skipped.
    pub points: Vec<Point>,
    /// Objects in the store.
    pub objects: usize,
    /// Why it was skipped, or ended early, or how it was measured.
    pub remarks: Vec<String>,
    /// What the store itself counted at the end, in words.
    pub account: String,
}

impl Run {
    /// The last point at or before `age`, give or take a tenth.
    pub fn at(&self, age: f64) -> Option<&Point> {
        self.points.iter().rev().find(|p| p.age <= age + 0.1)
    }

    /// Fragments of this run and another at the last age that both reached.
    pub fn beside(&self, other: &Self) -> Option<(f64, f64)> {
        let age = |p: &Point| p.age.floor() as u64;
        self.points.iter().rev().find_map(|p| {
            let same = other.points.iter().find(|q| age(q) == age(p))?;
            Some((p.fragments, same.fragments))
        })
    }

    /// Fragments at the last age.
    pub fn fragments(&self) -> Option<f64> {
        self.points.last().map(|p| p.fragments)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    proptest! {
        #[test]
        fn a_volume_is_filled_up_to_its_occupancy(
            mean in 1_000_usize..50_000, wanted in 0_u64..2_000_000, seed: u64, uniform: bool,
        ) {
            let sizes = if uniform { Sizes::Uniform(mean) } else { Sizes::Constant(mean) };
            let drawn = sizes.filling(wanted, &mut SmallRng::seed_from_u64(seed));
            let sum: u64 = drawn.iter().map(|&s| s as u64).sum();
            prop_assert!(sum <= wanted && !drawn.is_empty());
            let most = if uniform { mean * 19 / 10 } else { mean } as u64;
            prop_assert!(sum + most > wanted || drawn.len() == 1);
            let constant = wanted / mean as u64;
            prop_assert!(uniform || drawn.len() as u64 == constant.max(1));
        }
    }

    #[test]
    fn a_run_is_looked_up_by_age() {
        let point = |age| Point { age, fragments: age + 1.0, most: 1, read: 1.0, write: 1.0 };
        let run = Run { points: [0.0, 1.02, 2.08].map(point).to_vec(), ..Run::default() };
        let found = |age| run.at(age).map(|p| p.age);
        assert_eq!(found(0.5), Some(0.0));
        assert_eq!(found(1.0), Some(1.02));
        assert_eq!(found(2.0), Some(2.08));
        assert_eq!(run.fragments(), Some(3.08));
        assert_eq!(Run::default().at(1.0), None);
        let longer = Run { points: [0.0, 1.3, 2.0, 3.0].map(point).to_vec(), ..Run::default() };
        assert_eq!(run.beside(&longer), Some((3.08, 3.0)));
        assert_eq!(longer.beside(&run), Some((3.0, 3.08)));
        assert_eq!(run.beside(&Run::default()), None);
    }
}
