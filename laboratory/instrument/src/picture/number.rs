//! Numbers as people read them: thousands apart, no exponents in the usual range.

/// Stands for a number that is infinite or none.
pub const NO_VALUE: &str = "no value";

/// For tables and lone labels: about four significant digits, whole numbers in full.
///
/// Numbers from 10⁻⁴ to 10¹⁵ are written out; smaller and larger ones as a power of ten.
#[must_use]
pub fn plain(value: f64) -> String {
    if !value.is_finite() {
        return NO_VALUE.into();
    }
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e15).contains(&size) {
        return power(value);
    }
    if value.fract() == 0.0 {
        return fixed(value, 0);
    }
    // At most four decimals below one: `size` is at least 1e-4, so the cast is of -4..=14.
    let magnitude = size.log10().floor() as i32;
    trim(&fixed(value, usize::try_from(3 - magnitude).unwrap_or(0)))
}

/// With `decimals` digits after the point and commas between thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let zero = !text.contains(|c: char| ('1'..='9').contains(&c));
    let sign = if value < 0.0 && !zero { "−" } else { "" };
    format!("{sign}{grouped}{rest}")
}

/// `2·10⁻⁶`.
pub(crate) fn power(value: f64) -> String {
    let exponent = value.abs().log10().floor() as i32;
    let mantissa = value / 10f64.powi(exponent);
    let raised: String = exponent
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            other => char::from_u32(0x2070 + other.to_digit(10).unwrap_or(0)).unwrap_or('⁰'),
        })
        .collect();
    let mantissa = trim(&fixed(mantissa, 2));
    if mantissa == "1" { format!("10{raised}") } else { format!("{mantissa}·10{raised}") }
}

/// Without zeros at the end of the decimals.
pub(crate) fn trim(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text.to_string()
    }
}

/// For an axis of powers of two: `512`, `64 Ki`, `1 Mi`.
pub(crate) fn binary(value: f64) -> String {
    let units = [(1024f64.powi(4), "Ti"), (1024f64.powi(3), "Gi"), (1024f64.powi(2), "Mi")];
    for (unit, name) in units.into_iter().chain([(1024.0, "Ki")]) {
        if value >= unit && (value / unit).fract() == 0.0 {
            return format!("{} {name}", fixed(value / unit, 0));
        }
    }
    plain(value)
}

/// For an axis of powers of ten: `0.01`, `5,000`, `2 M`.
pub(crate) fn short(value: f64) -> String {
    for (unit, name) in [(1e12, "T"), (1e9, "G"), (1e6, "M")] {
        if (unit..unit * 1e3).contains(&value.abs()) {
            return format!("{} {name}", plain(value / unit));
        }
    }
    plain(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_well() {
        let cases = [
            (0.0, "0"),
            (1234.0, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-0.5, "−0.5"),
            (12.345_6, "12.35"),
            (0.000_123_4, "0.0001234"),
            (2e-6, "2·10⁻⁶"),
            (1e20, "10²⁰"),
            (999.96, "1,000"),
            (f64::NAN, "no value"),
            (f64::INFINITY, "no value"),
        ];
        for (value, text) in cases {
            assert_eq!(plain(value), text, "{value}");
        }
        assert_eq!(binary(65536.0), "64 Ki");
        assert_eq!(binary(1_048_576.0), "1 Mi");
        assert_eq!(binary(0.5), "0.5");
        assert_eq!(short(4e9), "4 G");
        assert_eq!(short(20_000.0), "20,000");
        assert_eq!(fixed(-0.001, 1), "0.0");
    }
}
