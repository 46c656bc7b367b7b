//! Standard output.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line on standard output, as `println!` does; but a reader that hangs up (`| head`) is no panic.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::line(format_args!($($text)*))
    };
}
pub(crate) use say;

/// Prints one line.
pub(crate) fn line(text: Arguments<'_>) {
    // There is nobody left to tell.
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}
