#!/usr/bin/env bash
# release.sh [FOLDER]: builds the programs and packs FOLDER/conclave-VERSION-TARGET.tar.gz (FOLDER is target/dist unless named), with the SBOM
# and SHA-256 checksums beside it. The same commit and toolchain give the same archive, byte for byte.
set -euo pipefail
cd "$(dirname "$0")/.."
dist=$(realpath -m "${1:-target/dist}")

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
target=$(rustc -vV | sed -n 's/^host: //p')
name=conclave-$version-$target
if [ -n "$(git status --porcelain)" ]; then
  echo "release.sh: there are changes that are not committed: a release is made of a commit" >&2
  exit 2
fi

# Machine paths out of panic messages.
export RUSTFLAGS="--remap-path-prefix=$PWD=/conclave --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
cargo build --release --locked --bins --target-dir target/release-build

rm -rf "${dist:?}/$name"* && mkdir -p "$dist/$name/bin"
install -m 755 target/release-build/release/{conclave,conclave-party,conclave-coordinator} "$dist/$name/bin/"
git archive HEAD README.md docs party/docs deploy/sample deploy/systemd deploy/kubernetes \
  | tar -C "$dist/$name" -x
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
deploy/sbom-tools target/tools/python
target/tools/python/bin/python deploy/sbom.py "$dist/$name.cdx.json"
cp "$dist/$name.cdx.json" "$dist/$name/sbom.cdx.json"

tar -C "$dist" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -n9 > "$dist/$name.tar.gz"
rm -rf "${dist:?}/$name"
cd "$dist"
sha256sum "$name.tar.gz" "$name.cdx.json" > SHA256SUMS
cat SHA256SUMS
