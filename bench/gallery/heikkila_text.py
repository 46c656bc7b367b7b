"""The words of the page on Heikkilä et al. (2019)."""

TEXT = """# Barker's test

This page is for readers of the paper and for analysts who compare algorithms. Heikkilä, Jälkö, Dikmen & Honkela, *Differentially
Private Markov Chain Monte Carlo* (2019): [`barker`](../../reference/algorithms/barker.md).

**The paper's claim.** Barker's test decides by a log ratio with logistic noise; most of that noise can be the normal noise of privacy. The setting has samples
of 1,000 of 1e6 records, and a likelihood tempered to the weight of N0 = 100. There 5,000 steps cost epsilon .499 at delta
1e-6 by Theorem 2 and Corollary 2 (the paper prints the price as a curve alone, and no variance of its random walk; .01 is our choice). Their draws look like those without privacy (figures 2 and 3, twenty runs).

**The true price of their setting.** Each record's part of the ratio is bounded by 1000^(-1/2). The noise has a variance of at least 1 (C = 2, less a
variance of the sample of at most 1).

{prices}
The rows by privacy losses are of Poisson samples of rate .001; the paper draws 1,000 records exactly. The first figure is Corollary 2 at the paper's settings, the second its theorem without the slack in its terms. The third is `epsilon_composed` of
`conclave account --subsampled --probability .001 --noise-multiplier 31.62 --releases 5000 --delta 1e-6`. (A ledger, which has to charge ahead, counts
slightly more.) The fourth adds `--adjacency add-remove`, and the fifth is that of `conclave account --queries`.

The claim is some 35 times too large. These rows have noise of variance 1 whatever the sample. Theirs is C less a variance of the sample, which one record moves by at most 5/b: to first
order that adds a third of a percent to mu². The last line shows that the samples buy nothing: for the same noise of the ratio all records have the same low cost. The
tempering makes it cheap: with the weight of 100 records a record moves the ratio by next to nothing.

**Ours, at the same true epsilon or less.** Their mixture: 1e6 made-up records, ten owners, the likelihood to the power 1e-4 (N0 = 100), delta 1e-6, C = 2. Every owner adds a tenth of the noise's
variance, so each pays ten times the μ² of one owner of all records. The posterior without privacy, by a grid: means ({means}), variances ({variances}).

{table}
*epsilon spent*: by any owner, in any run. *error*: root mean square over runs of the posterior mean less the exact one, in units of theta. *variance ratio*:
the mean of the runs' variances over the exact one. *ESS*: the lesser bulk effective sample size of the two parameters, all chains, median of the runs; it is
not computed for the chain without privacy.

![Price, and errors against steps](heikkila.svg)

Right, after their figure 3: the error of the mean of the first steps, with and without privacy. It is the root mean square over twenty runs of that mean less
the exact mean, `theta_1` and `theta_2` together in units of their sds. ([Theirs](#figure-3) has the mean error against a chain without privacy. All chains here start
near the mean, so the figure shows how slowly they move.)

![Draws without privacy and with it](heikkila-draws.svg)

After their figure 2: every fiftieth draw of the twenty runs without privacy, of the twenty with it, and about the same number of the guided chains of
`penalty`.

**What it shows.** The claim that privacy does not show in the draws holds: acceptance is .45 and .44, and variances are .88 and .83 of the exact ones, with and without
privacy (first two rows). Barker's test has logistic noise in any case. Here its normal part is the noise of privacy, so privacy adds nothing. The private runs differ in their noise alone and share one sequence of proposals, so they move alike: their errors of means are not those of
twenty independent runs, and [figure 3](#figure-3) has runs with proposals of their own. The private chain has 4.7 effective draws after 5,000 steps of .1. The ESS of the chain without
privacy was not computed; its variances are too small as well. The posterior is a long, flat and narrow ridge, since (theta_1, theta_2) and (theta_1 + theta_2, -theta_2) are one
mixture. A chain needs many steps from one end of it to the other: a single run of either estimates neither mean nor variance well. Four chains by guided steps of .24 and .48 have together {ratio} times the
effective draws of the one chain, at {price} times the epsilon. The radii were chosen after trials of three.

Samples buy no privacy. A job here pays for them ahead, in blocks whose releases all have one bound and no public centre. With samples of 1,000 none of the
budgets above holds a block. (The noise of such a small sum lies near the lattice of the released integers, where each draw has a least price, and the
program says so before it asks anything.) With a tenth of all records, one chain of 2,000 steps pays more than four chains that read all of them. It has
the greatest error, which does not measure the effect of samples: it is one chain, of 2,000 steps by measured radii (.44 sds given the other parameter).

**A better algorithm.** `penalty`, on the same queries to the owners at the same price. Its law is the posterior itself, where that of `barker` at C = 2 has a
variance [.6% too large for short steps](../../reference/algorithms/barker.md#what-is-exact-and-what-is-not). Per round `barker` has slightly more effective draws (.031 to .028 in the table, from three runs each): take it where rounds are expensive, to reproduce the paper, or over
samples where reading all records at every step takes too long. All but
the samples are within epsilon .18 for each of ten owners, under the .499 that Corollary 2 gives for one: [which algorithm](README.md#which-algorithm).

## Their bounds

`conclave account --paper heikkila` evaluates them. Corollary 1, for 5,000 tests on all records at C = 2, delta 1e-6, where no log ratio is above B:

{corollary_1}
It is the conversion of zero-concentrated privacy of the same normal releases, so it exceeds their exact price, by 6% to 56% here. Corollary 2, after
figures 1a (5,000 tests) and 1b (sampling rate .001), by the number of records N; –: the theorem needs a sample of more than 10 records.

{figure_1a}
{figure_1b}
![Figure 1](heikkila-figure-1.svg)

Figure 1c: the share of records' log ratios beyond the bound 1000^(1/2)/100, in random walks from draws of the tempered posterior without privacy.

{figure_1c}
At a variance of .01, that of our runs, a hundredth of the ratios is clipped.

## Figure 3

Errors of means and variances of the first steps, {figure_3_runs} private runs, mean of the absolute errors ± its standard error. *their baseline*: one chain
without privacy of 5,000 steps. *exact*: the tempered posterior on a grid. The runs have one owner of 100,000 records, a tenth of theirs, at the power 1e-3: the
likelihood has the weight of the same 100 records, and the price is that of fewer records.

{figure_3}
![Figure 3](heikkila-figure-3.svg)

The errors from the exact means fall with the steps, to .15 and .29 after 5,000. Those from their baseline fall less, to .30 and .55, and those of the second variance rise from .14 to .21: the baseline, one
chain of the same length, is further from the exact means than the private runs are on average. So such a figure shows the Monte Carlo error of the baseline added to that of the private runs.

The baseline itself lies {baseline_means} from the exact means and {baseline_variances} from the exact variances of theta_1 and theta_2.

## The start

{starts}
Their start takes most of their true budget: by our accounting the tests cost far less than the start. A search here takes a share of the job's own budget and
costs nothing on top of it.

## Their bounds on the error

Theorem 3 bounds the error of the normal approximation to the ratio of a sample. With proposals of variance .01 from draws of the posterior and samples of
1,000, the bound as printed is {berry_printed} on average. With the ratio in units of its sd it is {berry_standard}. Both are no use for a probability of acceptance. Theorem 4 adds the
error of the correction (next table). Theorem 5 turns the sum into a distance of the posteriors, divided by 1 less a factor of contraction that is not known for
this chain.

## The correction

Seita et al. find the correction by ridge regression (interval ± 10, ridge 10, 4,000 cells a side; here 200 cells a side with the ridge scaled to match). Its negative weights
are set to 0. *error*: the greatest error of the probability of acceptance. *variance*: of the whole noise.

{corrections}
As the authors say of their figures 4 to 6: the ridge serves up to C = 1, and fails at C = 2, where the cut makes the noise much too wide. Ours is a law of few
points by a linear programme, so nothing is cut.
"""
