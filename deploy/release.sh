#!/usr/bin/env bash
# release.sh [FOLDER]: builds the programs and packs FOLDER/conclave-VERSION-TARGET.tar.gz (default FOLDER: target/dist), together with a Debian
# package if dpkg-deb is installed, the SBOM and SHA-256 checksums. The same commit and toolchain yield the same files, byte for byte.
#
# CONCLAVE_RELEASE_KEY=KEY signs SHA256SUMS as SHA256SUMS.sig with the SSH key in the file KEY (or with the agent's, if KEY is a public key).
# deploy/README.md describes how to check a release.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-target/dist}")
key=${CONCLAVE_RELEASE_KEY:+$(realpath "$CONCLAVE_RELEASE_KEY")}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
target=$(rustc -vV | sed -n 's/^host: //p')
name=conclave-$version-$target
if [ -n "$(git status --porcelain)" ]; then
  echo "release.sh: there are uncommitted changes: commit them, since a release is built from a commit" >&2
  exit 2
fi

# Keeps this machine's paths out of panic messages.
export RUSTFLAGS="--remap-path-prefix=$PWD=/conclave --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
cargo build --release --locked --bins --target-dir target/release-build

rm -rf "${dist:?}/$name"* "$dist"/conclave_* "$dist"/SHA256SUMS* && mkdir -p "$dist/$name/bin"
install -m 755 target/release-build/release/{conclave,conclave-party,conclave-coordinator} "$dist/$name/bin/"
git archive HEAD README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE docs deploy/sample deploy/systemd deploy/kubernetes deploy/monitoring \
  | tar -C "$dist/$name" -x
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
deploy/sbom-tools target/tools/python
target/tools/python/bin/python deploy/sbom.py "$dist/$name.cdx.json"
cp "$dist/$name.cdx.json" "$dist/$name/sbom.cdx.json"
if command -v dpkg-deb > /dev/null; then deploy/debian/build.sh "$dist/$name/bin" "$dist" "$dist/$name.cdx.json"; fi

tar -C "$dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -n9 > "$dist/$name.tar.gz"
rm -rf "${dist:?}/$name"
cd "$dist"
sha256sum "$name.tar.gz" "$name.cdx.json" $(ls conclave_*.deb 2> /dev/null) > SHA256SUMS
cat SHA256SUMS
if [ -n "$key" ]; then
  ssh-keygen -Y sign -q -f "$key" -n conclave-release SHA256SUMS
else
  echo "release.sh: CONCLAVE_RELEASE_KEY is not set: SHA256SUMS is not signed" >&2
fi
