"""Writes diagnostics.json: convergence diagnostics of ArviZ for chains that any language can make again.

Run with: pip install "arviz==0.23.*" && python diagnostics.py > diagnostics.json
"""

import json
import warnings

import arviz
import numpy as np
from arviz.stats.diagnostics import _ess_bulk, _ess_mean, _ess_tail, _mcse_mean, _rhat_rank

MASK = (1 << 64) - 1


def chains(case):
    """AR(1) chains around a shift per chain, driven by sums of four uniforms of a 64-bit linear congruential generator."""
    state = case["seed"]
    out = []
    for chain in range(case["chains"]):
        x, draws = 0.0, []
        for _ in range(case["draws"]):
            total = 0.0
            for _ in range(4):
                state = (state * 6364136223846793005 + 1442695040888963407) & MASK
                total += (state >> 11) / 9007199254740992.0
            x = case["rho"] * x + (total - 2.0)
            value = x * (1.0 + chain * case["spread"]) + chain * case["shift"]
            if case["grid"] > 0.0:
                value = np.floor(value / case["grid"]) * case["grid"]
            draws.append(value)
        out.append(draws)
    return np.array(out)


def case(seed, chains, draws, rho, shift=0.0, spread=0.0, grid=0.0):
    return dict(seed=seed, chains=chains, draws=draws, rho=rho, shift=shift, spread=spread, grid=grid)


CASES = [
    case(1, 4, 1000, 0.0),
    case(2, 4, 1001, 0.9),
    case(3, 4, 500, -0.6),
    case(4, 4, 800, 0.5, shift=0.3),
    case(5, 3, 600, 0.3, spread=0.5),
    case(6, 4, 400, 0.7, grid=0.25),
    case(7, 1, 300, 0.4),
    case(8, 2, 4, 0.0),
    case(9, 2, 7, 0.2),
    case(10, 4, 200, 0.999),
    case(11, 2, 12, 0.95),
]

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = []
    for c in CASES:
        x = chains(c)
        q5, median, q95 = np.quantile(x, [0.05, 0.5, 0.95])
        values = dict(
            mean=x.mean(), sd=x.std(ddof=1), q5=q5, median=median, q95=q95, ess_bulk=_ess_bulk(x), ess_tail=_ess_tail(x),
            rhat=_rhat_rank(x), mcse_mean=_mcse_mean(x), ess_mean=_ess_mean(x),
        )
        rows.append({**c, **{k: None if np.isnan(v) else float(v) for k, v in values.items()}})
    provenance = f"ArviZ {arviz.__version__} and NumPy {np.__version__} on chains that diagnostics.py describes; null stands for NaN."
    print(json.dumps(dict(provenance=provenance, cases=rows), indent=1))
