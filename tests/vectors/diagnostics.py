"""Writes diagnostics.json: convergence diagnostics of ArviZ for chains that any language can make again.

Run with: pip install "arviz==0.23.*" && python diagnostics.py > diagnostics.json
"""

import json
import warnings

import arviz
import numpy as np
from arviz.stats.diagnostics import (
    _ess_bulk, _ess_mean, _ess_quantile, _ess_tail, _mcse_mean, _mcse_quantile, _mcse_sd, _rhat_rank,
)

MASK = (1 << 64) - 1


def chains(case):
    """AR(1) chains around a shift per chain, driven by sums of four uniforms of a 64-bit linear congruential generator.

    `trend` is added with every draw; `tail` times its cube is added to a value, for heavy tails; the last chain stands still
    from draw number `stuck` on.
    """
    state = case["seed"]
    out = []
    for chain in range(case["chains"]):
        x, draws = 0.0, []
        for draw in range(case["draws"]):
            total = 0.0
            for _ in range(4):
                state = (state * 6364136223846793005 + 1442695040888963407) & MASK
                total += (state >> 11) / 9007199254740992.0
            x = case["rho"] * x + (total - 2.0)
            value = x * (1.0 + chain * case["spread"]) + chain * case["shift"]
            value += draw * case["trend"]
            if case["tail"] > 0.0:
                value *= 1.0 + case["tail"] * value * value
            if case["stuck"] > 0 and chain == case["chains"] - 1 and draw >= case["stuck"]:
                value = draws[case["stuck"] - 1]
            if case["grid"] > 0.0:
                value = np.floor(value / case["grid"]) * case["grid"]
            draws.append(value)
        out.append(draws)
    return np.array(out)


def case(kind, seed, chains, draws, rho, **rest):
    plain = dict(shift=0.0, spread=0.0, grid=0.0, trend=0.0, tail=0.0, stuck=0)
    return dict(kind=kind, seed=seed, chains=chains, draws=draws, rho=rho, **{**plain, **rest})


CASES = [
    case("good", 1, 4, 1000, 0.0),
    case("slow, odd length", 2, 4, 1001, 0.9),
    case("antithetic", 3, 4, 500, -0.6),
    case("shifted apart", 4, 4, 800, 0.5, shift=0.3),
    case("different scales", 5, 3, 600, 0.3, spread=0.5),
    case("ties", 6, 4, 400, 0.7, grid=0.25),
    case("one chain", 7, 1, 300, 0.4),
    case("shortest", 8, 2, 4, 0.0),
    case("very short", 9, 2, 7, 0.2),
    case("hardly moving", 10, 4, 200, 0.999),
    case("short and slow", 11, 2, 12, 0.95),
    case("one chain stuck half way", 12, 4, 500, 0.3, stuck=250),
    case("one chain stuck from its start", 13, 4, 500, 0.3, stuck=1),
    case("trending", 14, 4, 600, 0.5, trend=0.004),
    case("heavy-tailed", 15, 4, 1000, 0.4, tail=40.0),
    case("heavy-tailed and slow", 16, 2, 2500, 0.95, tail=10.0),
    case("one long chain that trends", 17, 1, 1500, 0.8, trend=0.001),
]

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = []
    for c in CASES:
        x = chains(c)
        q5, median, q95 = np.quantile(x, [0.05, 0.5, 0.95])
        values = dict(
            mean=x.mean(), sd=x.std(ddof=1), q5=q5, median=median, q95=q95, ess_bulk=_ess_bulk(x), ess_tail=_ess_tail(x),
            rhat=_rhat_rank(x), mcse_mean=_mcse_mean(x), ess_mean=_ess_mean(x), mcse_sd=_mcse_sd(x),
        )
        for name, p in [("q5", 0.05), ("median", 0.5), ("q95", 0.95)]:
            values["mcse_" + name] = _mcse_quantile(x, p)
            values["ess_" + name] = _ess_quantile(x, p)
        rows.append({**c, **{k: None if np.isnan(v) else float(v) for k, v in values.items()}})
    provenance = f"ArviZ {arviz.__version__} and NumPy {np.__version__} on chains that diagnostics.py describes; null stands for NaN."
    print(json.dumps(dict(provenance=provenance, cases=rows), indent=1))
