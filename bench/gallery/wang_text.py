"""The words of the page on Wang, Fienberg & Smola (2015)."""

TEXT = """# Privacy for free

This page is for readers of the paper and for analysts who compare algorithms. Wang, Fienberg & Smola, *Privacy for Free: Posterior
Sampling and Stochastic Gradient Monte Carlo* (2015): [`ops`](../../reference/algorithms/ops.md), and
[`sgld`, `sghmc`, `sgnht`, `sgfs`](../../reference/algorithms/stochastic-gradients.md).

**The paper's claim.** One draw of a posterior is private as it is (OPS). Stochastic gradients whose noise is the sampler's own make whole chains private. Figure 1:
on Abalone and Adult one draw classifies better than objective perturbation at the same epsilon. Chains that start from such a draw do reasonably well.

**Where its bound is loose.** Theorem 4 composes its steps by advanced composition. Its noise is 24 to 30 times what the claimed epsilon needs, and its true epsilon is 31 to 40 times smaller. The table has its noise by our
accounting, with samples and passes N^(1/2) as in the paper's experiments, delta 1e-6:

{noise}
Samples are no gain: [at the same noise of the estimate all records cost no more](../subsampling.md#samples-never-save-budget), and samples add a noise of their own.
In the paper a Markov chain makes the draw of OPS. Its distance from the posterior has no known bound, so its epsilon is that of an idealised algorithm; here it is an
exact draw among candidates. [The price of a draw](#the-price-of-a-draw) has both ways to count it.

**Ours, at the same true epsilon.** Logistic regressions, delta 1e-6, one chain of 2,000 draws at most, {seeds} runs a cell. A random fifth of each
owner's records is held out. A record counts as right if the sign of its linear predictor, at the posterior mean (for `ops`, at its one draw), agrees with its outcome. A cell has
the mean accuracy, in brackets the least of the runs. Chains spend .3 of their budget on the search for their start. This share was chosen after trials scored
on the same held-out records.

- *`ops`, by the ledger*: search and draw together are charged as the ledger does, at the cell's epsilon and delta.
- *`ops`, a pure draw*: the same search, by the ledger; its epsilon and the draw's pure epsilon, the range R, are added up to the cell's epsilon, at the same delta. No job
  can have this: a ledger has one sum for all releases. *not run*: this cell was not measured.
- Runs of a cell differ in the noise; candidates, added noise and starts follow the job's one seed.
- *power*: the likelihood was tempered, by the greatest of 1, .3, .1, .03, .01, .003 and .001 at which one rehearsal could pay for its draw. That choice was
  made on the records themselves; a job must make it beforehand.
- *×*: without `--anyway` the program refuses the job, as too few effective draws can be expected.
- *°*: some of the results say of themselves that they are no adequate answer.
- *ESS at 8*: the least bulk effective sample size of a parameter at epsilon 8, median of the runs.
- *objective perturbation*: the paper's baseline, Algorithm 1 of Kifer, Smith & Thakurta (2012) with normal noise at the same epsilon and delta for a replaced record, of one owner
  with all records. It is no part of this service, and releases a fit, no posterior.
- *output perturbation*: the posterior mode under a ridge, with normal noise for its sensitivity 2 d^(1/2) / ridge at the exact mu of epsilon and delta. The ridge, of .16 to
  10,000, is the one that is best on the held-out records, in its favour.

Adult, income over 50,000 by age, education, hours, sex and marriage (5 of the paper's 109 columns), {adult_train} training records of three owners (of `ops` one, with all of them), {adult_test} held out. Without privacy {adult_plain}; the
more frequent class alone {adult_majority}.

{adult}
Abalone, more than 9 rings by all nine columns, {abalone_train} training records of one owner, {abalone_test} held out. Without privacy {abalone_plain}; the more frequent class alone {abalone_majority}.

{abalone}
![Accuracy against epsilon](wang.svg)

**What it shows.** The claim for one draw does not hold here against objective perturbation at the same epsilon and delta. By the ledger, on Adult `ops` is within half
a point from epsilon 1 on and is 3 points behind at .3. On Abalone it is behind by 4 to 8 points wherever the program makes the draw at all, and a draw may be far off
(least accuracy .223 at epsilon 3). On Adult `ops` is within half a point of the best algorithm here from epsilon 1 on. At .3 it is the most accurate, but it has one owner, and
the others, but for those that start at a draw, have three. On Abalone the ledger's draw is refused at .3 and is best at 1. At 3 `sgld`, `sghmc` and `sgfs` are better, and at 8 also `sgnht`.
A pure draw needs less tempering (on Adult powers .003 to .1 instead of .001 to .03). On Adult it classifies two points better at .3 and within .002 at 1 and 3; it was not run at 8. It is behind
objective perturbation by a point at .3, and by .001 at 1 and 3, which these runs do not separate.

One draw is one draw: it does not state its uncertainty, and a tempered one is spread more widely than the posterior.

The paper's claim for chains is of those that start at a draw. Here they take half of the budget in mu² for the draw and .3 for its search (rows *from a draw*). They are behind objective perturbation by 7 points on Adult and 8 on Abalone
at epsilon .3, and on Abalone by 3 to 11 points at every epsilon; on Adult they classify as without privacy from 3 on. A start at a draw is better than the end of a search at .3 on Abalone (.589 to .545 for `sgld`), worse at 3 (.702 to .749), and alike at 8. On Adult
the rows differ in their number of owners, too.

Of plain chains the paper says that they do as well as output perturbation or slightly worse. Here they are clearly worse at epsilon .3, and worse at 1 except `sgfs` on Adult. From 3 on, on Adult, they classify as without privacy. On Abalone
at 8 they lie 4 to 6 points below the fit without privacy. Without `--anyway` the program refuses all jobs at .3 and 1 and those on Abalone at 3, and on Abalone at 8 those from a draw (×). At 8 the chains have at most four effective draws, so most of the accuracy is that of the search. Even where accuracy is that of the non-private fit, the chains have a
handful of effective draws, so they yield neither sds nor intervals. Accuracy, which the paper measures, does not show this. At epsilon 1 `sgfs` has the highest mean of them on both data sets, and `sgnht`
and `hmc` the lowest; on Abalone 12 runs do not separate most of them. From 3 on, on Adult, all are alike.

`noisy-statistics` is as accurate on Adult from epsilon 1 on, and it alone yields a posterior, with the noise in it; at epsilon 1 some of its results say that they are not adequate (°). On Abalone the posterior
mean classifies worse than objective perturbation at every epsilon, and its least accuracy up to epsilon 3 is .491 to .511, where the more frequent class alone gives .509. At every
epsilon some results there say of themselves that they are no adequate answer (°).

**A better algorithm.** For means, sds and intervals: `noisy-statistics` where its result calls itself adequate, else `hmc` with a larger budget ([measured at epsilon 15](dp-hmc.md)); at epsilon 8
on this page it has too few effective draws. For one classifier alone of one owner's records no algorithm here is best on all three data sets. On the two normals `noisy-statistics` is more accurate than `ops` at
every epsilon. On Abalone `ops` is best at epsilon 1, and `sgld` and `sgfs` are better from 3 on. Objective perturbation, which is not here, is as accurate as the best of them to within .003, or more. The stochastic gradients are there
for comparison: [which algorithm](README.md#which-algorithm).

## The price of a draw

Untempered draws, at the range that the program names when it refuses them. *search*: epsilon of .3 of the budget's mu². *draw, ledger*: its epsilon alone at delta 1e-6, by the
`mu` of its range. *sum with a pure draw*: search and R added.

{untempered}
A draw of range R is (R, 0)-private and, by the same mechanism's `mu`, (epsilon, delta)-private in a ledger that adds up mu². The second figure is larger for a single draw, and
is the smaller one where many draws compose: 100 draws of range .18 are (18, 0)-private, and (5.6, 1e-6)-private by
`conclave account --queries 0.11278x100`. No smaller `mu` is right for a range. The choice between two answers with
odds of e^(R/2) to 1 has the range R, and its trade-off curve passes through the corner from which the `mu` is computed (`privacy/src/accounting/bounded_range.rs`). So the charge stays.

Proposition 3 allows a draw from a chain whose L1 distance from the posterior is at most d, for a further delta of (1 + e^epsilon) d. A delta of 1e-6 at epsilon 1 needs
d below 2.7e-7, at epsilon 8 below 3.4e-10. No diagnostic of a chain shows such a distance, so the service makes no draws by chains.

Algorithm 3, the hybrid, starts a chain from a draw: [`start = "ops"`](../../reference/algorithms/stochastic-gradients.md#start-at-a-posterior-sample). A draw needs a search for its
candidates first, and untempered it costs more than that search by the ledger in every row above. By default a chain here starts where its search ended, for the price of the search alone.
The rows *from a draw* are of the hybrid.

## One draw

Proposition 2: squared errors to the true share .3, in units of p(1 - p)/N, of the posterior mean and of one draw by `ops`; {sets} made-up data sets of 2,000 records, {draws} draws
each, at epsilon 40 so that the law is untempered (± a standard error over data sets):

{efficiency}
The paper's asymptotic relative efficiency of 2 says 1 for the mean and 2 for a draw, which adds the posterior's own variance, 1 in these units. The difference agrees; the two levels share the error of 50 data sets.

## Two normals

After figure 1(a), whose sizes the text does not have: {normals} made-up records of two classes, normal with sd 1 about (.525, 0) and (-.525, 0), {two_train} for training by one owner, {two_test} held out.
Without privacy {two_plain}, the more frequent class alone {two_majority}, the best rule .70.

{two}
One draw is behind objective perturbation at every epsilon, by either count, and not ahead of it as in the figure of the paper. `noisy-statistics` is ahead of both draws at every epsilon.

## Samples

Samples of N^(1/2) records and N^(1/2) passes, as in the paper's experiments, at epsilon 8, one run each with `--anyway`:

{small}
"""
