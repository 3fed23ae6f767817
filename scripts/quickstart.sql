-- One run of an incremental pipeline: copy to warehouse.package what changed in
-- source.package since the last run.
--
-- Paste it into psql, or: psql -f scripts/quickstart.sql
--
-- The rows and the bookmark commit together.  Wherever this is cut off, the
-- next run goes on from what is really in the warehouse.

\set state_id 'prod:tap-dpkg-to-warehouse'

-- One run at a time: wait for the other one, should there be one.
SELECT singer_state.acquire_lock(:'state_id');

BEGIN;

-- Where did the last run end?
SELECT coalesce(singer_state.fetch_bookmark(:'state_id', 'package', 'replication_key_value'),
                '0') AS since \gset

-- Load what is new.
WITH new AS (
    SELECT * FROM source.package WHERE change > :since
), loaded AS (
    INSERT INTO warehouse.package SELECT * FROM new
    ON CONFLICT (name) DO UPDATE
    SET version = excluded.version, kilobytes = excluded.kilobytes, change = excluded.change
)
SELECT count(*) AS rows, coalesce(max(change), :since) AS reached FROM new \gset

-- Say how far we are.
SELECT singer_state.advance_bookmark(:'state_id', 'package', 'change', :'reached');

COMMIT;

SELECT singer_state.release_lock(:'state_id');

\echo 'Read' :rows 'rows, those after change' :since', and the bookmark is now' :reached'.'
