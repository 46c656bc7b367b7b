#!/bin/sh
# manifests.sh FROM TO: copies the workspace at FROM with its manifests and lock file unchanged and every source empty.
# The dependencies are built from it before the sources are copied, and rebuilt only when a manifest changes.
set -eu
cd "$1"
to=$2
mkdir -p "$to"
cp -r .cargo Cargo.toml Cargo.lock "$to/"
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
