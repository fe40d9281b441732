//! The statistics of a case.

use std::fmt;

/// Median, minimum and number of the times of one case.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timing {
    /// The median of the times.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub median: f64,
    /// The least of them.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "number_or_nan"))]
    pub min: f64,
    /// How many there are.
    pub samples: usize,
}

/// JSON has no NaN, and `null` in its place.
#[cfg(feature = "serde")]
pub(crate) fn number_or_nan<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number: Option<f64> = serde::Deserialize::deserialize(from)?;
    Ok(number.unwrap_or(f64::NAN))
}

impl Timing {
    /// Computes the statistics of `times`; both figures are NaN if it is empty.
    pub fn from_times(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |place: usize| times.get(place).copied().unwrap_or(f64::NAN);
        Timing { median: at(times.len() / 2), min: at(0), samples: times.len() }
    }
}

/// The median and, in brackets, the least, to the right of the width.
impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (places, width) = (f.precision().unwrap_or(2), f.width().unwrap_or(0));
        let both = format!("{:.places$} ({:.places$})", self.median, self.min);
        write!(f, "{both:>width$}")
    }
}
