//! The disk of today as a cost model. Owns nothing.

use holdall_instrument::price::Price;
use holdall_testkit::{CostModel, SeekRule};

/// What `price` makes of accesses to pages of `page_size` bytes, a few KiB; each is a seek.
#[must_use]
pub fn of(price: &Price, page_size: usize) -> CostModel {
    CostModel {
        seek_ms: price.seek_us / 1000.0,
        ms_per_kib: 1024.0 / (price.mb_per_s * 1000.0),
        page_size: page_size as u32,
        seeks: SeekRule::EveryAccess,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_costs_its_seek_and_its_transfer() {
        let model = of(&Price { seek_us: 80.5, mb_per_s: 1500.0 }, 4096);
        let one = holdall_testkit::DiskStats { seeks: 1, pages_read: 1, ..Default::default() };
        assert!((model.time_ms(&one) - (0.0805 + 4096.0 / 1.5e6)).abs() < 1e-9);
    }
}
