CREATE TABLE jobs (
  key             INTEGER PRIMARY KEY,
  id              TEXT NOT NULL UNIQUE,
  name            TEXT NOT NULL,
  analyst         TEXT NOT NULL,
  spec            TEXT NOT NULL,              -- the job file, byte for byte
  submitted_ms    INTEGER NOT NULL,           -- Unix time
  state           TEXT NOT NULL,              -- queued until the job has ended; then finished, cancelled or failed
  iterations      INTEGER NOT NULL DEFAULT 0, -- from here on: written when the job ends
  draws           INTEGER NOT NULL DEFAULT 0,
  acceptance_rate REAL NOT NULL DEFAULT 0,
  seconds         REAL NOT NULL DEFAULT 0,
  error_code      TEXT,
  error_party     TEXT,
  error           TEXT,
  result          TEXT,                       -- JSON
  submission      BLOB NOT NULL,              -- the analyst's signature, an encoded conclave.v1.Submission
  protocol        INTEGER,                    -- the newest that the coordinator spoke that took the job in; NULL for 1
  ended_ms        INTEGER                     -- Unix time; NULL for a job that has not ended, or ended under an earlier build
) STRICT;

CREATE TABLE job_parties (
  job          INTEGER NOT NULL REFERENCES jobs (key),
  position     INTEGER NOT NULL,              -- in the job file's order, which is the order of releases
  party        TEXT NOT NULL,
  opened       INTEGER NOT NULL DEFAULT 0,    -- 1 from the first opening on; what follows is the same at every one after it
  records      INTEGER,                       -- where it is public
  persons      INTEGER,                       -- where persons are protected and their number is public
  records_per_person INTEGER NOT NULL DEFAULT 0, -- 0 where rows are protected
  add_remove   INTEGER NOT NULL DEFAULT 0,    -- 1 where neighbours differ by addition or removal
  queries      INTEGER NOT NULL DEFAULT 0,    -- written when the job ends
  charge_units INTEGER NOT NULL DEFAULT 0,    -- mu squared, in units of 2^-48; written when the job ends
  waiting_since_ms INTEGER,                   -- Unix time since which the job waits for the party; NULL where it does not
  PRIMARY KEY (job, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE rounds (
  job        INTEGER NOT NULL REFERENCES jobs (key),
  iteration  INTEGER NOT NULL,
  elapsed_us INTEGER NOT NULL,                -- sampling time so far
  releases   BLOB NOT NULL,                   -- little-endian 64-bit integers, party by party, query by query
  PRIMARY KEY (job, iteration)
) STRICT, WITHOUT ROWID;

-- The newest checkpoint that each party has published: shown to it when it attaches.
CREATE TABLE heads (
  party TEXT PRIMARY KEY,
  head  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE parties (
  name          TEXT PRIMARY KEY,
  first_seen_ms INTEGER NOT NULL,
  last_seen_ms  INTEGER NOT NULL,
  software      TEXT NOT NULL
) STRICT, WITHOUT ROWID;
