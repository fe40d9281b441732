//! Facts for programs, written as JSON.

use std::fmt::{self, Display, Formatter, Write};

/// A fact, or a list or an object of facts. [`Display`] writes it as one line of JSON.
///
/// ```
/// use blocked_bloom_inspect::Value;
/// let rate = f64::NAN.into();
/// let facts = vec![("kind", "Ribbon".into()), ("columns", 7_u32.into()), ("rate", rate)];
/// let value = Value::Object(facts);
/// assert_eq!(value.to_string(), r#"{"kind":"Ribbon","columns":7,"rate":null}"#);
/// assert_eq!(value.get("columns"), Some(&Value::Integer(7)));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// An unknown or missing value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number, a count, an offset.
    Integer(i128),
    /// A rate or a ratio, always finite.
    Number(f64),
    /// A name.
    Text(String),
    /// Parts of a filter.
    List(Vec<Value>),
    /// Facts with their names, in the order of the description.
    Object(Vec<(&'static str, Value)>),
}

impl Value {
    /// Returns the fact with this name. `None` if this is not an object or has no such fact.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(facts) => {
                facts.iter().find(|fact| fact.0 == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => value.fmt(f),
            Value::Integer(value) => value.fmt(f),
            // Digits that read back as the same number, with a point or an exponent: every reader
            // of JSON takes them as a number.
            Value::Number(value) => write!(f, "{value:?}"),
            Value::Text(text) => write_text(text, f),
            Value::List(values) => {
                f.write_char('[')?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { "," } else { "" })?;
                }
                f.write_char(']')
            }
            Value::Object(facts) => {
                f.write_char('{')?;
                for (i, (name, value)) in facts.iter().enumerate() {
                    write!(f, "{}\"{name}\":{value}", if i > 0 { "," } else { "" })?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_text(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

macro_rules! from_integers {
    ($($integer:ty)*) => {
        $(impl From<$integer> for Value {
            fn from(value: $integer) -> Self {
                Value::Integer(i128::from(value))
            }
        })*
    };
}

from_integers!(u8 u16 u32 u64 i32 i64);

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Value::from(value as u64)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

/// [`Value::Null`] for infinities and NaN.
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() { Value::Number(value) } else { Value::Null }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, T::into)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Value::List(values.into_iter().map(T::into).collect())
    }
}

/// Creates an object of these facts.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        $crate::Value::Object(vec![$(($name, $crate::Value::from($value))),*])
    };
}

pub(crate) use object;
