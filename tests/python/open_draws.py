"""Opens a run's draws with the usual tools and compares their figures with the run's own summary.

Run with: python3 open_draws.py VENV DRAWS.zarr CSV_FOLDER DRAWS.parquet SUMMARY.json

VENV is created if it is missing, with the packages of requirements.txt (ArviZ 0.23, xarray, zarr, cmdstanpy, pandas, pyarrow). Where
Python is 3.12 or later, a second environment beside it has the packages of requirements-1.txt (ArviZ 1.x). Means and sds must agree to
1e-9, and R-hat, ESS and MCSE to 1e-6, relative to the larger of the figure and 1e-3.
"""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def environment(folder, requirements):
    """Returns the Python of a virtual environment with the packages of a requirements file, checked by their hashes."""
    python = os.path.join(folder, "bin", "python")
    ready = os.path.join(folder, "ready")
    if not os.path.exists(ready):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", os.path.join(HERE, requirements)], check=True)
        open(ready, "w").close()
    return python


def near(what, found, expected, tolerance):
    limit = tolerance * max(abs(expected), 1e-3)
    assert abs(found - expected) <= limit, f"{what}: {found}, expected {expected}"


def compare(what, chains, row):
    """Compares the draws of one parameter, an array (chain, draw), with its row in the summary."""
    import numpy as np
    from arviz.stats import diagnostics as d

    # ArviZ's own quantile of equal draws may be their neighbouring double, which lies on the wrong side of all of them.
    d._quantile = lambda values, probability: np.atleast_1d(np.quantile(values, probability))
    x = np.asarray(chains, dtype=float)
    near(f"{what} mean", x.mean(), row["mean"], 1e-9)
    near(f"{what} sd", x.std(ddof=1), row["sd"], 1e-9)
    for key, probability in [("q5", 0.05), ("median", 0.5), ("q95", 0.95)]:
        near(f"{what} {key}", np.quantile(x, probability), row[key], 1e-9)
        near(f"{what} mcse_{key}", d._mcse_quantile(x, probability), row[f"mcse_{key}"], 1e-6)
        near(f"{what} ess_{key}", min(d._ess_quantile(x, probability), x.size), row[f"ess_{key}"], 1e-6)
    near(f"{what} rhat", d._rhat_rank(x), row["rhat"], 1e-6)
    near(f"{what} ess_bulk", min(d._ess_bulk(x), x.size), row["ess_bulk"], 1e-6)
    near(f"{what} ess_tail", min(d._ess_tail(x), x.size), row["ess_tail"], 1e-6)
    near(f"{what} mcse_mean", d._mcse_mean(x), row["mcse_mean"], 1e-6)
    # Withheld with few effective draws.
    if d._ess_bulk(x) < 50:
        assert row["mcse_sd"] is None, (what, row["mcse_sd"])
    else:
        near(f"{what} mcse_sd", d._mcse_sd(x), row["mcse_sd"], 1e-6)


def zarr_store(path, summary):
    import arviz
    import numpy as np
    import xarray
    import zarr

    tree = xarray.open_datatree(path, engine="zarr")
    assert len(tree.groups) == 6, tree.groups
    # Without consolidated metadata, and from a store that is one file.
    for other in [
        xarray.open_datatree(path, engine="zarr", consolidated=False),
        xarray.open_datatree(zarr.storage.ZipStore(f"{path}.zip", mode="r"), engine="zarr"),
    ]:
        xarray.testing.assert_identical(tree.load(), other.load())
    for group in ["posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"]:
        data = tree[group]
        assert set(data.dims) == {"chain", "draw"}, (group, data.dims)
        assert data.attrs["inference_library"] == "conclave", group
        assert list(data["chain"].values) == list(range(summary["chains"])), group
        assert list(data["draw"].values) == list(range(data.sizes["draw"])), group
    assert tree.attrs["job"] == summary["job"] and isinstance(tree.attrs["seed"], int)
    for party, row in zip(tree.attrs["parties"], summary["parties"], strict=True):
        assert party["noise_sd"] > 0 and party["epsilon_spent"] == row["epsilon_spent"], party
    posterior = tree["posterior"].to_dataset()
    assert posterior.sizes["draw"] == summary["draws_per_chain"]
    for row in summary["posterior"]:
        compare(f"zarr {row['name']}", posterior[row["name"]].values, row)
    original = tree["posterior_original"].to_dataset()
    for row in summary["posterior_original"]:
        compare(f"zarr {row['name']} in the data's own units", original[row["name"]].values, row)
    assert original.attrs["columns"] == tree.attrs["columns"] and original.attrs["columns"]["age"]["max"] > 0
    stats = tree["sample_stats"].to_dataset()
    near("acceptance", float(stats["accepted"].mean()), summary["acceptance_rate"], 1e-9)
    assert np.isfinite(stats["log_alpha"].values).any()
    # ArviZ's own tables, from the groups that it expects: the calls of docs/how-to/analyst/export-draws.md.
    groups = ["posterior", "sample_stats", "warmup_posterior", "warmup_sample_stats"]
    data = arviz.InferenceData(**{name: tree[name].to_dataset() for name in groups})
    for rows, table in [
        ("posterior", arviz.summary(data, round_to="none")),
        ("posterior_original", arviz.summary(tree["posterior_original"].to_dataset(), round_to="none")),
    ]:
        for row in summary[rows]:
            near(f"arviz.summary {rows} {row['name']}", table.loc[row["name"], "ess_bulk"], row["ess_bulk"], 1e-6)
            near(f"arviz.summary {rows} {row['name']}", table.loc[row["name"], "mean"], row["mean"], 1e-6)
    return posterior, original, {name: tree["warmup_posterior"][name].values for name in posterior}


def cmdstan(folder, summary, original, warmup):
    import arviz
    import cmdstanpy
    import numpy as np

    files = [os.path.join(folder, f"chain-{c + 1}.csv") for c in range(summary["chains"])]
    fit = cmdstanpy.from_csv(files)
    assert fit.chains == summary["chains"] and fit.num_draws_sampling == summary["draws_per_chain"]
    assert fit.thin == 1 and fit.num_draws_warmup == next(iter(warmup.values())).shape[1]
    draws = fit.draws(inc_warmup=True)  # (draw, chain, column)
    names = [name for name in fit.column_names if not name.endswith("__")]
    assert {"lp__", "accept_stat__", "log_alpha__", "accepted__"} <= set(fit.column_names), fit.column_names
    data = arviz.from_cmdstan(posterior=files, save_warmup=True)
    count = len(summary["posterior"])
    assert len(names) == 2 * count
    # After the parameters come the same in the data's own units, without warm-up draws.
    for name, row in zip(names[count:], summary["posterior_original"], strict=True):
        column = draws[:, :, fit.column_names.index(name)]
        assert "_original" in name and np.isnan(column[: fit.num_draws_warmup]).all(), name
        assert np.array_equal(column[fit.num_draws_warmup :].T, original[row["name"]].values), name
    for name, row in zip(names[:count], summary["posterior"], strict=True):
        column = draws[:, :, fit.column_names.index(name)]
        kept = column[fit.num_draws_warmup :].T
        compare(f"cmdstanpy {name}", kept, row)
        compare(f"from_cmdstan {name}", data.posterior[name].values, row)
        assert np.array_equal(column[: fit.num_draws_warmup].T, warmup[row["name"]]), name
        assert np.array_equal(data.warmup_posterior[name].values, warmup[row["name"]]), name
    near("accepted__", float(data.sample_stats["accepted"].mean()), summary["acceptance_rate"], 1e-9)


def parquet(path, summary, posterior, original, warmup):
    import numpy as np
    import pandas

    table = pandas.read_parquet(path)
    for rows, expected in [(table[~table.warmup], posterior), (table[table.warmup], warmup)]:
        for row in summary["posterior"]:
            name = row["name"]
            wide = rows.pivot(index="chain", columns="draw", values=name).to_numpy()
            assert np.array_equal(wide, np.asarray(expected[name])), name
    assert table[table.warmup].filter(like=" (original)").isna().all(axis=None)
    for row in summary["posterior_original"]:
        wide = table[~table.warmup].pivot(index="chain", columns="draw", values=f"{row['name']} (original)").to_numpy()
        assert np.array_equal(wide, original[row["name"]].values), row["name"]
    for row in summary["posterior"]:
        kept = table[~table.warmup]
        compare(f"parquet {row['name']}", kept.pivot(index="chain", columns="draw", values=row["name"]).to_numpy(), row)
    near("accepted", table[~table.warmup].accepted.mean(), summary["acceptance_rate"], 1e-9)


def check(zarr, csv, table, summary_file):
    import logging
    import warnings

    warnings.simplefilter("ignore")
    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    summary = json.load(open(summary_file))
    # The figures of an answer that is not adequate stand apart.
    summary |= summary.get("inadequate", {})
    posterior, original, warmup = zarr_store(zarr, summary)
    cmdstan(csv, summary, original, warmup)
    parquet(table, summary, posterior, original, warmup)
    print(f"{len(summary['posterior'])} parameters agree in Zarr, CmdStan CSV and Parquet")


def arviz_1(folder, zarr, summary_file):
    """Checks ArviZ 1.x, which needs Python 3.12 and reads xarray's tree directly."""
    if sys.version_info < (3, 12):
        print("skipped ArviZ 1.x: it needs Python 3.12 or later, this is", sys.version.split()[0])
        return
    python = environment(folder + "-1", "requirements-1.txt")
    code = (
        "import arviz, json, sys, xarray\n"
        "tree = xarray.open_datatree(sys.argv[1], engine='zarr')\n"
        "ess, summary = arviz.ess(tree), json.load(open(sys.argv[2]))\n"
        "for row in summary['posterior']:\n"
        "    assert abs(float(ess[row['name']]) - row['ess_bulk']) < 1e-4 * row['ess_bulk'], row\n"
        "for group in ['posterior', 'posterior_original']:\n"
        "    table = arviz.summary(tree, group=group, round_to='none')\n"
        "    for row in summary[group]:\n"
        "        assert abs(float(table.loc[row['name'], 'mean']) - row['mean']) < 1e-6 * (1 + abs(row['mean'])), row\n"
        "print('ArviZ', arviz.__version__, 'agrees')\n"
    )
    subprocess.run([python, "-c", code, zarr, summary_file], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        check(*sys.argv[2:6])
    else:
        folder = os.path.abspath(sys.argv[1])
        inside = environment(folder, "requirements.txt")
        subprocess.run([inside, os.path.abspath(__file__), "--inside", *sys.argv[2:6]], check=True)
        arviz_1(folder, sys.argv[2], sys.argv[5])
