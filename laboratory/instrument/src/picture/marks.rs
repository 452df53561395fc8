//! Shapes of marks: outlines around the origin, for a radius of one.

use std::f64::consts::PI;

use super::palette::Mark;

/// A mark's outline.
pub(crate) enum Outline {
    /// A circle of this radius.
    Circle(f64),
    /// Corners, to be filled.
    Corners(Vec<(f64, f64)>),
}

/// The outline of `mark`, and whether its middle is left open.
pub(crate) fn outline(mark: Mark) -> (Outline, bool) {
    let turned = |corners: usize, radius: f64, from: f64| {
        let angle = move |i: usize| from + 2.0 * PI * i as f64 / corners as f64;
        let corner = |i: usize| (radius * angle(i).cos(), radius * angle(i).sin());
        Outline::Corners((0..corners).map(corner).collect())
    };
    let up = -PI / 2.0;
    match mark {
        Mark::Circle => (Outline::Circle(1.0), false),
        Mark::Ring => (Outline::Circle(1.05), true),
        Mark::Square => (turned(4, 1.28, PI / 4.0), false),
        Mark::Frame => (turned(4, 1.35, PI / 4.0), true),
        Mark::Triangle => (turned(3, 1.35, up), false),
        Mark::OpenTriangle => (turned(3, 1.5, up), true),
        Mark::Down => (turned(3, 1.35, -up), false),
        Mark::Diamond => (turned(4, 1.35, up), false),
        Mark::OpenDiamond => (turned(4, 1.5, up), true),
        Mark::Plus => (Outline::Corners(cross(0.0)), false),
        Mark::Cross => (Outline::Corners(cross(PI / 4.0)), false),
        Mark::Star => (Outline::Corners(star()), false),
    }
}

/// Two bars across each other, turned by `angle`.
fn cross(angle: f64) -> Vec<(f64, f64)> {
    let (long, thin) = (1.3, 0.38);
    let arm = [(thin, thin), (long, thin), (long, -thin)];
    let quarter = |q: usize| {
        let turn = angle - PI / 2.0 * q as f64;
        arm.map(|(x, y)| (x * turn.cos() - y * turn.sin(), x * turn.sin() + y * turn.cos()))
    };
    (0..4).flat_map(quarter).collect()
}

fn star() -> Vec<(f64, f64)> {
    let point = |i: usize| {
        let radius = if i.is_multiple_of(2) { 1.5 } else { 0.62 };
        let angle = -PI / 2.0 + PI * i as f64 / 5.0;
        (radius * angle.cos(), radius * angle.sin())
    };
    (0..10).map(point).collect()
}
