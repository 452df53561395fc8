//! Axes: from values to places along them, and which ticks they get.
//!
//! Owns: ranges and ticks. A place is a fraction, 0 at the axis' beginning and 1 at its end; a
//! value outside of the range has a place outside of 0 to 1.

use super::{Axis, Scale, number};

/// Beyond it, differences of values overflow; drawn are only smaller ones.
const LARGEST: f64 = 1e300;

/// Where a value lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// As a fraction of the axis.
    At(f64),
    /// Nowhere: not finite, or beyond [`LARGEST`].
    NotFinite,
    /// Nowhere: zero or less, on an axis of powers.
    NotPositive,
}

/// An axis with its range and ticks settled.
pub(crate) struct Mapped {
    form: Form,
    /// Places with their labels, in order.
    pub(crate) ticks: Vec<(f64, String)>,
}

enum Form {
    Linear(f64, f64),
    /// Range in decimal logarithms.
    Log(f64, f64),
    Ordinal(Vec<f64>),
}

/// What an axis is drawn for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// The axis to the right: ends near its first and last value.
    Across,
    /// The axis upwards: ends at ticks.
    Up,
    /// The axis upwards for bars, which stand on zero.
    UpBars,
}

impl Mapped {
    /// `axis` for `values`, with about `wanted` ticks.
    pub(crate) fn new(axis: &Axis, values: &[f64], used: Use, wanted: usize) -> Self {
        let drawn = |v: &f64| v.is_finite() && v.abs() < LARGEST;
        let mut sorted: Vec<f64> = values.iter().copied().filter(drawn).map(|v| v + 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let range = axis.range.filter(|(a, b)| drawn(a) && drawn(b) && a < b);
        let (form, found) = match axis.scale {
            Scale::Linear => linear(&sorted, range, used, wanted),
            Scale::Log10 => log10(&sorted, range, wanted),
            Scale::Log2 => log2(&sorted, range, wanted),
            Scale::Ordinal => ordinal(sorted, range, &axis.ticks),
        };
        let mut mapped = Self { form, ticks: Vec::new() };
        let given = axis.scale != Scale::Ordinal && !axis.ticks.is_empty();
        let labelled = if given { axis.ticks.clone() } else { found };
        for (value, label) in labelled {
            if let Place::At(at) = mapped.place(value)
                && (-1e-9..=1.0 + 1e-9).contains(&at)
            {
                mapped.ticks.push((at.clamp(0.0, 1.0), label));
            }
        }
        mapped.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        mapped
    }

    /// Where `value` lies.
    pub(crate) fn place(&self, value: f64) -> Place {
        if !value.is_finite() || value.abs() >= LARGEST {
            return Place::NotFinite;
        }
        match &self.form {
            Form::Linear(lo, hi) => Place::At((value - lo) / (hi - lo)),
            Form::Log(..) if value <= 0.0 => Place::NotPositive,
            Form::Log(lo, hi) => Place::At((value.log10() - lo) / (hi - lo)),
            Form::Ordinal(values) => {
                match values.binary_search_by(|v| v.total_cmp(&(value + 0.0))) {
                    Ok(at) => Place::At((at as f64 + 0.5) / values.len() as f64),
                    Err(_) => Place::At(-1.0),
                }
            }
        }
    }

    /// How the axis differs from one with even steps from zero, for a remark; `None` if it does
    /// not, or if it only names its values.
    pub(crate) fn oddity(&self) -> Option<String> {
        match self.form {
            Form::Linear(lo, hi) if lo > 0.0 || hi < 0.0 => {
                Some(format!("from {}, not from 0", number::plain(lo)))
            }
            Form::Log(..) => Some("logarithmic".to_owned()),
            _ => None,
        }
    }

    /// Whether its steps are even and zero is not on it.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.form, Form::Linear(..)) && self.oddity().is_some()
    }

    /// Where bars stand: at zero, or at the beginning if zero is not on the axis.
    pub(crate) fn base(&self) -> f64 {
        match self.place(0.0) {
            Place::At(at) => at.clamp(0.0, 1.0),
            _ => 0.0,
        }
    }

    /// Share of the axis that one value of an ordinal axis has.
    pub(crate) fn slot(&self) -> f64 {
        match &self.form {
            Form::Ordinal(values) => 1.0 / values.len().max(1) as f64,
            _ => 1.0,
        }
    }
}

type Found = (Form, Vec<(f64, String)>);

fn linear(sorted: &[f64], range: Option<(f64, f64)>, used: Use, wanted: usize) -> Found {
    let (mut lo, mut hi) = match (range, sorted.first(), sorted.last()) {
        (Some(range), ..) => range,
        (None, Some(&lo), Some(&hi)) => (lo, hi),
        _ => (0.0, 1.0),
    };
    if range.is_none() {
        let near_zero = if used == Use::UpBars { 1.0 } else { 0.6 };
        if lo > 0.0 && lo <= hi * near_zero {
            lo = 0.0;
        } else if hi < 0.0 && hi >= lo * near_zero {
            hi = 0.0;
        }
        // Also values so close together that a step between them would be lost in rounding.
        let least = lo.abs().max(hi.abs()) * 1e-9;
        if hi - lo <= least {
            let room = if lo == 0.0 && hi == 0.0 { 1.0 } else { lo.abs().max(hi.abs()) * 0.1 };
            (lo, hi) = if lo == 0.0 { (0.0, hi + room) } else { (lo - room, hi + room) };
        }
    }
    let step = step(hi - lo, wanted);
    if range.is_none() {
        if used == Use::Across {
            let room = (hi - lo) * 0.02;
            lo = if lo == 0.0 { lo } else { lo - room };
            hi = if hi == 0.0 { hi } else { hi + room };
        } else {
            lo = (lo / step + 1e-9).floor() * step;
            hi = (hi / step - 1e-9).ceil() * step;
        }
    }
    (Form::Linear(lo, hi), even_ticks(lo, hi, step))
}

/// The least of 1, 2 and 5 times a power of ten that gives at most `wanted` steps.
fn step(span: f64, wanted: usize) -> f64 {
    let raw = span / wanted.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= raw * 0.999)
        .unwrap_or(power * 10.0)
}

fn even_ticks(lo: f64, hi: f64, step: f64) -> Vec<(f64, String)> {
    let largest = lo.abs().max(hi.abs());
    let units = [(1e15, ""), (1e12, " T"), (1e9, " G"), (1e6, " M")];
    let (unit, name) = units.into_iter().find(|u| largest >= u.0).unwrap_or((1.0, ""));
    let exponents = largest >= 1e15 || step < 1e-4;
    let digits = (-(step / unit * 1.001).log10().floor()).clamp(0.0, 12.0) as usize;
    let first = (lo / step - 1e-9).ceil();
    let count = ((hi / step + 1e-9).floor() - first).clamp(0.0, 1000.0) as usize;
    let tick = |k: usize| {
        let value = (first + k as f64) * step;
        let label = match value {
            0.0 => "0".to_string(),
            _ if exponents => number::power(value),
            _ => number::fixed(value / unit, digits) + name,
        };
        (value, label)
    };
    (0..=count).map(tick).collect()
}

/// The range of positive values, as logarithms to `base`.
fn log_range(sorted: &[f64], range: Option<(f64, f64)>, base: f64) -> (f64, f64) {
    let first = sorted.iter().find(|v| **v > 0.0).copied();
    let last = sorted.last().copied().filter(|v| *v > 0.0);
    let (lo, hi) = match range.filter(|r| r.0 > 0.0) {
        Some(range) => range,
        None => first.zip(last).unwrap_or((1.0, base)),
    };
    let (lo, hi) = (lo.log10() / base.log10(), hi.log10() / base.log10());
    if hi - lo < 1e-9 { (lo - 0.5, hi + 0.5) } else { (lo, hi) }
}

fn log10(sorted: &[f64], range: Option<(f64, f64)>, wanted: usize) -> Found {
    let (mut lo, mut hi) = log_range(sorted, range, 10.0);
    let given = range.is_some_and(|r| r.0 > 0.0);
    if hi - lo < 0.7 {
        // Less than a factor of five: even steps read better, at their places on this scale.
        let (a, b) = (10f64.powf(lo), 10f64.powf(hi));
        let step = step(b - a, wanted);
        let (a, b) =
            if given { (a, b) } else { ((a / step).floor() * step, (b / step).ceil() * step) };
        let a = if a > 0.0 { a } else { 10f64.powf(lo) };
        return (Form::Log(a.log10(), b.log10()), even_ticks(a, b, step));
    }
    let marks: &[f64] = if hi - lo <= 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = (((hi - lo) / wanted.max(1) as f64).ceil() as i32).max(1);
    let (from, to) = (lo.floor() as i32, hi.ceil() as i32);
    let grid: Vec<f64> = (from..=to)
        .flat_map(|power| marks.iter().map(move |m| m.log10() + f64::from(power)))
        .collect();
    if !given {
        lo = grid.iter().copied().rfind(|g| *g <= lo + 1e-9).unwrap_or(lo);
        hi = grid.iter().copied().find(|g| *g >= hi - 1e-9).unwrap_or(hi);
    }
    let seen = grid.iter().filter(|g| (lo - 1e-9..=hi + 1e-9).contains(*g)).count();
    let dense = marks.len() > 1 && seen > wanted + 2;
    let kept = |g: &&f64| {
        let whole = (**g - g.round()).abs() < 1e-9;
        (whole && (g.round() as i32).rem_euclid(stride) == 0) || (!whole && !dense)
    };
    let value = |g: &f64| 10f64.powf(*g);
    let ticks =
        grid.iter().filter(kept).map(|g| (value(g), number::short(tidy(value(g))))).collect();
    (Form::Log(lo, hi), ticks)
}

/// Without the last digits' error of a power.
fn tidy(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 3.0);
    if unit >= 1.0 { (value / unit).round() * unit } else { value }
}

fn log2(sorted: &[f64], range: Option<(f64, f64)>, wanted: usize) -> Found {
    let (mut lo, mut hi) = log_range(sorted, range, 2.0);
    if range.is_none_or(|r| r.0 <= 0.0) {
        (lo, hi) = ((lo + 1e-9).floor(), (hi - 1e-9).ceil());
    }
    let stride = (((hi - lo) / wanted.max(1) as f64).ceil() as i32).max(1);
    let ticks = (lo.ceil() as i32..=hi.floor() as i32)
        .filter(|power| power.rem_euclid(stride) == 0)
        .map(|power| (2f64.powi(power), number::binary(2f64.powi(power))))
        .collect();
    (Form::Log(lo * 2f64.log10(), hi * 2f64.log10()), ticks)
}

fn ordinal(mut values: Vec<f64>, range: Option<(f64, f64)>, named: &[(f64, String)]) -> Found {
    values.dedup();
    if let Some((lo, hi)) = range {
        values.retain(|v| (lo..=hi).contains(v));
    }
    let label = |v: f64| {
        let name = named.iter().find(|(value, _)| *value == v);
        name.map_or_else(|| number::short(v), |(_, name)| name.clone())
    };
    let ticks = values.iter().map(|&v| (v, label(v))).collect();
    (Form::Ordinal(values), ticks)
}

#[cfg(test)]
#[path = "axis_tests.rs"]
mod tests;
