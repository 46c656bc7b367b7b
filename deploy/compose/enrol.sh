#!/bin/sh
# Makes the consortium's CA and signs whoever has no certificate yet.
set -eu
conclave=/usr/local/bin/conclave
if [ ! -e /ca/ca-key.pem ]; then $conclave ca init --name "Compose demo" --out /ca; fi
cd /members
[ -e coordinator/request.pem ] || $conclave ca request coordinator main --host coordinator --out coordinator
[ -e analyst/request.pem ] || $conclave ca request analyst alice --out analyst
[ -e coordinator/certificate.pem ] || $conclave ca sign coordinator/request.pem --ca /ca --coordinator --yes
for member in analyst a b c; do
  [ -e $member/certificate.pem ] || $conclave ca sign $member/request.pem --ca /ca --yes
done
# Each party pins the others' keys. Here whoever keeps the CA writes the pins, as all stand on one machine; in earnest owners read them to each
# other (docs/data-owner.md, Secure jobs), since it is the CA's keeper that pins are there against. The image has no more than a shell.
configuration() {
  party=$1 identity=$2
  while IFS= read -r line; do
    case $line in
      'identity = '*) line="identity = \"$identity\"" ;;
      # It lies in another folder than the file that it is made from.
      'path = "'*) line="path = \"/etc/conclave/$party/${line#path = ?}" ;;
    esac
    printf '%s\n' "$line"
  done < "/etc/conclave/$party/party.toml"
}
pins=
for party in a b c; do
  configuration $party /members/$party > /tmp/$party.toml
  pins="$pins$(${conclave}-party fingerprint --config /tmp/$party.toml)
"
done
for party in a b c; do
  {
    configuration $party /identity
    printf '\n[secure]\nallow = true\n\n[secure.pinned]\n'
    printf '%s' "$pins" | while read -r name fingerprint; do
      [ "$name" = "hospital-$party" ] || printf '%s = "%s"\n' "$name" "$fingerprint"
    done
  } > $party/party.toml
done
