#!/usr/bin/env python3
"""Runs the demo of deploy/docker-compose.yml, then three jobs with a disturbance in the middle: a party's network is cut for 60 s, the
coordinator is restarted, a party is killed.

No two runs of a job have the same draws, since noise comes from the operating system and must not be seeded. But draws are a function of
the job, its seed and the parties' releases. A disturbance has therefore not changed the draws under four conditions: the run was completed;
every query was answered and charged once; the coordinator used the releases in the parties' ledgers; and proposals, decisions and draws
follow from them bit for bit. The first three are checked here from the coordinator's log and the ledgers. Each party checks all four with
`conclave-party verify`, which replays the job from its seed and the releases.
"""
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = f"conclave-ci-{os.getpid()}"
PARTIES = {"a": "hospital-a", "b": "hospital-b", "c": "hospital-c"}
CUT_SECONDS = 60
CHECKS = ["signature", "consent", "roster", "answers", "sums", "proposals", "draws", "result"]
WAITED_FOR_LONGEST = 240


def run(*command, check=True, **options):
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if check and done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def compose(*arguments, **options):
    return run(*COMPOSE, "-p", PROJECT, "-f", "deploy/docker-compose.yml", *arguments, **options)


COMPOSE = ["docker", "compose"] if run("docker", "compose", "version", check=False).returncode == 0 else ["docker-compose"]


def containers(service):
    """Returns the id of the service's container."""
    ids = compose("ps", "-q", service).stdout.split()
    assert len(ids) == 1, f"{service}: {ids}"
    return ids[0]


def inspect(container):
    return json.loads(run("docker", "inspect", container).stdout)[0]


def addresses(container):
    """Returns the container's address by network, without the project's name."""
    networks = inspect(container)["NetworkSettings"]["Networks"]
    return {name.removeprefix(PROJECT + "_"): network["IPAddress"] for name, network in networks.items()}


def analyst(*arguments):
    """Runs the analyst's command line in its own container, as Alice."""
    return run(
        "docker", "run", "--rm", "--network", f"{PROJECT}_analyst", "--volume", f"{PROJECT}_analyst-identity:/identity:ro",
        "--volume", f"{ROOT}/deploy/compose/job.toml:/job.toml:ro", "--env", "CONCLAVE_COORDINATOR=https://coordinator:8443",
        "--env", "CONCLAVE_IDENTITY=/identity", "conclave", *arguments,
    ).stdout


def party(service, *arguments, check=True):
    command = ["docker", "exec", containers(service), "/usr/local/bin/conclave-party", *arguments]
    return run(*command, "--config", f"/etc/conclave/{service}/party.toml", check=check)


def status(job):
    return next(found for found in json.loads(analyst("jobs", "--json"))["jobs"] if found["job"] == job)


def wait(job, what, condition):
    """Polls the job's status until `condition` holds, and returns that status."""
    ends = time.monotonic() + WAITED_FOR_LONGEST
    while time.monotonic() < ends:
        now = status(job)
        if condition(now):
            return now
        assert now["state"] not in ("failed", "cancelled"), f"waited for {what}: {now}"
        assert now["state"] != "finished", f"waited for {what}, but the job is over: make it longer. {now}"
        time.sleep(0.2)
    sys.exit(f"job {job}: waited {WAITED_FOR_LONGEST} s for {what}: {status(job)}")


# Checks.

def look_at_networks():
    """Checks that a party reaches only the coordinator in its own network: no other party, and no other address of the coordinator."""
    coordinator = addresses(containers("coordinator"))
    assert sorted(coordinator) == ["a", "analyst", "b", "c"], coordinator
    parties = {service: addresses(containers(service)) for service in PARTIES}
    for service, own in parties.items():
        assert list(own) == [service], own
        others = [address for network, address in coordinator.items() if network != service]
        others += [there[other] for other, there in parties.items() if other != service]
        process = inspect(containers(service))["State"]["Pid"]
        found = reached(process, [coordinator[service], *others], 8443)
        assert found == ["open"] + ["no way"] * len(others), f"{service} tries {coordinator[service]} and {others}: {found}"
    print("networks: each party reaches only the coordinator")


def reached(process, addresses, port):
    """Tries TCP connections concurrently from within a container's network. A refusal is an answer too, and therefore a route."""
    probe = """if True:
        import socket, sys
        from concurrent.futures import ThreadPoolExecutor
        def reached(address):
            try:
                socket.create_connection((address, int(sys.argv[1])), 3).close()
            except ConnectionRefusedError:
                return "refused"
            except OSError:
                return "no way"
            return "open"
        print("\\n".join(ThreadPoolExecutor(len(sys.argv)).map(reached, sys.argv[2:])))
    """
    done = run("nsenter", "--net", "--target", str(process), sys.executable, "-c", probe, str(port), *addresses)
    return done.stdout.splitlines()


def look_at_confinement():
    for service in [*PARTIES, "coordinator"]:
        found = inspect(containers(service))
        host = found["HostConfig"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"], service
        assert found["Config"]["User"] == "65532:65532", found["Config"]["User"]
        volumes = {m["Name"] for m in found["Mounts"] if m["Type"] == "volume"}
        others = {f"{PROJECT}_{p}-{kind}" for p in PARTIES if p != service for kind in ("identity", "keys", "state")}
        assert not volumes & others, f"{service} holds another's volume: {volumes & others}"
    print("containers: read-only, unprivileged, without capabilities and without volumes of others")


def log_of(job):
    """Returns the coordinator's log of an ended job: iterations, draws, and every party's masked releases by round. The last number of each
    party in a round is a mask that covers no value, so their sum over the parties shows that the masks cancel."""
    folder = tempfile.mkdtemp()
    try:
        run("docker", "cp", f"{containers('coordinator')}:/state/.", folder)
        database = sqlite3.connect(os.path.join(folder, "coordinator.sqlite"))
        key, ended, draws = database.execute("SELECT key, iterations, draws FROM jobs WHERE id = ?", [job]).fetchone()
        parties = [name for (name,) in database.execute("SELECT party FROM job_parties WHERE job = ? ORDER BY position", [key])]
        rounds = {}
        for iteration, blob in database.execute("SELECT iteration, releases FROM rounds WHERE job = ?", [key]):
            numbers = struct.unpack(f"<{len(blob) // 8}q", blob)
            each = len(numbers) // len(parties)
            answers = [list(numbers[i * each:(i + 1) * each]) for i in range(len(parties))]
            assert sum(answer.pop() for answer in answers) % 2**64 == 0, f"round {iteration}: the masks do not cancel"
            rounds[iteration] = dict(zip(parties, answers))
        database.close()
        return ended, draws, rounds
    finally:
        shutil.rmtree(folder)


def look_at_books(job, result):
    """Checks that every query was answered once, charged once, and its release used unchanged."""
    ended, draws, rounds = log_of(job)
    asked = status(job)["draws_asked"]
    assert result["stopped_by"] == "draws" and draws == asked, f"{draws} of {asked} draws, stopped by {result['stopped_by']}"
    # Round numbers have gaps if the search for the mode ends early.
    assert len(rounds) > 100 and ended == result["iterations"], (len(rounds), ended, result["iterations"])
    for service, name in PARTIES.items():
        releases = json.loads(party(service, "ledger", "--json", "--job", job).stdout)["releases"]
        given = {}
        total = None
        for release in releases:
            query = (release["iteration"], release["chain"])
            assert query not in given, f"{name}: two charges for {query}"
            assert release["released"] is not None and release["attempt"] == 0 and release["charge"] > 0, release
            # The running total grows by exactly this charge: no charge in between was lost.
            grown = None if total is None else release["running_total"] - total
            assert grown is None or abs(grown - release["mu_squared"]) <= 1e-12, (name, query, grown)
            total = release["running_total"]
            given[query] = release["released"]
        used = {(i, chain): number for i, of in rounds.items() for chain, number in enumerate(of[name])}
        assert used == given, f"{name}: {len(used.items() ^ given.items())} answers differ between the log and the ledger"
        said = next(p for p in result["parties"] if p["name"] == name)
        assert said["queries"] == len(given), (said, len(given))
        report = json.loads(party(service, "verify", job, "--json").stdout)
        assert report["rounds"] == len(rounds) and report["draws"] == draws, report
        assert {check["name"]: check["result"] for check in report["checks"]} == dict.fromkeys(CHECKS, "holds"), report
    numbers = sum(len(numbers) for of in rounds.values() for numbers in of.values())
    print(f"books: {len(rounds)} rounds, {numbers} answers, each charged once and equal in ledger and log; replayed by every party")


# Disturbances in the middle of a job.

def cut_the_network(job, before):
    network = f"{PROJECT}_b"
    container = containers("b")
    run("docker", "network", "disconnect", network, container)
    cut = time.monotonic()
    paused = wait(job, "the cut to be noticed", lambda s: s["state"] == "paused" and s["waiting_for"] == ["hospital-b"])
    assert paused["waiting_since"], paused
    print(f"paused after round {paused['iterations']}, waiting for {paused['waiting_for'][0]} since {paused['waiting_since']}")
    time.sleep(max(0, CUT_SECONDS - (time.monotonic() - cut)))
    still = status(job)
    assert still["state"] == "paused" and still["iterations"] == paused["iterations"], (paused, still)
    assert still["waiting_since"], still
    run("docker", "network", "connect", "--alias", "b", network, container)
    return still


def restart_the_coordinator(job, before):
    container = containers("coordinator")
    started = inspect(container)["State"]["StartedAt"]
    run("docker", "restart", container)
    assert inspect(container)["State"]["StartedAt"] != started
    return wait(job, "the job to resume", lambda s: s["state"] == "running" and s["iterations"] > before["iterations"])


def kill_a_party(job, before):
    container = containers("c")
    run("docker", "kill", "--signal", "KILL", container)
    state = inspect(container)["State"]
    assert not state["Running"] and state["ExitCode"] == 137, state
    paused = wait(job, "the kill to be noticed", lambda s: s["state"] == "paused" and s["waiting_for"] == ["hospital-c"])
    assert paused["waiting_since"], paused
    print(f"paused after round {paused['iterations']}, waiting for {paused['waiting_for'][0]} since {paused['waiting_since']}")
    run("docker", "start", container)
    return paused


def disturb(name, disturbance):
    print(f"\n-- {name}")
    job = json.loads(analyst("submit", "/job.toml", "--json"))["job"]
    before = wait(job, "its middle", lambda s: s["state"] == "running" and s["draws"] > 0)
    during = disturbance(job, before)
    result = json.loads(analyst("watch", job, "--json"))
    # The disturbance was in the middle: there were rounds before and after it.
    assert 0 < before["iterations"] <= during["iterations"] < result["iterations"], (before, during, result["iterations"])
    assert during["draws"] < during["draws_asked"], during
    print(f"disturbed at round {during['iterations']} of {result['iterations']}, {during['draws']} of {during['draws_asked']} draws a chain")
    look_at_books(job, result)


def main():
    print(f"-- the demo ({' '.join(COMPOSE)})")
    started = time.monotonic()
    demo = compose("up", "--no-build", "--exit-code-from", "analyst", "analyst")
    assert re.search(r"posterior|mean +sd", demo.stdout), demo.stdout
    print("\n".join(demo.stdout.splitlines()[-40:]))
    print(f"exit code 0 after {time.monotonic() - started:.0f} s")
    look_at_confinement()
    look_at_networks()
    job = json.loads(analyst("jobs", "--json"))["jobs"][0]["job"]
    look_at_books(job, json.loads(analyst("summary", job, "--json")))
    for name, disturbance in [
        (f"a party's network is cut for {CUT_SECONDS} s", cut_the_network),
        ("the coordinator is restarted", restart_the_coordinator),
        ("a party is killed", kill_a_party),
    ]:
        started = time.monotonic()
        disturb(name, disturbance)
        print(f"{time.monotonic() - started:.0f} s")
    # The command reads the whole ledger: every hash, every sum.
    for service in PARTIES:
        party(service, "budget")


try:
    main()
except BaseException:
    for service in ["coordinator", *PARTIES]:
        print(compose("logs", "--no-color", "--tail", "30", service, check=False).stdout, file=sys.stderr)
    raise
finally:
    compose("down", "--volumes", "--timeout", "10", check=False)
