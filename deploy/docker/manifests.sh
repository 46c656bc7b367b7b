#!/bin/sh
# manifests.sh FROM TO: a copy of the workspace at FROM with its manifests and lock file as they are and every source empty.
# What the workspace depends on is built from it before the sources are there, and again only when a manifest changes.
set -eu
cd "$1"
to=$2
mkdir -p "$to"
cp -r .cargo Cargo.toml Cargo.lock rust-toolchain.toml "$to/"
for manifest in */Cargo.toml; do
  crate=$(dirname "$manifest")
  mkdir -p "$to/$crate/src"
  cp "$manifest" "$to/$crate/"
  for source in "$crate"/src/lib.rs "$crate"/src/main.rs "$crate"/src/bin*.rs "$crate"/benches/*.rs "$crate"/build.rs; do
    test -e "$source" || continue
    mkdir -p "$to/$(dirname "$source")"
    echo 'fn main() {}' > "$to/$source"
  done
done
