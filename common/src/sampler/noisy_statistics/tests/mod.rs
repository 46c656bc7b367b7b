//! Simulated problems that the released numbers are made of, and what is measured on them.

mod linear_problem;
mod problem;
mod simulations;
