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
