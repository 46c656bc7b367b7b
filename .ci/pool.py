#!/usr/bin/env python3
"""Runs every independent check that needs a build: the README's test command, the ignored tests one by one, the
containers, the upgrade, the pages, the supply chain. Checks run in parallel up to the number of processors: those
that wait run beside those that compute, and the longest start first.

    .ci/pool.py --early               the checks that need the kept programs alone; `.ci/run` runs them beside the tests' build
    .ci/pool.py                       all others that run at every commit
    .ci/pool.py --only TEST ...       only these ignored tests, by name
    .ci/pool.py --long                the long suites that do not run at every commit

Prints each check's output when it ends, and the seconds of all checks at the end; exits with 1 if one failed. The
expected seconds and busy processors of a check are read from `.ci/seconds`; the measured ones are written to
target/ci-seconds and target/ci-seconds-early in the same format.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "target/programs"
# Measurements and tests that need an idle machine (run by `.ci/exhaustive`), and tests run by `.ci/upgrade` and `.ci/reports`.
LEFT_OUT = {
    "kernel_speed", "score_speed", "what_a_job_takes_across_a_wide_area_network", "the_time_of_ten_coordinates", "a_million_releases_in_figures", "views_of_a_million_releases_in_figures", "reply_times_do_not_depend_on_records_or_noise",
    "masked_reply_times_do_not_depend_on_records_or_noise",
    "every_daemon_is_replaced_in_the_middle_of_a_job",
    "reports_are_written_for_a_browser",
}
# Long suites with a shorter version at every commit; `.ci/exhaustive suites` runs them.
LONG = {
    "a_gaussian_posterior_of_ten",
    "a_hundred_thousand_replicates_come_close_to_the_claim_and_never_above",
    "adult_with_12_parameters_by_weighted_chains",
    "adult_with_three_owners_matches_the_pooled_posterior",
    "correlated_predictors_reach_the_simulated_error",
    "counts_by_party_are_calibrated",
    "counts_reach_the_simulated_error",
    "eight_parties_reach_the_simulated_error",
    "every_call_of_sampled_jobs_fails",
    "every_example_runs_as_planned",
    "few_correlated_records_reach_the_simulated_error",
    "figures_of_the_linear_model",
    "figures_of_the_log_linear_model",
    "figures_of_the_logistic_model",
    "five_owners_have_four_times_the_effective_draws",
    "gaussian_noise_at_epsilon_1",
    "gradients_reach_the_planned_error",
    "hmc_chains_have_h_times_the_effective_draws",
    "intervals_of_own_parameters_hold",
    "kappa_of_a_gaussian_mean",
    "kappa_of_a_logistic_regression_of_five",
    "kappa_of_a_logistic_regression_of_four",
    "killed_at_every_call_of_masked_jobs",
    "killed_at_every_call_of_sampled_jobs",
    "masked_replicates_come_close_to_the_claim_and_never_above",
    "of_many_runs_none_that_would_reach_what_it_wants_is_given_up",
    "own_answers_are_calibrated_in_every_setting",
    "penalty_chains_have_h_times_the_effective_draws",
    "rotated_moves_save_iterations_where_predictors_are_correlated",
    "sampled_replicates_never_reveal_more_than_a_block_claims",
    "simulated_jobs_are_answered_or_refused",
    "table_1_at_epsilon_1",
    "table_1_at_epsilon_10",
    "table_1_at_epsilon_3",
    "table_1_at_epsilon_3_tenths",
    "table_1_at_epsilon_tenth",
    "table_at_epsilon_10",
    "table_at_epsilon_3",
    "table_at_epsilon_3_tenths",
    "table_at_epsilon_tenth",
    "life_tables_are_calibrated",
    "survival_regressions_are_calibrated",
    "tables_of_linear_regressions_are_chosen_where_they_are_sharper",
    "the_anchor_of_a_gaussian_mean",
    "the_anchor_of_gradients",
    "the_fit_of_a_regression_is_nearer_than_its_chains",
    "the_mixture_of_the_paper_without_a_limit",
    "the_power_fails_at_every_call_of_masked_jobs",
    "the_power_fails_at_every_call_of_sampled_jobs",
    "the_stated_error_is_the_error_of_correlated_predictors",
    "the_tables_of_linear_regression",
    "the_tables_of_score_stages",
    "thousands_of_random_lists_of_masked_jobs",
    "twenty_parameters_reach_the_simulated_error",
    "weighted_counts_are_honest_in_every_design",
    "weighted_logistic_regressions_are_honest_in_every_design",
    "weighted_regressions_are_honest_in_every_design",
}
# Runs its tests in turn for as long as all checks together take, so the others leave it the processors.
LONGEST = "README's test command"
SCRIPTS = {
    LONGEST: ["cargo", "test", "--workspace"],
    "rolling upgrade": [".ci/upgrade"],
    "reports in a browser": [".ci/reports"],
    "Python package": [".ci/python"],
}
# Need the kept programs alone, and wait more than they compute.
EARLY = {
    "containers": [".ci/compose"],
    "demo": [".ci/demo", PROGRAMS / "conclave"],
    "pages of every kind of job in a browser": [".ci/kinds", PROGRAMS / "conclave"],
    "pages in a browser": [".ci/pages", PROGRAMS / "conclave"],
    "units, manifests, compose file": [".ci/deploy"],
    "oldest glibc": [".ci/glibc", *(PROGRAMS / name for name in ("conclave", "conclave-party", "conclave-coordinator"))],
    "prices of subsampled releases": [".ci/losses", PROGRAMS / "conclave"],
    "R package": [".ci/r", PROGRAMS / "conclave"],
    "supply chain": [".ci/supply-chain"],
}
# Seconds and processors of a check without measurements.
UNKNOWN = (20.0, 1.0)
# Extra load beyond the processors, since checks wait at times: without it two processors were busy for two thirds of the time.
BESIDE = 1.0
# A check's least share of a processor: what it was seen to keep busy beside others is less than what it takes when it can.
LEAST = 0.5


class Check:
    def __init__(self, name, command, folder=ROOT):
        first = [] if name == LONGEST else ["nice", "-n", "5"]
        self.name, self.command, self.folder = name, [*first, *map(str, command)], folder
        self.seconds, self.processors = KNOWN.get(name, UNKNOWN)
        self.passed = None

    def run(self):
        # The environment of `cargo test`, and a seed of random lists that depends only on the commit.
        own = {"CARGO_MANIFEST_DIR": str(self.folder), "CONCLAVE_SIM_SEED": os.environ.get("CONCLAVE_SIM_SEED", SEED)}
        environment = {**os.environ, **own} if self.folder != ROOT else None
        with tempfile.TemporaryFile() as output:
            began = time.monotonic()
            process = subprocess.Popen(self.command, cwd=self.folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - began
            self.processors = (used.ru_utime + used.ru_stime) / max(self.seconds, 1e-3)
            self.passed = process.returncode == 0
            output.seek(0)
            self.output = output.read().decode(errors="replace")


def known():
    """Returns seconds and processors of each check: from this folder's last run, else as committed."""
    table = {}
    for path in (ROOT / ".ci/seconds", ROOT / "target/ci-seconds", ROOT / "target/ci-seconds-early"):
        for line in path.read_text().splitlines() if path.exists() else []:
            seconds, processors, name = line.split(maxsplit=2)
            table[name] = (float(seconds), float(processors))
    return table


def binaries():
    """Yields every test binary with its package's folder."""
    build = ["cargo", "test", "--workspace", "--no-run", "--quiet", "--locked", "--message-format=json"]
    for line in subprocess.run(build, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            yield message["executable"], pathlib.Path(message["manifest_path"]).parent


def ignored():
    """Yields the ignored tests, each as a check."""
    for binary, folder in binaries():
        listed = subprocess.run([binary, "--list", "--ignored", "--format=terse"], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        for line in listed.stdout.splitlines():
            path = line.removesuffix(": test")
            if path != line:
                yield Check(path.rsplit("::", 1)[-1], [binary, "--exact", path, "--ignored", "--nocapture"], folder)


def tests(only):
    """Returns the ignored tests of these names, or those of every commit."""
    found = [check for check in ignored() if (check.name in only if only else check.name not in LEFT_OUT | LONG)]
    if only and {check.name for check in found} != set(only):
        sys.exit(f"no such test: {set(only) - {check.name for check in found}}")
    return found


def scripts(named):
    return [Check(name, command) for name, command in named.items()]


def report(check):
    verdict = "" if check.passed else ", FAILED"
    sys.stdout.write(f"\n-- {check.name} ({check.seconds:.0f} s{verdict})\n{check.output}")
    sys.stdout.flush()


def run_all(checks):
    """Runs the longest checks first, each as soon as enough processors are free."""
    processors = os.cpu_count() or 1
    ended, running = threading.Condition(), []

    def one(check):
        check.run()
        with ended:
            running.remove((check, weight(check)))
            report(check)
            ended.notify()

    weights = {id(check): min(max(check.processors, LEAST), float(processors)) for check in checks}

    def weight(check):
        return weights[id(check)]

    waiting = sorted(checks, key=lambda check: -check.seconds)
    with ended:
        while waiting or running:
            room = processors + BESIDE - sum(w for _, w in running)
            following = next((c for c in waiting if weight(c) <= room or not running), None)
            if following is None:
                ended.wait()
                continue
            waiting.remove(following)
            running.append((following, weight(following)))
            threading.Thread(target=one, args=(following,)).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="TEST")
    parser.add_argument("--long", action="store_true", help="the long suites that do not run at every commit")
    parser.add_argument("--early", action="store_true", help="the checks that need the kept programs alone")
    arguments = parser.parse_args()
    only = sorted(LONG) if arguments.long else arguments.only
    checks = scripts(EARLY) if arguments.early else tests(only) if only else [*tests(None), *scripts(SCRIPTS)]
    began = time.monotonic()
    run_all(checks)
    took = time.monotonic() - began
    table = [f"{c.seconds:7.1f} {c.processors:5.2f} {c.name}" for c in sorted(checks, key=lambda c: -c.seconds)]
    if not only:
        (ROOT / f"target/ci-seconds{'-early' if arguments.early else ''}").write_text("\n".join(table) + "\n")
    print("\n-- seconds, processors kept busy, check", *table, sep="\n")
    print(f"{sum(c.seconds for c in checks):7.1f} s in total, in {took:.1f} s")
    failed = [check.name for check in checks if not check.passed]
    if failed:
        sys.exit(f"FAILED: {', '.join(failed)}")


KNOWN = known()
SEED = str(int(subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout[:8] or "0", 16))
if __name__ == "__main__":
    main()
