#!/usr/bin/env bash
# Makes stand-ins for the two base images of the Dockerfile from Debian's packages and this machine's Rust toolchain, for
# a machine with a Docker engine and no registry:
#
#   conclave-build-base      Debian with a C compiler and Rust
#   conclave-runtime-base    the C library and CA certificates, a user without rights, no shell
#
# Needs root, debootstrap and a Rust toolchain of rustup's. Takes about two minutes; does nothing where both images are there.
set -euo pipefail

have() { docker image inspect "$1" > /dev/null 2>&1; }
if have conclave-build-base && have conclave-runtime-base; then exit 0; fi

suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

debootstrap --variant=minbase --include=gcc,libc6-dev,ca-certificates "$suite" "$root/build" > "$root/log" 2>&1 \
  || { tail -20 "$root/log" >&2; exit 1; }
rm -rf "$root"/build/var/cache/apt/archives "$root"/build/var/lib/apt/lists "$root"/build/usr/share/{doc,man,locale}

mkdir -p "$root/runtime"/{etc/ssl/certs,lib64,lib/x86_64-linux-gnu,tmp,home/nonroot}
chmod 1777 "$root/runtime/tmp"
libraries=/lib/$(gcc -print-multiarch)
mkdir -p "$root/runtime$libraries"
for library in libc.so.6 libm.so.6 libgcc_s.so.1 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2; do
  cp -L "$root/build$libraries/$library" "$root/runtime$libraries/"
done
loader=lib64/ld-linux-x86-64.so.2
test -e "$root/build/$loader" || loader=lib/ld-linux-aarch64.so.1
cp -L "$root/build/$loader" "$root/runtime/$loader"
cp -L "$root/build/etc/ssl/certs/ca-certificates.crt" "$root/runtime/etc/ssl/certs/"
echo 'nonroot:x:65532:65532::/home/nonroot:/sbin/nologin' > "$root/runtime/etc/passwd"
echo 'nonroot:x:65532:' > "$root/runtime/etc/group"
echo 'hosts: files dns' > "$root/runtime/etc/nsswitch.conf"
tar -C "$root/runtime" -c . | docker import - conclave-runtime-base > /dev/null

toolchain=$(rustc --print sysroot)
mkdir -p "$root/build/usr/local/rust"
tar -C "$toolchain" --exclude share/doc -c . | tar -C "$root/build/usr/local/rust" -x
tar -C "$root/build" -c . | docker import \
  --change 'ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - conclave-build-base > /dev/null
