//! Messages for people that may name an option.

use std::fmt::{self, Display, Formatter};

/// An option of a lookup or of opening. Each front end has its own name for it.
///
/// [`Display`] writes the library's name in backquotes.
///
/// ```
/// use blocked_bloom_inspect::LookupOption;
/// assert_eq!(LookupOption::RowGroups.to_string(), "`row_groups`");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupOption {
    /// [`LookupOptions::prefix`](crate::LookupOptions::prefix).
    Prefix,
    /// [`LookupOptions::column`](crate::LookupOptions::column).
    Column,
    /// [`LookupOptions::row_groups`](crate::LookupOptions::row_groups).
    RowGroups,
    /// [`LookupOptions::value_type`](crate::LookupOptions::value_type).
    ValueType,
    /// [`LookupOptions::encoded`](crate::LookupOptions::encoded).
    Encoded,
    /// The layout that [`Opened::new`](crate::Opened::new) takes.
    Layout,
}

impl Display for LookupOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LookupOption::Prefix => "`prefix`",
            LookupOption::Column => "`column`",
            LookupOption::RowGroups => "`row_groups`",
            LookupOption::ValueType => "`value_type`",
            LookupOption::Encoded => "`encoded`",
            LookupOption::Layout => "`layout`",
        })
    }
}

/// A sentence about a filter or a key that may name an option.
///
/// [`Display`] uses the library's name for the option, [`with_names`](Self::with_names) the front
/// end's.
///
/// ```
/// use blocked_bloom_inspect::{Format, LookupOptions};
/// let mut options = LookupOptions::default();
/// options.column = Some("id".to_owned());
/// let message = Format::NATIVE.check(&options).unwrap_err();
/// assert!(message.to_string().starts_with("`column` is for "));
/// assert!(message.with_names(|_| "--column").starts_with("--column is for "));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    prefix: String,
    option: Option<LookupOption>,
    suffix: String,
}

impl Message {
    /// Creates a message that names no option.
    pub(crate) fn new(text: impl Display) -> Self {
        Message { prefix: text.to_string(), option: None, suffix: String::new() }
    }

    /// Creates a message with the name of an option between `prefix` and `suffix`.
    pub(crate) fn naming(prefix: impl Display, option: LookupOption, suffix: impl Display) -> Self {
        let (prefix, suffix) = (prefix.to_string(), suffix.to_string());
        Message { prefix, option: Some(option), suffix }
    }

    /// Returns the option that the message names.
    pub fn option(&self) -> Option<LookupOption> {
        self.option
    }

    /// Returns the text with the front end's name for the option.
    pub fn with_names<N: Display>(&self, name: impl FnOnce(LookupOption) -> N) -> String {
        let name = self.option.map_or(String::new(), |option| name(option).to_string());
        format!("{}{name}{}", self.prefix, self.suffix)
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(|option| option))
    }
}

impl std::error::Error for Message {}
