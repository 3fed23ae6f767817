-- The states of the benchmark, in our table and in the plain one that a client
-- would create.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE EXTENSION singer_state;

CREATE TABLE plain (
	namespace text COLLATE "C" NOT NULL,
	state_id text COLLATE "C" NOT NULL,
	partial_state jsonb,
	completed_state jsonb,
	version bigint NOT NULL DEFAULT 1,
	updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (namespace, state_id)
) WITH (fillfactor = 70);

-- A tap state of so many streams, all at the given value
CREATE FUNCTION streams(count int, value text) RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('bookmarks', jsonb_object_agg('stream_' || i,
		jsonb_build_object('replication_key', 'updated_at',
			'replication_key_value', value)))
	FROM generate_series(1, count) i
$$;

-- A tap state of one stream with so many partitions
CREATE FUNCTION partitions(count int, value text) RETURNS jsonb
LANGUAGE sql AS $$
	SELECT jsonb_build_object('bookmarks', jsonb_build_object('stream',
		jsonb_build_object('partitions', jsonb_agg(jsonb_build_object(
			'context', jsonb_build_object('organization', md5(i::text)),
			'replication_key', 'updated_at',
			'replication_key_value', CASE i WHEN 1 THEN value
				ELSE '2026-01-01T00:00:00+00:00' END)))))
	FROM generate_series(1, count) i
$$;

-- 1 to 100 have both parts, 101 to 200 the completed one alone
INSERT INTO plain (namespace, state_id, partial_state, completed_state)
SELECT 'meltano', i, CASE WHEN i <= 100 THEN streams(10, '2026-01-02T00:00:00+00:00') END,
	streams(10, '2026-01-01T00:00:00+00:00')
FROM generate_series(1, 200) i;
INSERT INTO singer_state.state (namespace, state_id, partial_state, completed_state)
SELECT namespace, state_id, partial_state, completed_state FROM plain;
VACUUM ANALYZE plain;
VACUUM ANALYZE singer_state.state;
