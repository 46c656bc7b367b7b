#!/usr/bin/env bash
# build.sh PROGRAMS OUT [SBOM]: packs the programs in the folder PROGRAMS (conclave, conclave-party, conclave-coordinator) as a Debian package in
# the folder OUT and prints its path. DEBFULLNAME and DEBEMAIL name the maintainer. With SOURCE_DATE_EPOCH set, the same programs yield the same
# package, byte for byte. Needs dpkg-deb and binutils.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
programs=$(realpath "$1")
out=$(realpath -m "$2")
cd "$here/../.."
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
umask 022
chmod 755 "$root"
maintainer="${DEBFULLNAME:-The Conclave developers} <${DEBEMAIL:-conclave@localhost}>"
doc=$root/usr/share/doc/conclave
mkdir -p "$root"/{DEBIAN,usr/bin,usr/lib/{systemd/system,sysusers.d},etc/{conclave,default}} "$doc/examples"

for program in conclave conclave-party conclave-coordinator; do
  strip --strip-unneeded -o "$root/usr/bin/$program" "$programs/$program"
  chmod 755 "$root/usr/bin/$program"
done
for unit in deploy/systemd/*.service; do
  # Only unpackaged programs are below /usr/local.
  sed 's#/usr/local/bin/#/usr/bin/#; /^#   install -m/d' "$unit" > "$root/usr/lib/systemd/system/$(basename "$unit")"
done
cp deploy/systemd/conclave.sysusers.conf "$root/usr/lib/sysusers.d/conclave.conf"
cp deploy/debian/conclave.default "$root/etc/default/conclave"
cp deploy/debian/copyright "$doc/"
(cd docs && find . -name '*.md' -exec cp --parents {} "$doc/" \;)
cp -r deploy/sample "$doc/examples/sample"
cp -r deploy/monitoring "$doc/examples/monitoring"
if [ -n "${3:-}" ]; then cp "$3" "$doc/sbom.cdx.json"; fi
{
  echo "conclave ($version) unstable; urgency=medium"
  echo
  echo "  * See CHANGELOG.md.gz."
  echo
  echo " -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")"
} | gzip -n9 > "$doc/changelog.gz"
gzip -n9 < CHANGELOG.md > "$doc/CHANGELOG.md.gz"

# The newest version of C library symbols that the programs need.
libc=$(objdump -T "$root"/usr/bin/* | grep -o 'GLIBC_2\.[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
cat > "$root/DEBIAN/control" <<CONTROL
Package: conclave
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s --apparent-size "$root" | cut -f1)
Depends: libc6 (>= $libc), libgcc-s1 (>= 4.2), default-systemd-sysusers | systemd-sysusers
Section: science
Priority: optional
Description: Bayesian inference across data owners who share no record
 Several data owners compute one Bayesian posterior, and no record ever leaves
 its owner. The package contains the analyst's command line (conclave), the
 data owner's daemon (conclave-party) and the coordinator
 (conclave-coordinator), with their units.
 No daemon is started before its owner has configured and enabled it.
CONTROL
echo /etc/default/conclave > "$root/DEBIAN/conffiles"
install -m 755 deploy/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
(cd "$root" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$out"
package=$out/conclave_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z1 --build "$root" "$package" > /dev/null
echo "$package"
