#!/usr/bin/env bash
# Creates replacements for the two base images of the Dockerfile from Debian's packages and this machine's Rust toolchain, for
# a machine with a Docker engine but no registry:
#
#   conclave-build-base      Debian with a C compiler and Rust
#   conclave-runtime-base    the C library and CA certificates, an unprivileged user, no shell
#
# Needs root, Debian or a derivative, and a Rust toolchain from rustup. Takes about two minutes; does nothing if both images
# exist with this toolchain. `stand-ins.sh runtime` creates only the second one, in a second, from this machine's C library,
# for programs that were built here.
set -euo pipefail

rust=$(rustc --version)
made_with() { docker image inspect --format '{{ index .Config.Labels "rust" }}' "$1" 2> /dev/null || true; }
has() { [ "$(made_with "conclave-$1-base")" = "$rust" ]; }
if [ "${1:-}" != runtime ] && has build && has runtime; then exit 0; fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
import() { docker import --change "LABEL rust=\"$rust\"" "$@" > /dev/null; }

system=
if [ "${1:-}" != runtime ]; then
  if ! command -v debootstrap > /dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends debootstrap > /dev/null
  fi
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  system=$root/build
  debootstrap --variant=minbase --include=gcc,libc6-dev,ca-certificates "$suite" "$system" > "$root/log" 2>&1 \
    || { tail -20 "$root/log" >&2; exit 1; }
  rm -rf "$system"/var/cache/apt/archives "$system"/var/lib/apt/lists "$system"/usr/share/{doc,man,locale}
fi

libraries=/lib/$(gcc -print-multiarch)
mkdir -p "$root/runtime"/{etc/ssl/certs,lib64,tmp,home/nonroot} "$root/runtime$libraries"
chmod 1777 "$root/runtime/tmp"
for library in libc.so.6 libm.so.6 libgcc_s.so.1 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2; do
  cp -L "$system$libraries/$library" "$root/runtime$libraries/"
done
loader=lib64/ld-linux-x86-64.so.2
test -e "$system/$loader" || loader=lib/ld-linux-aarch64.so.1
cp -L "$system/$loader" "$root/runtime/$loader"
cp -L "$system/etc/ssl/certs/ca-certificates.crt" "$root/runtime/etc/ssl/certs/"
echo 'nonroot:x:65532:65532::/home/nonroot:/sbin/nologin' > "$root/runtime/etc/passwd"
echo 'nonroot:x:65532:' > "$root/runtime/etc/group"
echo 'hosts: files dns' > "$root/runtime/etc/nsswitch.conf"
tar -C "$root/runtime" -c . | import - conclave-runtime-base
if [ -z "$system" ]; then exit 0; fi

toolchain=$(rustc --print sysroot)
mkdir -p "$root/build/usr/local/rust"
tar -C "$toolchain" --exclude share/doc -c . | tar -C "$root/build/usr/local/rust" -x
# A build trusts the CAs of this machine: crates may come through a proxy with its own CA.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/build/etc/ssl/certs/ca-certificates.crt"
tar -C "$root/build" -c . \
  | import --change 'ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - conclave-build-base
