#!/bin/sh
# Creates the consortium's CA and signs every member without a certificate.
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
# Each party pins the others' keys, from the fingerprint that each printed at its creation. Here the CA's operator writes the pins, as all
# members are on one machine. In practice the owners read the fingerprints to each other (docs/how-to/data-owner/take-part-in-secure-jobs.md),
# since pins protect against the CA's operator. The image contains only a shell, so the files are written with it.
configuration() {
  while IFS= read -r line; do
    case $line in
      # The new file is in another folder, so the path is made absolute.
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
