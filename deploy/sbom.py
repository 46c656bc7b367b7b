#!/usr/bin/env python3
"""sbom.py OUT [TARGET]: the software bill of materials of a release, as CycloneDX 1.6 JSON.

Lists every package of Cargo.lock, with its licence and the checksum that Cargo.lock pins. Packages are `required` if the released
programs for TARGET (default: this machine's) are built from them; those of tests, other platforms and features outside a
release are `excluded`. Needs cargo, and cyclonedx-python-lib[json-validation] from PyPI. The same Cargo.lock yields the same
bytes if SOURCE_DATE_EPOCH is set.
"""
import datetime
import hashlib
import json
import os
import subprocess
import sys
import tomllib
import uuid

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RELEASED = ["conclave", "conclave-party", "conclave-coordinator"]


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True).stdout


def metadata(*arguments):
    return json.loads(cargo("metadata", "--locked", "--format-version", "1", *arguments))


def host():
    version = subprocess.run(["rustc", "-vV"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return next(line.removeprefix("host: ") for line in version.splitlines() if line.startswith("host: "))


def required(target):
    """Returns the ids of the released programs' dependencies and build dependencies, without those of tests."""
    found = metadata("--filter-platform", target)
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    open_ids = [p["id"] for p in found["packages"] if p["name"] in RELEASED and p["source"] is None]
    assert len(open_ids) == len(RELEASED)
    closed = set()
    while open_ids:
        one = open_ids.pop()
        if one not in closed:
            closed.add(one)
            open_ids += [d["pkg"] for d in nodes[one]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
    return closed


def component(package, checksums, needed):
    name, version = package["name"], package["version"]
    checksum = checksums.get((name, version))
    # Cargo's older notation for "or".
    licence = (package["license"] or "").replace(" / ", " OR ").replace("/", " OR ")
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        description=package["description"],
        scope=ComponentScope.REQUIRED if package["id"] in needed else ComponentScope.EXCLUDED,
        licenses=[LicenseFactory().make_with_expression(licence)] if licence else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
        purl=PackageURL("cargo", name=name, version=version),
        bom_ref=f"pkg:cargo/{name}@{version}",
    )


def main(out, target):
    with open(os.path.join(ROOT, "Cargo.lock"), "rb") as file:
        lock = file.read()
    locked = tomllib.loads(lock.decode())["package"]
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in locked}
    whole, needed = metadata("--all-features"), required(target)
    components = {p["id"]: component(p, checksums, needed) for p in whole["packages"]}
    bom = Bom(components=components.values())
    bom.serial_number = uuid.UUID(hashlib.sha256(lock + target.encode()).hexdigest()[:32], version=4)
    if epoch := os.environ.get("SOURCE_DATE_EPOCH"):
        bom.metadata.timestamp = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
    version = next(p["version"] for p in whole["packages"] if p["name"] == "conclave")
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name="conclave-release", version=version, bom_ref=f"conclave-release@{version}",
        description=f"conclave, conclave-party and conclave-coordinator for {target}",
    )
    bom.register_dependency(bom.metadata.component, [c for i, c in components.items() if c.name in RELEASED])
    for node in whole["resolve"]["nodes"]:
        bom.register_dependency(components[node["id"]], [components[d] for d in node["dependencies"]])
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    named = {(c.name, c.version) for c in components.values()}
    if wrong or named != set(checksums):
        sys.exit(f"{out}: {wrong or named ^ set(checksums)}")
    with open(out, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    print(f"{out}: {len(components)} packages, {sum(i in needed for i in components)} of them in the programs for {target}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else host())
