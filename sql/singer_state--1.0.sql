/* singer_state 1.0: install script */

\echo Use "CREATE EXTENSION singer_state" to load this file. \quit

CREATE SCHEMA singer_state;
COMMENT ON SCHEMA singer_state IS 'State of Singer pipelines: bookmarks, run locks and run history';
GRANT USAGE ON SCHEMA singer_state TO PUBLIC;

-- ---------------------------------------------------------------------------
-- Documents: pure functions on jsonb
-- ---------------------------------------------------------------------------

CREATE FUNCTION singer_state.deep_merge(
	base pg_catalog.jsonb,
	patch pg_catalog.jsonb,
	by_context boolean DEFAULT false
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_deep_merge';
COMMENT ON FUNCTION singer_state.deep_merge(pg_catalog.jsonb, pg_catalog.jsonb, boolean) IS
'base with patch merged into it, by Meltano''s rule: objects merge by key, everything else replaces, arrays as a whole, null too; an empty object clears nothing. Never fails: where Meltano does, when an object with keys meets something else, patch wins. by_context => true merges arrays named "partitions" element by element, matching on "context". NULL if an argument is NULL.';

CREATE FUNCTION singer_state.diff_states(
	a pg_catalog.jsonb,
	b pg_catalog.jsonb,
	OUT stream text,
	OUT context pg_catalog.jsonb,
	OUT key text,
	OUT old_value pg_catalog.jsonb,
	OUT new_value pg_catalog.jsonb
) RETURNS SETOF pg_catalog.record
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_diff_states';
COMMENT ON FUNCTION singer_state.diff_states(pg_catalog.jsonb, pg_catalog.jsonb) IS
'What changed from document a to document b: one row for each changed stream, partition and key, whatever the forms of the two. stream is NULL for what stands beside the bookmarks (currently_syncing), context is NULL outside partitions, key is NULL where a whole stream or partition without keys came, went or changed. A value that is not there is NULL, a document that is NULL has none.';

-- ---------------------------------------------------------------------------
-- The store
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Run locks and leases
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Bookmarks of stored states
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Messages and runs
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Privileges
-- ---------------------------------------------------------------------------
