//! The code that error types share.

use core::fmt::{self, Display, Formatter, LowerExp};

/// Implements `Error` for an error type, and `From` for the errors that it wraps. List each variant
/// that wraps another error, with the type of that error if `From` should be implemented.
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
///
/// With the text of every other variant, the macro also implements `Display`. Variants that wrap
/// another error print its text.
///
/// ```
/// # use blocked_bloom::AllocError;
/// #[derive(Debug)]
/// enum MapError {
///     Alloc(AllocError),
///     TooManyRows(u64),
/// }
///
/// blocked_bloom::impl_error!(MapError, Alloc(AllocError);
///     Self::TooManyRows(rows) => ("{rows} rows: at most 4096"),
/// );
/// assert_eq!(MapError::TooManyRows(5000).to_string(), "5000 rows: at most 4096");
/// ```
#[macro_export]
macro_rules! impl_error {
    ($name:ty $(, $variant:ident $(($source:ty))?)*; $($pattern:pat => ($($text:tt)+),)+) => {
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    $(Self::$variant(error) => ::core::fmt::Display::fmt(error, f),)*
                    $($pattern => ::core::write!(f, $($text)+),)+
                }
            }
        }
        $crate::impl_error!($name $(, $variant $(($source))?)*);
    };
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

/// Returns the error unless the condition is true.
pub(crate) fn ensure<E>(condition: bool, error: E) -> Result<(), E> {
    if condition { Ok(()) } else { Err(error) }
}

/// Prints a number with an exponent if it would otherwise take more than about 20 characters.
pub(crate) struct ShortNumber(pub(crate) f64);

impl Display for ShortNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0 | 1e-4..1e16 => Display::fmt(&self.0, f),
            _ => LowerExp::fmt(&self.0, f),
        }
    }
}
