//! What an access costs on a disk of today: measured here, or as the user says.
//!
//! Owns: [`Price`], [`DiskPrice`] with the measuring, and the file measured on, which is removed
//! again. A price measured is kept as a part beside the figures, so that all of one report have
//! the same. Threads: one measures, the others wait.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::picture::Table;
use anyhow::{Context, Result, ensure};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::parts::Parts;

/// Bytes of an access that a seek is measured by.
const SMALL: usize = 4096;
/// Bytes of an access that the transfer is measured by.
const LARGE: usize = 1 << 20;
/// Bytes of the file measured on.
const FILE: usize = 256 << 20;
/// Random reads.
const READS: usize = 2000;
/// Where the measured price is kept.
const PART: &str = "price of the disk";

/// Seek and transfer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Microseconds of an access beside its transfer, wherever it goes.
    pub seek_us: f64,
    /// Megabytes (10⁶ bytes) a second.
    pub mb_per_s: f64,
}

impl Price {
    /// That of quick runs, which must give the same figures everywhere.
    pub const QUICK: Self = Self { seek_us: 52.0, mb_per_s: 1200.0 };

    /// KiB of transfer that an access is worth.
    #[must_use]
    pub fn access_in_kib(&self) -> f64 {
        self.seek_us * self.mb_per_s / 1024.0
    }
}

impl FromStr for Price {
    type Err = String;

    /// `SEEK_US,MB_PER_S`.
    fn from_str(text: &str) -> Result<Self, String> {
        let both = text.split_once(',').and_then(|(seek, rate)| {
            Some((seek.trim().parse::<f64>().ok()?, rate.trim().parse::<f64>().ok()?))
        });
        let (seek_us, mb_per_s) = both.ok_or("microseconds and MB/s are wanted, as 80,1500")?;
        if !(0.01..=1e6).contains(&seek_us) || !(0.1..=1e6).contains(&mb_per_s) {
            return Err("not in 0.01..=1000000 µs and 0.1..=1000000 MB/s".into());
        }
        Ok(Self { seek_us, mb_per_s })
    }
}

/// A price and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Priced {
    /// The price.
    pub price: Price,
    /// In words.
    pub how: String,
}

impl Priced {
    /// A sentence for the notes.
    #[must_use]
    pub fn note(&self) -> String {
        let Price { seek_us, mb_per_s } = self.price;
        format!(
            "Disk of today: {seek_us:.1} µs per access and {mb_per_s:.0} MB/s, {}; order does not \
             matter. An access is worth {:.0} KiB of transfer.",
            self.how,
            self.price.access_in_kib()
        )
    }

    /// The same as numbers.
    #[must_use]
    pub fn table(&self) -> Table {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        Table {
            id: "disk".into(),
            title: "The disk of today".into(),
            head: vec!["what".into(), "value".into()],
            rows: vec![
                row("access (µs)", format!("{:.2}", self.price.seek_us)),
                row("transfer (MB/s)", format!("{:.1}", self.price.mb_per_s)),
                row("how", self.how.clone()),
            ],
        }
    }
}

/// The price, found out when it is first asked for.
#[derive(Debug)]
pub struct DiskPrice {
    known: Mutex<Option<Priced>>,
    dir: PathBuf,
}

impl DiskPrice {
    /// A price given.
    #[must_use]
    pub fn given(price: Price, how: &str) -> Self {
        let known = Mutex::new(Some(Priced { price, how: how.into() }));
        Self { known, dir: PathBuf::new() }
    }

    /// A price to be measured on the file system of `dir`.
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        Self { known: Mutex::new(None), dir: dir.to_owned() }
    }

    /// The price: given, kept among `parts`, or measured now, which takes seconds and
    /// 256 MiB of space for as long.
    ///
    /// # Errors
    /// The file measured on cannot be written or read.
    pub fn get(&self, parts: &dyn Parts) -> Result<Priced> {
        // A panic here left the price unknown or whole.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(price) = known.as_ref() {
            return Ok(price.clone());
        }
        let kept = parts.load(PART).and_then(|text| serde_json::from_str(&text).ok());
        let price = match kept {
            Some(price) => price,
            None => {
                let price = measure(&self.dir, FILE, READS)?;
                parts.save(PART, &serde_json::to_string(&price)?)?;
                price
            }
        };
        *known = Some(price.clone());
        Ok(price)
    }
}

/// Measures on a file of `len` bytes in `dir`: the median of random reads of 4 KiB, less their
/// transfer, and the rate of reading it from end to end.
fn measure(dir: &Path, len: usize, reads: usize) -> Result<Priced> {
    let path = dir.join(format!(".disk-price.{}.tmp", std::process::id()));
    let measured = write(&path, len).and_then(|()| read(&path, len, reads));
    // The first error is the one to report.
    let removed = std::fs::remove_file(&path);
    let measured = measured.context("measuring the disk")?;
    removed.context("measuring the disk")?;
    Ok(measured)
}

fn write(path: &Path, len: usize) -> Result<()> {
    let file = File::create(path)?;
    let mut block = vec![0; LARGE];
    let mut rng = SmallRng::seed_from_u64(1);
    for at in (0..len).step_by(LARGE) {
        // Something that no device can leave out or pack.
        rng.fill(block.as_mut_slice());
        file.write_all_at(&block, at as u64)?;
    }
    Ok(file.sync_all()?)
}

fn read(path: &Path, len: usize, reads: usize) -> Result<Priced> {
    let mut memory = vec![0; LARGE + SMALL];
    let skip = memory.as_ptr().align_offset(SMALL);
    ensure!(skip < SMALL, "no memory at a border of pages");
    let buf = &mut memory[skip..skip + LARGE];
    let direct = open_direct(path).filter(|file| file.read_exact_at(&mut buf[..SMALL], 0).is_ok());
    let (file, how) = match direct {
        Some(file) => (file, "reads past the page cache"),
        None => (File::open(path)?, "reads through the page cache: this disk has no others"),
    };
    let start = Instant::now();
    for at in (0..len).step_by(LARGE) {
        file.read_exact_at(buf, at as u64)?;
    }
    let bytes_per_us = len as f64 / micros(start);
    let mut rng = SmallRng::seed_from_u64(2);
    let mut times = Vec::with_capacity(reads);
    for _ in 0..reads {
        let at = rng.random_range(0..len / SMALL) * SMALL;
        let start = Instant::now();
        file.read_exact_at(&mut buf[..SMALL], at as u64)?;
        times.push(micros(start));
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let seek_us = (median - SMALL as f64 / bytes_per_us).max(0.01);
    let how = format!(
        "measured ({how}: {reads} random ones of 4 KiB, median {median:.1} µs; {} MiB in pieces of \
         1 MiB)",
        len >> 20
    );
    Ok(Priced { price: Price { seek_us, mb_per_s: bytes_per_us }, how })
}

#[cfg(target_os = "linux")]
fn open_direct(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_DIRECT).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

fn micros(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1e6).max(0.001)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::{NoParts, PartFiles};

    #[test]
    fn prices_are_read_and_kept_in_range() {
        let price = Price { seek_us: 80.5, mb_per_s: 1500.0 };
        assert_eq!("80.5,1500".parse(), Ok(price));
        assert_eq!(" 80.5 , 1500".parse(), Ok(price));
        for bad in ["", "80", "80,x", "0,100", "-1,100", "80,0", "nan,5", "80,inf", "1,2,3"] {
            assert!(bad.parse::<Price>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_measured_price_is_kept_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let found = measure(dir.path(), 4 << 20, 50).unwrap();
        assert!(found.price.seek_us > 0.0 && found.price.mb_per_s > 1.0, "{found:?}");
        assert!(found.note().contains("measured") && found.table().rows.len() == 3);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let dir = dir.path().join("parts");
        let parts = PartFiles { dir: dir.clone(), version: "1".into(), afresh: false };
        parts.save(PART, &serde_json::to_string(&found).unwrap()).unwrap();
        assert_eq!(DiskPrice::of(&dir).get(&parts).unwrap(), found);
        let nowhere = DiskPrice::of(Path::new("no/such/directory"));
        assert!(nowhere.get(&NoParts).is_err());
        assert_eq!(DiskPrice::given(Price::QUICK, "x").get(&NoParts).unwrap().price, Price::QUICK);
    }
}
