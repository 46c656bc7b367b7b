"""The words of the page on Ju, Awan, Gong & Rao (2022)."""

TEXT = """# Data augmentation

This page is for readers of the paper and for analysts who compare algorithms. Ju, Awan, Gong & Rao, *Data Augmentation MCMC for
Bayesian Inference from Privatized Data* (2022): [`algorithm = "augmentation"`](../../reference/algorithms/augmentation.md).

**The paper's claim.** Given one noisy release, a Gibbs sampler imputes the records: each is proposed from the model and accepted by the density of the
noise. Its law is the posterior given the release, for any mechanism that is a sum over records. A record is accepted with probability at least
`e^-epsilon`. Their tables are of the coverage of 90% intervals of the true parameters, 100 records and 100 replicates. Some fall short of .9; the authors suppose that the
prior then says more than the release.

**Ours, at the same true epsilon.** Their experiments, with their Laplace noise, on the sampler that jobs run, 500 replicates a row
(`bench/ju_table.py`). In brackets is their own figure, then the difference in its standard errors.

{coverage}
{verdict}
![Coverage, theirs and ours](ju.svg)

Where the paper errs or can be improved:

- The sensitivity of the linear statistic is 9.4 for two predictors and not 13, so its noise is 39% larger than necessary (reproduced with 13).
- The bound `e^-epsilon` on the acceptance can be sharpened: at stationarity, on average over data and releases drawn from the model, it is at least `2/(1 + e^epsilon)`. All mean
  acceptances above exceed this.
- Where a record is replaced and a cell's count stays, the cell must not be counted twice. A chain that counts it has an acceptance of .145 instead of .213 at epsilon 10
  (`inference/src/sampler/augmentation/tests/ju_log_linear.rs`).

Jobs have discrete Gaussian noise instead of [Laplace noise](#pure-epsilon).

**A better algorithm.** A linear regression of two predictors and known error. {records:,} made-up records of one owner, {seeds} runs a cell, against
the posterior without privacy:

{table}
{legend}
Both infer the posterior given their releases, one of `augmentation` and two of `noisy-statistics`, so both are as wide as the noise makes them. In every row `noisy-statistics` has the smaller error and the smaller sd.
`augmentation` models each record (predictors too) and the effect of
clamping, and its time grows with the number of records. `noisy-statistics` treats sums of many records as normal. So take `noisy-statistics` for such data. At epsilon 1 the chains of
`augmentation` have not converged (R-hat 1.19), so part of its error is Monte Carlo error. `penalty` is refused, since no budget holds its warm-up of 50 draws and one draw more. `augmentation` is for
`naive_bayes`, which has no other algorithm, and where values are clamped: [measured there](../../reference/algorithms/augmentation.md#predictors-near-their-bounds),
[which algorithm](README.md#which-algorithm).

## Their figures

`bench/ju_figures.py` repeats figures 1a, 1b, 2 and S1, on the same sampler with Laplace noise: one data set of 100 records, held fixed, and {releases} releases of it at each epsilon, a chain of
10,000 sweeps on each, of which the second half counts.

{figures}

*mean*: of all chains. *least chain*: the least share of a chain. *least sweep*: the least share of one of its sweeps, which is of 100 records.

![Posterior means and acceptance](ju-figures.svg)

In the log-linear model the means go from the prior's at epsilon .1 to those without privacy at 10, as in figure 1a. In the regression they stay 0.9 to 1.6 sds (over releases) away at epsilon 10: the noise of a
product then has an sd of 1.8, as large as the sum of the squares of a predictor that is scaled to its bounds. Every chain and every sweep accepted more than e^-epsilon, and every chain more than 2/(1 + e^epsilon).

## Proposals that depend on the record

Algorithm 2 lets a record be proposed from any law q, with the ratio of q in the acceptance. A job of `logistic` has two proposals of each record in a sweep: one from the model, as in Algorithm 1, and a local one, which moves the
predictors by a random part of their spread and keeps the outcome. The experiment is that of section 5 with a binary outcome: 100 records, two normal predictors of known law (sd .4, bounds ± 1), coefficients .5, 2 and -1, Laplace noise
on the eight sums. Their L1 sensitivity is 7.0834, found by a search over pairs of records; the noise has the scale 7.1/epsilon. 20 releases of one data set at each epsilon, a chain of 10,000 sweeps on each by the model alone, and one with both proposals
(`bench/ju_figures.py`).

{local}
*mean*, *least chain*, *least sweep*: as above. *local*: the share of local proposals that were accepted. *ESS*: the median over releases of the least bulk effective sample size of a coefficient, from 1,000 sweeps.

Every chain by the model's proposals accepted more than 2/(1 + e^epsilon) of them, and every sweep more than e^-epsilon. Local proposals are accepted less often than the model's at epsilon .1 and .3, since their ratio has the outcome's
probability too. From epsilon 1 on they are accepted more often: .86 against .50 at epsilon 10. The effective draws gain at most a tenth from epsilon 1 on. At .3 the median goes from 11 to 14, which is within the noise of so few draws.
This suggests that theta makes the chain slow: it can move in a sweep only as far as the present records let it.

## Unknown sigma

A `linear` job without a known `sd` releases the sum of the squared outcomes too. Without it sigma enters only through the variances of the other sums, and the release says almost nothing about it. The
release then has one component more, and each has an equal part of the budget: with two predictors and an intercept nine in place of eight, so the noise of every component has 9/8 of the variance.
Sigma mixes slowly where many records hold it tight and the noise does not: among 200 records at epsilon 5, draws that are 20 sweeps apart are still correlated (single trial runs, not in a script, as those that follow). One predictor, 400 records, epsilon 1, four chains of 4,000 sweeps, three
releases: the least ESS of a parameter is 6 with an unknown sigma (R-hat up to 1.8) and 10 with a known one (R-hat up to 1.4), so the verdict rejects both; at epsilon 3 a known one has 525.

## Theorems

- Proposition 3.1: a record is accepted with probability at least e^-epsilon. The tables' mean acceptance is above it and above 2/(1 + e^epsilon). The bound is of a probability, so a single sweep may fall below it; none did.
- Proposition 3.2: a sweep takes a time proportional to the number of records: a sum's change is that of one record.
- Theorem 3.3: the chain converges to the posterior if priors are proper and positive, if the model's records have the same support at every theta, and if the noise has positive density everywhere. All three hold for
  jobs: priors are proper and positive within the parameters' bounds, every value of a record is possible at every theta, and discrete Gaussian noise reaches every integer. Theorem S-3.1 says the same of Algorithm 2 if proposals reach every value, as those from the model do.
- Theorem 3.4: the chain converges geometrically if the release is purely epsilon-private and the likelihood lies between two positive numbers. Neither holds for jobs: their noise is Gaussian, and the likelihood of a
  cell can be near 0. So `warmup` and R-hat decide, not a theorem.

## Pure epsilon

A job has no Laplace noise. A ledger adds up mu². From epsilon alone it would charge a release by the least mu that covers every epsilon-private one, 2 Φ^-1(e^epsilon / (1 + e^epsilon)): the two curves of errors of a test touch where
both are 1/(1 + e^epsilon). For the table of counts above (five features, L1 sensitivity 10, L2 sensitivity 10^(1/2)) the same charge buys normal noise of a twelfth to a thirtieth of the variance:

{pure}
Most of that is the price of knowing epsilon alone. Charged as what it is, ten counts that move by one each under Laplace noise of scale 10/epsilon, the release costs the least mu whose curve lies below that of the ten
privacy losses together (added up on a grid of 400 steps a loss, losses rounded up). Normal noise of the same price has about half the variance up to epsilon 3 and two thirds at 10, so no budget is saved by Laplace noise:

{exact}
The second table holds for tables, whose cells move by one at most: a neighbour that moves fewer of them costs less. A statistic whose components have several widths has another curve, so a ledger would need a proof for each kind
of release. `bench/laplace_price.py` computes both tables. Where a pure epsilon is required by rule, no job of this service gives it, as releases are summed with others in one ledger.
"""
