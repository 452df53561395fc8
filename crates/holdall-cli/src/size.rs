//! Numbers of bytes on the command line.
//!
//! Owns: how they are written, as other tools have them.

/// The error for other text.
const FORM: &str = "write a number of bytes, with K, M, G, T or P behind it for 1,024s (also k, KiB), or KB, \
                    MB .. for 1,000s; with a unit it may have decimals, as 1.5G";
/// Decimals beyond these are less than a byte of any unit.
const MOST_DECIMALS: usize = 16;

/// A number of bytes with a unit; a part of a byte is left off.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let unit = unit_bytes(&unit).ok_or(FORM)?;
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_point = digits.contains('.');
    if whole.is_empty() || !is_number(whole) || !is_number(decimals) {
        return Err(FORM.to_owned());
    }
    if has_point && (decimals.is_empty() || decimals.len() > MOST_DECIMALS || unit == 1) {
        return Err(FORM.to_owned());
    }
    let too_many = || "more than any file has".to_owned();
    let whole: u64 = whole.parse().map_err(|_| too_many())?;
    let scale = 10_u128.pow(u32::try_from(decimals.len()).unwrap_or(0));
    let part = decimals.parse().unwrap_or(0_u128) * u128::from(unit) / scale;
    let total = u128::from(whole) * u128::from(unit) + part;
    u64::try_from(total).map_err(|_| too_many())
}

/// Bytes of a unit in small letters.
fn unit_bytes(unit: &str) -> Option<u64> {
    let (letter, base) = match unit {
        "" | "b" => return Some(1),
        _ => match unit.strip_suffix("ib") {
            Some(letter) => (letter, 1024_u64),
            None => unit.strip_suffix('b').map_or((unit, 1024), |letter| (letter, 1000)),
        },
    };
    let power = ["k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    base.checked_pow(u32::try_from(power).ok()? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_elsewhere() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("7B", 7),
            ("1k", 1 << 10),
            ("1K", 1 << 10),
            ("2KiB", 2 << 10),
            ("2kib", 2 << 10),
            ("2KB", 2000),
            ("3mb", 3_000_000),
            ("1.5G", 3 << 29),
            ("0.1K", 102),
            ("1.5MB", 1_500_000),
            ("16383P", 16383 << 50),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        let bad = [
            "",
            "K",
            ".5K",
            "1.K",
            "1.5",
            "-1K",
            "+1",
            "1 K",
            "1Q",
            "1KK",
            "1e3",
            "1_0",
            "16384P",
            "1,5G",
            "99999999999999999999",
            "0x10",
            "1ib",
            "1.00000000000000000K",
        ];
        for text in bad {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
