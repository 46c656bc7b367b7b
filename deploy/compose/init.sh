#!/bin/sh
# Makes one party's key, signing request and ledger, once. A ledger that is gone although the key is there is not made anew: it would forget
# what has been spent. The budget is the one in party.toml, which whoever runs this demo has written.
set -eu
party=$1
if [ -e /state/ledger.sqlite ]; then exit 0; fi
if [ -e /keys/key.pem ]; then
  echo "party $party has a key and no ledger: restore the volume $party-state" >&2
  exit 1
fi
/usr/local/bin/conclave-party init --yes --config "/etc/conclave/$party/party.toml"
# What its owner sends to the others, who pin it.
/usr/local/bin/conclave-party fingerprint --config "/etc/conclave/$party/party.toml" > /identity/fingerprint.txt
