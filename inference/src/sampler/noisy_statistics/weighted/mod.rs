//! Weighted regressions: scores and information of bounded influence in a frame that is learnt from the first releases.
//!
//! The noise of an unweighted release is scaled to the corners of the declared columns, which hardly a record visits. Here a record
//! is held to a ball around the bulk of the records instead (`conclave_common::model::Influence`), so the noise is several times
//! smaller. The price is the estimand: the posterior is that of a weighted fit. If the model holds, both fits estimate the same
//! coefficients.
//!
//! | file | content |
//! |---|---|
//! | `learnt_frame` | the frame, and the rules by which releases change it |
//! | `bounded_stage` | the likelihood and the fit of a score and an information of bounded influence |
//! | `half_way` | the last stage of a binary outcome |
//! | `binary` | its typical record |
//! | `count_facts` | the public facts of a count's outcome |
//! | `counts` | the start of the search for a count, and its typical record |
//! | `exposures` | the exposures of a count |
//! | `count_law` | the law of a count, and the tables of its expectations that queries state |
//! | `predictor_table` | the released table of a count's linear predictors |
//! | `tails`, `tail_queries` | the tails of a count against those of its model, and the queries about them |
//! | `dispersion`, `dispersion_score` | the queries about the dispersion of a count, and its estimate |
//! | `residual_table` | the released table of standardised residuals |
//! | `setting` | the radius and the clip of the last stage, and the noise that they leave |
//! | `squares` | the residuals' sd, from sums of their squares |
//! | `squares_clip` | the clips of these sums |
//! | `plan` | the public facts of a job, and the shares of the budget |
//! | `queries` | the queries, and the numbers in their answers |
//! | `progress` | the search for the frame and the answer |
//! | `choice` | the choice of the last stage |
//! | `rounds` | the queries of each round, and their shares of the budget |
//! | `taken` | the answers of each round |
//! | `chain_frame` | the frame of chains that follow a search |
//! | `answered` | the answer by a stage |
//! | `strategy` | the strategy |
//!
//! Source: the shape of a bounded score is that of Mallows (1975) and Huber (1964); the order of the stages follows from the noise
//! of each release.

mod answered;
mod binary;
mod bounded_stage;
mod chain_frame;
mod choice;
mod count_facts;
mod count_law;
mod counts;
mod dispersion;
mod dispersion_score;
mod exposures;
mod half_way;
mod learnt_frame;
mod plan;
mod predictor_table;
mod progress;
mod queries;
mod residual_table;
mod rounds;
mod setting;
mod squares;
mod squares_clip;
mod strategy;
mod tail_queries;
mod tails;
mod taken;

pub(crate) use bounded_stage::PlainOutlook;
pub(crate) use chain_frame::ChainFrame;
pub(crate) use plan::outlook;
pub(crate) use strategy::WeightedStrategy;
