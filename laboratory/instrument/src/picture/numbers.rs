//! Points in JSON, which has no NaN and no infinity: such a coordinate is written as `null` and
//! read back as NaN.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

type Loose = (Option<f64>, Option<f64>);

pub(crate) fn serialize<S: Serializer>(points: &[(f64, f64)], to: S) -> Result<S::Ok, S::Error> {
    let finite = |v: f64| v.is_finite().then_some(v);
    let loose: Vec<Loose> = points.iter().map(|&(x, y)| (finite(x), finite(y))).collect();
    loose.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(f64, f64)>, D::Error> {
    let loose = Vec::<Loose>::deserialize(from)?;
    Ok(loose.into_iter().map(|(x, y)| (x.unwrap_or(f64::NAN), y.unwrap_or(f64::NAN))).collect())
}
