//! Draws implied by a log, in the layout of a store of draws.

use conclave_common::query::Draw;

/// One array of a range of draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// A parameter.
    Theta(usize),
    Accepted,
    LogAlpha,
    Iteration,
    /// The coordinate of chains, with one row.
    Chain,
    /// The coordinate of draws, with one row.
    Draw,
}

impl Column {
    /// Returns true if the array has a row for each chain.
    pub(super) fn by_chain(self) -> bool {
        !matches!(self, Self::Chain | Self::Draw)
    }

    /// Returns the array's `data_type`.
    pub(super) fn data_type(self) -> &'static str {
        match self {
            Self::Theta(_) | Self::LogAlpha => "float64",
            Self::Accepted => "bool",
            Self::Iteration | Self::Chain | Self::Draw => "int64",
        }
    }

    /// Returns the size of an element in bytes.
    pub(super) fn size(self) -> usize {
        if self == Self::Accepted { 1 } else { 8 }
    }
}

/// One range of a run: warm-up or sampling.
#[derive(Debug, Default)]
pub(super) struct DrawRange {
    /// `[parameter][chain][draw]`, on the scale of the priors.
    pub(super) theta: Vec<Vec<Vec<f64>>>,
    accepted: Vec<Vec<bool>>,
    log_alpha: Vec<Vec<f64>>,
    iteration: Vec<Vec<i64>>,
}

impl DrawRange {
    fn new(parameters: usize, chains: usize) -> Self {
        Self {
            theta: vec![vec![Vec::new(); chains]; parameters],
            accepted: vec![Vec::new(); chains],
            log_alpha: vec![Vec::new(); chains],
            iteration: vec![Vec::new(); chains],
        }
    }

    fn push(&mut self, draw: Draw) {
        let chain = draw.chain as usize;
        for (parameter, value) in self.theta.iter_mut().zip(draw.theta) {
            parameter[chain].push(value);
        }
        self.accepted[chain].push(draw.accepted);
        self.log_alpha[chain].push(draw.log_alpha);
        self.iteration[chain].push(draw.iteration as i64);
    }

    /// Returns the number of draws per chain.
    pub(super) fn draws(&self) -> usize {
        self.accepted.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Returns the number of chains.
    pub(super) fn chains(&self) -> usize {
        self.accepted.len()
    }

    /// Returns the share of accepted proposals; 0 before the first.
    pub(super) fn acceptance_rate(&self) -> f64 {
        let all = self.accepted.iter().map(Vec::len).sum::<usize>();
        let accepted = self.accepted.iter().flatten().filter(|a| **a).count();
        if all == 0 { 0.0 } else { accepted as f64 / all as f64 }
    }

    /// Returns elements `from` to `to` of a row as stored: little endian.
    pub(super) fn bytes(&self, column: Column, row: usize, (from, to): (usize, usize)) -> Vec<u8> {
        let floats = |values: &[f64]| values[from..to].iter().flat_map(|x| x.to_le_bytes()).collect();
        match column {
            Column::Theta(parameter) => floats(&self.theta[parameter][row]),
            Column::LogAlpha => floats(&self.log_alpha[row]),
            Column::Accepted => self.accepted[row][from..to].iter().map(|a| u8::from(*a)).collect(),
            Column::Iteration => self.iteration[row][from..to].iter().flat_map(|i| i.to_le_bytes()).collect(),
            Column::Chain | Column::Draw => (from as i64..to as i64).flat_map(i64::to_le_bytes).collect(),
        }
    }
}

/// All draws of a run.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    pub(super) warmup: DrawRange,
    pub(super) sampling: DrawRange,
}

impl Drawn {
    pub(super) fn new(parameters: usize, chains: usize) -> Self {
        Self { warmup: DrawRange::new(parameters, chains), sampling: DrawRange::new(parameters, chains) }
    }

    pub(super) fn push(&mut self, draws: Vec<Draw>) {
        for draw in draws {
            if draw.warmup { self.warmup.push(draw) } else { self.sampling.push(draw) }
        }
    }
}
