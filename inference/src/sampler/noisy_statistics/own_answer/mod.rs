//! One owner's own answer: the posterior given its records without noise and the other owners' releases.
//!
//! Given the public points of the queries, the parties' releases are independent given theta. So the posterior is the product of the
//! prior, the likelihood `L_i` of the owner's records, and the likelihood of the other owners' releases. The latter is that of a score
//! stage (`stage`) of the other owners alone: `g̃ - H̃ delta ~ N(0, W(delta))`. With their factor
//! `A = H̃ W^-1 H̃`, `h = A theta* + H̃ W^-1 g̃` and the owner's gradient `g_i` and information `H_i` at a point `m`, the Gaussian fit
//! has the precision `P = Lambda + H_i(m) + A` and the mean `P^-1 (Lambda mu + H_i(m) m + g_i(m) + h)`, and `m` is iterated to that
//! mean. The factors stay apart: in the stage's sum, the owner's exact part would be weighted down by the others' noise, since
//! `(a + b)² / (a + b + s) <= a + b² / (b + s)`.
//!
//! If each answer is opened, the others' releases are the total less the owner's release. If only the sum is opened, no one
//! stores the owner's part of it. Then the owner's exact sum is subtracted, computed from its records as for the query, and the
//! rest has the noise of all parties.
//!
//! The result is a function of the owner's records without protection.
//!
//! | file | content |
//! |---|---|
//! | `answered` | the answered queries behind an answer |
//! | `beside` | the fit of the owner's factor beside the others' |
//! | `draws` | draws from the product, and their summaries |
//! | `error` | the reasons for which there is no own answer |
//! | `exact_sum` | the owner's exact sum of a query |
//! | `factor` | the owner's likelihood, and its quadratic at a point |
//! | `others` | the score stage of the other owners alone |
//! | `releases` | the log of a job, round by round, and the answer from it |

mod answered;
mod beside;
mod draws;
mod error;
mod exact_sum;
mod factor;
mod others;
mod releases;

pub(super) use answered::AnsweredQueries;
pub use draws::Estimate;
pub use error::OwnAnswerError;
pub use releases::{OwnAnswer, OwnRecords, OwnReleases, OwnRow};

#[cfg(test)]
#[path = "../tests/own_answer.rs"]
mod tests;
