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
# Each party pins the others' keys, of which each printed its own when it was made. Here whoever keeps the CA writes the pins, as all stand on
# one machine; in earnest owners read them to each other (docs/how-to/data-owner/take-part-in-secure-jobs.md), since it is the CA's keeper that pins are there
# against. The image has no more than a shell.
configuration() {
  while IFS= read -r line; do
    case $line in
      # It lies in another folder than the file that it is made from.
      'path = "'*) line="path = \"/etc/conclave/$1/${line#path = ?}" ;;
    esac
    printf '%s\n' "$line"
  done < "/etc/conclave/$1/party.toml"
}
for party in a b c; do
  {
    configuration $party
    printf '\n[secure]\nallow = true\n\n[secure.pinned]\n'
    for other in a b c; do
      read -r name fingerprint < $other/fingerprint.txt
      [ $other = $party ] || printf '%s = "%s"\n' "$name" "$fingerprint"
    done
  } > $party/party.toml
done
