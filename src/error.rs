//! The parts that all errors share.

/// Implements `Error` for an error type that other packages of this project define: the named
/// variants are its sources, and those with a type also get `From`.
///
/// ```
/// use std::fmt;
/// use blocked_bloom::AllocError;
///
/// #[derive(Debug)]
/// enum MapError {
///     Alloc(AllocError),
///     TooManyRows(u64),
/// }
///
/// impl fmt::Display for MapError {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         match self {
///             MapError::Alloc(error) => error.fmt(f),
///             MapError::TooManyRows(rows) => write!(f, "{rows} rows: at most 4096"),
///         }
///     }
/// }
///
/// blocked_bloom::impl_error!(MapError, Alloc(AllocError));
/// ```
#[macro_export]
macro_rules! impl_error {
    ($name:ty $(, $variant:ident $(($source:ty))?)*) => {
        impl ::core::error::Error for $name {
            fn source(&self) -> ::core::option::Option<&(dyn ::core::error::Error + 'static)> {
                match self {
                    $(Self::$variant(error) => ::core::option::Option::Some(error),)*
                    #[allow(unreachable_patterns, reason = "some have a source in every variant")]
                    _ => ::core::option::Option::None,
                }
            }
        }
        $($(impl ::core::convert::From<$source> for $name {
            fn from(error: $source) -> Self {
                Self::$variant(error)
            }
        })?)*
    };
}

/// `s` unless there is one.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
