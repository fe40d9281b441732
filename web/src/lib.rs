//! The module of the page: sizes of filters, and stored filters described and looked up, in JSON.
//!
//! [`exports`] is what JavaScript calls.

pub mod exports;
mod keys;
mod levels;
pub mod sizes;
mod stored;

use std::fmt::Display;

use blocked_bloom_inspect::Value;

/// A JSON object of these facts.
macro_rules! object {
    ($($name:literal: $value:expr),* $(,)?) => {
        blocked_bloom_inspect::Value::Object(vec![
            $(($name, blocked_bloom_inspect::Value::from($value))),*
        ])
    };
}

use object;

/// Fields of a form: names and values, each ended by a NUL byte. (A reader of JSON would be a tenth
/// of the module.)
#[derive(Debug)]
pub struct Input<'i>(&'i [u8]);

impl<'i> Input<'i> {
    /// The fields in these bytes.
    pub fn new(bytes: &'i [u8]) -> Self {
        Input(bytes)
    }

    fn value(&self, name: &str) -> Option<&'i [u8]> {
        let mut fields = self.0.split(|&byte| byte == 0);
        while let (Some(field), Some(value)) = (fields.next(), fields.next()) {
            if field == name.as_bytes() {
                return Some(value);
            }
        }
        None
    }

    /// Whether there is such a field, empty or not.
    fn has_field(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The text of a field; `None` if it is not there, or empty.
    fn text(&self, name: &str) -> Option<&'i str> {
        str::from_utf8(self.value(name)?).ok().map(str::trim).filter(|text| !text.is_empty())
    }

    /// The value of a field, read by such as
    /// [`parse_keys`](blocked_bloom_inspect::numbers::parse_keys); of a field that is not there,
    /// `default`.
    fn parse<T, E: Display>(
        &self,
        name: &str,
        default: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, Fault> {
        parse(self.text(name).unwrap_or(default)).map_err(|error| Fault::new(name, error))
    }
}

/// An error in an input, and its field.
#[derive(Debug)]
pub struct Fault {
    field: String,
    text: String,
}

impl Fault {
    fn new(field: impl Into<String>, text: impl ToString) -> Self {
        Fault { field: field.into(), text: text.to_string() }
    }

    fn json(self) -> Value {
        object! { "error": self.text, "field": self.field }
    }
}

#[cfg(test)]
mod tests {
    use super::Input;

    #[test]
    fn fields_of_a_form() {
        let input = Input::new(b"keys\x00 1M \x00bits\x00\x00load\x007");
        assert_eq!((input.text("keys"), input.text("load")), (Some("1M"), Some("7")));
        assert_eq!((input.text("bits"), input.text("1M"), input.text("")), (None, None, None));
    }
}
