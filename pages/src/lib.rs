//! Pages and plots for the report, the dashboard and a party's page: HTML that is escaped by construction, and SVG.
//!
//! The functions are pure: they use no file, socket, clock or task. The caller supplies the content, and serves or saves the
//! page.
//!
//! - [`page::document`] builds a whole page, with an embedded stylesheet (a self-contained file) or a linked one.
//! - [`site::render`] builds a page of a daemon's server: navigation, forms, and parts that a small script updates.
//! - [`plot`] draws: [`plot::trace`], [`plot::density`], [`plot::pairs`], [`plot::intervals`], [`plot::budget`], [`plot::spark`],
//!   [`plot::stack`], [`plot::noisy_intervals`], [`plot::stages`], [`plot::forest`]. Each returns markup with title, description and
//!   numbers. Labels are divided into lines, and none is cut.
//! - [`plot::Trace`] and [`plot::Sample`] take draws one at a time in bounded memory, for live pages.
//! - [`document`] has a document's blocks and renders them as text, Markdown and HTML; [`table`] does so for tables.
//! - [`shares`] draws the parts of a whole, such as a budget, as one bar.
//! - [`run`] has the figures of a run's result for all surfaces; [`ends`] has the ends of its intervals.
//! - [`precision`] rounds figures to the digits that their error supports.
//! - [`verdict`] has the verdict on an answer, and [`checks`] the names of its checks.
//! - [`waiting`] has the words for a job that waits for its owners' consent.
//! - [`released`] shows the share of noise in a run that infers from few releases, or the reasons why it has no answer.
//! - [`short_id`] shortens ids of jobs and finds a job by its first characters; [`moment`] formats times.
//! - [`text`] formats numbers and sanitises names from outside; [`forecast`] predicts the end and the cost of a run, and [`target`] counts
//!   the effective draws that will end it.
//!
//! All parts are markup of [`maud`], whose `html!` builds the rest of a page.
//!
//! No page needs `unsafe-inline`: there is no `style` attribute, no event handler, and no script except one file. Plots are
//! styled by classes of the stylesheet and by SVG attributes.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod aggregation;
pub mod barker;
pub mod checks;
pub mod document;
pub mod ends;
pub mod forecast;
pub mod gradients;
mod identity;
pub mod moment;
pub mod object;
pub mod page;
pub mod plot;
pub mod precision;
pub mod released;
pub mod run;
pub mod shares;
pub mod short_id;
pub mod site;
mod stochastic_gradients;
pub mod study;
pub mod table;
pub mod target;
pub mod text;
pub mod verdict;
pub mod waiting;
