//! The families of priors, each declared once: its name in job files, its arguments, and their ranges.

use std::fmt;

pub(super) const DIRICHLET: &str = "dirichlet";

/// An argument of a family, by its name.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    Any(&'static str),
    Positive(&'static str),
}

macro_rules! families {
    ($($(#[$about:meta])* $variant:ident $name:literal ($($argument:ident: $range:ident),*)),* $(,)?) => {
        /// The prior of one parameter. All arguments are finite; scales, shapes, rates and degrees of freedom are positive.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Prior {
            $($(#[$about])* $variant { $(#[doc = concat!("The argument `", stringify!($argument), "`.")] $argument: f64),* },)*
            /// One component of `dirichlet(a_1, …, a_K)`.
            Dirichlet {
                /// The component's concentration.
                concentration: f64,
                /// The sum of the concentrations of the components after it.
                after: f64,
            },
        }

        /// All families with their arguments; `dirichlet` takes any number of them.
        pub(super) const FAMILIES: &[(&str, &[Argument])] =
            &[$(($name, &[$(Argument::$range(stringify!($argument))),*])),*, (DIRICHLET, &[])];

        /// Returns the prior of a family with these arguments; `None` if their number is another one.
        pub(super) fn build(family: &str, arguments: &[f64]) -> Option<Prior> {
            Some(match (family, arguments) {
                $(($name, &[$($argument),*]) => Prior::$variant { $($argument),* },)*
                _ => return None,
            })
        }

        impl fmt::Display for Prior {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (name, arguments) = match self {
                    $(Prior::$variant { $($argument),* } => ($name, vec![$(*$argument),*]),)*
                    Prior::Dirichlet { concentration, .. } => (DIRICHLET, vec![*concentration]),
                };
                let arguments: Vec<String> = arguments.iter().map(f64::to_string).collect();
                write!(f, "{name}({})", arguments.join(", "))
            }
        }
    };
}

families! {
    /// `normal(mean, sd)`.
    Normal "normal" (mean: Any, sd: Positive),
    /// `student_t(df, location, scale)`, with `df` degrees of freedom.
    StudentT "student_t" (df: Positive, location: Any, scale: Positive),
    /// `cauchy(location, scale)`: `student_t` with one degree of freedom.
    Cauchy "cauchy" (location: Any, scale: Positive),
    /// `half_normal(sd)`: the upper half of `normal(0, sd)`.
    HalfNormal "half_normal" (sd: Positive),
    /// `half_student_t(df, scale)`: the upper half of `student_t(df, 0, scale)`.
    HalfStudentT "half_student_t" (df: Positive, scale: Positive),
    /// `half_cauchy(scale)`: the upper half of `cauchy(0, scale)`.
    HalfCauchy "half_cauchy" (scale: Positive),
    /// `uniform(min, max)`, with `min` below `max`.
    Uniform "uniform" (min: Any, max: Any),
    /// `gamma(shape, rate)`: mean shape / rate.
    Gamma "gamma" (shape: Positive, rate: Positive),
    /// `inverse_gamma(shape, scale)`: the reciprocal of a `gamma(shape, scale)`.
    InverseGamma "inverse_gamma" (shape: Positive, scale: Positive),
    /// `beta(a, b)`: mean a / (a + b).
    Beta "beta" (a: Positive, b: Positive),
    /// `exponential(rate)`: mean 1 / rate.
    Exponential "exponential" (rate: Positive),
    /// `lognormal(location, scale)`: the exponential of a `normal(location, scale)`.
    LogNormal "lognormal" (location: Any, scale: Positive),
}
