"""The words of the page on Wang, Fienberg & Smola (2015)."""

TEXT = """# Privacy for free

This page is for readers of the paper and for analysts who compare algorithms. Wang, Fienberg & Smola, *Privacy for Free: Posterior
Sampling and Stochastic Gradient Monte Carlo* (2015): [`ops`](../../reference/algorithms/ops.md), and
[`sgld`, `sghmc`, `sgnht`, `sgfs`](../../reference/algorithms/stochastic-gradients.md).

**The paper's claim.** One draw of a posterior is private as it is (OPS). Stochastic gradients whose noise is the sampler's own make whole chains private. Figure 1:
on Abalone and Adult one draw classifies better than objective perturbation at the same epsilon. Chains that start from such a draw do reasonably well.

**Where it errs.** Theorem 4 composes its steps by advanced composition, with noise some 30 times larger than its epsilon needs. The table has its noise by our
accounting, with samples and passes N^(1/2) as in the paper's experiments, delta 1e-6:

{noise}
Samples are no gain: at the same noise of the estimate all records cost no more, and samples add a noise of their own. In the paper a Markov chain makes the draw of
OPS. Its distance from the posterior has no known bound, so its epsilon is that of an idealised algorithm; here it is an exact draw among candidates. Its
price, 4B as a pure epsilon, is about twice its charge.

**Ours, at the same true epsilon.** Logistic regressions, delta 1e-6, one chain of 2,000 draws at most, {seeds} runs a cell. A random fifth of each
owner's records is held out. A record counts as right where the sign of the linear predictor at the posterior mean is (for `ops`, at its one draw). A cell has
the mean accuracy, in brackets the least of the runs. Chains spend .3 of their budget on the search for their start. This share was chosen after trials scored
on the same held-out records (the default, .05, is too little here at epsilon 1 and below).

- *power*: the likelihood was tempered, by the greatest of 1, .3, .1, .03, .01, .003 and .001 at which one rehearsal could pay for its draw. That choice was
  made on the records themselves; a job must make it beforehand.
- *×*: without `--anyway` the program refuses the job, as too few effective draws can be expected.
- *°*: some of the results say of themselves that they are no adequate answer.
- *ESS at 8*: the least bulk effective sample size of a parameter at epsilon 8, median of the runs.
- *objective perturbation*: the paper's baseline, Algorithm 1 of Kifer, Smith & Thakurta (2012) with normal noise at the same epsilon and delta, of one owner
  with all records. It is no part of this service, and releases a fit, no posterior.

Adult, income over 50,000 by age, education, hours, sex and marriage (5 of the paper's 109 columns), {adult_train} training records of three owners (of `ops` one, with all of them), {adult_test} held out. Without privacy {adult_plain}; the
more frequent class alone {adult_majority}.

{adult}
Abalone, more than 9 rings by all nine columns, {abalone_train} training records of one owner, {abalone_test} held out. Without privacy {abalone_plain}; the more frequent class alone {abalone_majority}.

{abalone}
![Accuracy against epsilon](wang.svg)

**What it shows.** The claim for one draw does not hold here against objective perturbation at the same epsilon and delta. On Adult `ops` is within half a point from
epsilon 1 on and is behind at .3. On Abalone it is behind by 5 to 10 points wherever the program makes the draw at all. Now and then a draw is far off. Of
the algorithms here, it classifies as well as any on Adult (at .3 best of all), and on Abalone best at epsilon 1; from 3 on `sgld` and `sgfs` do better there.

That is with a tempered likelihood. Without tempering the program refuses every one of these draws, as its price depends on how far apart the candidates lie: on Adult a range of {adult_ranges}; on Abalone {abalone_ranges}.
One draw is one draw: it does not state its uncertainty, and a tempered one is spread more widely than the posterior.

The claim for chains holds where the budget is large: from epsilon 3 on Adult every one classifies as without privacy. Below that, and on Abalone below 8, the
chain ends near the place where its search left it. The program refuses most of these jobs. Even where accuracy is that of the non-private fit, the chains have a
handful of effective draws, so they yield neither sds nor intervals. Accuracy, which the paper measures, is the least demanding of tasks. The four laws differ
by less than their runs do, but `sgnht` and `hmc` are behind where the budget is small.

`noisy-statistics` is as accurate on Adult from epsilon 1 on, and it alone yields a posterior, with the noise in it. On Abalone, whose nine columns are strongly
correlated, its releases leave the least known direction undetermined. The posterior mean then classifies badly, no better than chance at times. At every
epsilon there are results that say they are no adequate answer.

**A better algorithm.** For means, sds and intervals: `noisy-statistics` where its result calls itself adequate, else `hmc` with a larger budget. For one
classifier alone of one owner's records: `ops` of the algorithms here. Objective perturbation, which is not here, is better. The stochastic gradients are there
for comparison: [which algorithm](README.md#which-algorithm).
"""
