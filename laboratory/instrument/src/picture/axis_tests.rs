//! Ranges and ticks of axes.

use super::*;

fn axis(scale: Scale) -> Axis {
    Axis { label: "x".into(), scale, range: None, ticks: Vec::new() }
}

fn labels(scale: Scale, values: &[f64], used: Use) -> Vec<String> {
    Mapped::new(&axis(scale), values, used, 6).ticks.into_iter().map(|t| t.1).collect()
}

#[test]
fn linear_ticks_are_round() {
    assert_eq!(
        labels(Scale::Linear, &[0.0, 10_000.0], Use::Up),
        ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]
    );
    assert_eq!(
        labels(Scale::Linear, &[96.1, 98.9], Use::Up),
        ["96.0", "96.5", "97.0", "97.5", "98.0", "98.5", "99.0"]
    );
    assert_eq!(labels(Scale::Linear, &[0.0, 3e6], Use::Up)[1], "0.5 M");
    assert_eq!(labels(Scale::Linear, &[5.0], Use::UpBars)[0], "0");
}

#[test]
fn powers_are_ticked_as_such() {
    assert_eq!(labels(Scale::Log10, &[1.0, 1e4], Use::Up), ["1", "10", "100", "1,000", "10,000"]);
    assert_eq!(labels(Scale::Log10, &[3.0, 40.0], Use::Up), ["2", "5", "10", "20", "50"]);
    assert_eq!(
        labels(Scale::Log10, &[1e-3, 1e9], Use::Up),
        ["0.01", "1", "100", "10,000", "1 M", "100 M"]
    );
    assert_eq!(
        labels(Scale::Log2, &[512.0, 8192.0], Use::Across),
        ["512", "1 Ki", "2 Ki", "4 Ki", "8 Ki"]
    );
}

#[test]
fn ordinal_values_have_even_slots() {
    let mut named = axis(Scale::Ordinal);
    named.ticks.push((4.0, "four".into()));
    let mapped = Mapped::new(&named, &[64.0, 1.0, 4.0, 4.0, 16.0], Use::Across, 6);
    let want = [(0.125, "1"), (0.375, "four"), (0.625, "16"), (0.875, "64")];
    assert_eq!(mapped.ticks, want.map(|(at, label)| (at, label.to_string())));
    assert_eq!(mapped.place(16.0), Place::At(0.625));
    assert_eq!(mapped.place(5.0), Place::At(-1.0));
}

#[test]
fn odd_values_have_no_place() {
    let mapped = Mapped::new(&axis(Scale::Log10), &[-1.0, 0.0, 10.0, 1000.0], Use::Up, 6);
    assert_eq!(mapped.place(0.0), Place::NotPositive);
    assert_eq!(mapped.place(f64::NAN), Place::NotFinite);
    assert_eq!(mapped.place(1e308), Place::NotFinite);
    assert_eq!(mapped.place(10.0), Place::At(0.0));
    assert_eq!(mapped.place(1000.0), Place::At(1.0));
}

#[test]
fn every_range_ends_with_finite_places() {
    let odd = [0.0, -0.0, 1e-320, 1e-12, 1.0, 1.0 + 1e-15, -7.0, 1e15, 1e299, -1e299, f64::NAN];
    for scale in [Scale::Linear, Scale::Log10, Scale::Log2, Scale::Ordinal] {
        for used in [Use::Across, Use::Up, Use::UpBars] {
            for a in odd {
                for b in odd {
                    let mapped = Mapped::new(&axis(scale), &[a, b], used, 6);
                    assert!(mapped.ticks.len() < 40, "{scale:?} {a} {b}: {}", mapped.ticks.len());
                    for value in [a, b] {
                        if let Place::At(at) = mapped.place(value) {
                            assert!(
                                (-1e-6..=1.0 + 1e-6).contains(&at),
                                "{scale:?} {used:?} {a} {b}: {at}"
                            );
                        }
                    }
                }
            }
        }
    }
}
