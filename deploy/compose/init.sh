#!/bin/sh
# Creates one party's key, signing request and ledger, once. If the key exists but the ledger is missing, no new ledger is created, since it
# would forget the budget spent. The budget is the one in party.toml, which the user of this demo wrote.
set -eu
party=$1
if [ -e /state/ledger.sqlite ]; then exit 0; fi
if [ -e /keys/key.pem ]; then
  echo "party $party has a key but no ledger: restore the volume $party-state" >&2
  exit 1
fi
/usr/local/bin/conclave-party init --yes --config "/etc/conclave/$party/party.toml"
# The owner sends this fingerprint to the others, who pin it.
/usr/local/bin/conclave-party fingerprint --config "/etc/conclave/$party/party.toml" > /identity/fingerprint.txt
