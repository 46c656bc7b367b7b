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
