//! What every error has in common.

/// Implements `Error` with the given variants as its sources, and `From` for each source.
macro_rules! error {
    ($name:ty $(, $variant:ident($source:ty))*) => {
        impl core::error::Error for $name {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                match self {
                    $(Self::$variant(error) => Some(error),)*
                    #[allow(unreachable_patterns, reason = "some have a source in every variant")]
                    _ => None,
                }
            }
        }
        $(impl From<$source> for $name {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })*
    };
}

/// `s` unless there is one.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
