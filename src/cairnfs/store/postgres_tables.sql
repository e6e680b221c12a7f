-- The tables of a namespace on PostgreSQL.
--
-- Run once, by format_database, with search_path = cairnfs.  A later version changes
-- them by a migration (postgres_schema.py).

CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

-- One row; whoever has locked it is the one who commits.
CREATE TABLE clock (one integer PRIMARY KEY CHECK (one = 1), txid bigint NOT NULL)
    WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000,
          autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE counters (name text PRIMARY KEY, next bigint NOT NULL)
    WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000,
          autovacuum_vacuum_scale_factor = 0);

CREATE TABLE records (
    t integer NOT NULL, a bigint NOT NULL, b bytea NOT NULL,
    id bigint, since bigint NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (t, a, b))
    WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX records_by_id ON records (id, t) WHERE id IS NOT NULL;

CREATE TABLE past (
    t integer NOT NULL, a bigint NOT NULL, b bytea NOT NULL,
    until bigint NOT NULL, since bigint NOT NULL, id bigint, data bytea NOT NULL,
    holder bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (t, a, b, until));
CREATE INDEX past_by_holder ON past (holder, until, t, a, b);
CREATE INDEX past_by_id ON past (id, t) WHERE id IS NOT NULL;

-- One row for each directory and each NameNode that ever touched it.
CREATE TABLE totals (
    id bigint NOT NULL, shard integer NOT NULL,
    mtime_ms bigint NOT NULL, touched bigint NOT NULL,
    children bigint NOT NULL, files bigint NOT NULL, directories bigint NOT NULL,
    symlinks bigint NOT NULL, length_bytes bigint NOT NULL, space_bytes bigint NOT NULL,
    ssd_bytes bigint NOT NULL, disk_bytes bigint NOT NULL, archive_bytes bigint NOT NULL,
    provided_bytes bigint NOT NULL, nvdimm_bytes bigint NOT NULL, inodes bigint NOT NULL,
    snapshots bigint NOT NULL DEFAULT 0, changed bigint NOT NULL DEFAULT 0,
    reserved_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (id, shard))
    WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000,
          autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE replies (
    client_id bytea NOT NULL, last_call bigint NOT NULL, txid bigint NOT NULL,
    first_call bigint NOT NULL, expires_ms bigint NOT NULL, calls bigint[] NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (client_id, last_call, txid));
CREATE INDEX replies_by_expiry ON replies (expires_ms);

-- NameNodes.  `batch` is the last batch that was committed or given up, `base` the TxID
-- before its first, NULL if it was given up.  All times are the database's own.
CREATE TABLE members (
    id integer PRIMARY KEY, epoch bigint NOT NULL, batch bigint NOT NULL, base bigint,
    address text NOT NULL, heartbeat timestamptz NOT NULL, expiry interval NOT NULL)
    WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000,
          autovacuum_vacuum_scale_factor = 0);

CREATE TABLE duties (
    name text PRIMARY KEY, member integer NOT NULL, epoch bigint NOT NULL,
    expires timestamptz NOT NULL)
    WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000,
          autovacuum_vacuum_scale_factor = 0);
