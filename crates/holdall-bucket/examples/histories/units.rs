//! Bytes that tell where they came from.
//!
//! An object consists of units of 16 bytes, each with the marker of the change that wrote it and its
//! number within that. So what is read says which changes it contains, in which order. Histories
//! have a content as runs, `MARKER:FIRST:COUNT`, of consecutive units; marker `0` stands for zeros.

use bytes::{BufMut, Bytes, BytesMut};
use std::fmt::Write;

/// Bytes of a unit.
pub(crate) const UNIT: u64 = 16;
/// Letters of a marker.
const MARKER: usize = 8;

/// `count` units of a marker.
pub(crate) fn bytes_of(marker: &str, count: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity((count * UNIT) as usize);
    for number in 0..count {
        bytes.put_slice(format!("{marker}.{number:06x}\n").as_bytes());
    }
    bytes.freeze()
}

/// `count` units of a marker, in a history.
pub(crate) fn told(marker: &str, count: u64) -> String {
    if count == 0 { String::new() } else { format!("{marker}:0:{count}") }
}

/// What one unit is of. What is no unit shows its bytes.
fn unit(bytes: &[u8]) -> (String, u64) {
    if bytes.iter().all(|byte| *byte == 0) && bytes.len() as u64 == UNIT {
        return ("0".into(), 0);
    }
    let parsed = || {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let (marker, number) = text.split_once('.')?;
        let right = marker.len() == MARKER && number.len() == 6;
        let number = u64::from_str_radix(number, 16).ok().filter(|_| right)?;
        Some((marker.to_owned(), number))
    };
    parsed().unwrap_or_else(|| {
        let mut bad = String::from("bad");
        for byte in bytes {
            let _ = write!(bad, "{byte:02x}");
        }
        (bad, 0)
    })
}

/// The runs of a content.
pub(crate) fn runs(bytes: &[u8]) -> String {
    let mut out: Vec<(String, u64, u64)> = Vec::new();
    for (marker, number) in bytes.chunks(UNIT as usize).map(unit) {
        match out.last_mut() {
            Some((last, first, count))
                if *last == marker && (marker == "0" || *first + *count == number) =>
            {
                *count += 1;
            }
            _ => out.push((marker, number, 1)),
        }
    }
    let told: Vec<String> = out.iter().map(|(m, first, n)| format!("{m}:{first}:{n}")).collect();
    told.join(",")
}
