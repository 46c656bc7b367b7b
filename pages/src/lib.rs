//! Pages and plots: HTML that is escaped by construction and SVG drawn from numbers, for the report, the dashboard and a party's page.
//!
//! Pure: no file, socket, clock or task. Whoever serves a page or writes it to a file brings what it shows.
//!
//! - [`page::document`] makes a whole page, with the stylesheet inside (one file that needs nothing else) or at an address of its own.
//! - [`site::served`] makes a page of a daemon's own server: the way back, forms, parts that a small script keeps up to date.
//! - [`plot`] draws: [`plot::trace`], [`plot::density`], [`plot::pairs`], [`plot::intervals`], [`plot::budget`], [`plot::spark`],
//!   [`plot::stack`], [`plot::noisy_intervals`], [`plot::stages`]. Each gives a `<figure>` with a title, a description and its numbers as a table.
//! - [`plot::Trace`] and [`plot::Sample`] take draws one at a time and stay small however many come: what a live page keeps of a chain.
//! - [`released`] shows of a run that infers from what was released once how much of it is the noise's, or why it has no answer.
//! - [`text`] formats numbers and makes names of strangers harmless to look at; [`forecast`] says when a run will
//!   end and at what cost.
//!
//! Whoever builds pages of these parts writes the rest with [`maud`]'s `html!`, whose markup all of them give.
//!
//! Nothing here needs `unsafe-inline`: no `style` attribute, no event handler, no script but that one file. What a plot looks like is said by classes
//! that the one stylesheet knows, and by SVG's own attributes.
#![forbid(unsafe_code)]

pub mod aggregation;
pub mod barker;
pub mod forecast;
pub mod gradients;
mod identity;
pub mod page;
pub mod plot;
pub mod released;
pub mod site;
mod stochastic_gradients;
pub mod table;
pub mod text;
