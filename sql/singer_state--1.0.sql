/* singer_state 1.0: install script */

\echo Use "CREATE EXTENSION singer_state" to load this file. \quit

CREATE SCHEMA singer_state;
COMMENT ON SCHEMA singer_state IS 'State of Singer pipelines: bookmarks, run locks and run history';
GRANT USAGE ON SCHEMA singer_state TO PUBLIC;

-- ---------------------------------------------------------------------------
-- Tables and their triggers
-- ---------------------------------------------------------------------------

-- The primary key and no other index, and room on each page: updates stay HOT.
CREATE TABLE singer_state.state (
	namespace text COLLATE pg_catalog."C" NOT NULL,
	state_id text COLLATE pg_catalog."C" NOT NULL,
	partial_state jsonb,
	completed_state jsonb,
	version bigint NOT NULL DEFAULT 1,
	updated_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (namespace, state_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE singer_state.state IS
'The states, one row each. This is storage: read the view "states", write through the functions. A direct INSERT, UPDATE or DELETE obeys the same rules for versions, history and checks, but asks no run lock and no lease.';
COMMENT ON COLUMN singer_state.state.namespace IS 'Set of state ids that the row belongs to, as in the setting singer_state.namespace; 1 to 255 bytes';
COMMENT ON COLUMN singer_state.state.state_id IS 'Opaque name of one pipeline''s state; 1 to 1024 bytes';
COMMENT ON COLUMN singer_state.state.partial_state IS 'What an unfinished run has reached since; NULL stands for {}';
COMMENT ON COLUMN singer_state.state.completed_state IS 'What the last finished run left; NULL stands for {}';
COMMENT ON COLUMN singer_state.state.version IS 'Grows by one with each change; kept by a trigger';
COMMENT ON COLUMN singer_state.state.updated_at IS 'Time of the last change; kept by a trigger';

CREATE TABLE singer_state.state_history (
	namespace text COLLATE pg_catalog."C" NOT NULL,
	state_id text COLLATE pg_catalog."C" NOT NULL,
	partial_state jsonb,
	completed_state jsonb,
	version bigint NOT NULL,
	updated_at timestamptz NOT NULL,
	operation text NOT NULL,
	changed_by text NOT NULL,
	application_name text NOT NULL,
	changed_at timestamptz NOT NULL,
	transaction_id xid8 NOT NULL,
	PRIMARY KEY (namespace, state_id, version)
);
COMMENT ON TABLE singer_state.state_history IS
'The rows of "state" that writes replaced, at most singer_state.history_limit for each state. Written by a trigger as the owner of the table; read it with history().';
COMMENT ON COLUMN singer_state.state_history.operation IS 'What replaced the row: the function''s name, or UPDATE or DELETE for a direct write';
COMMENT ON COLUMN singer_state.state_history.changed_by IS 'Role that replaced the row (current_user)';
COMMENT ON COLUMN singer_state.state_history.transaction_id IS 'Transaction that replaced the row';

CREATE TABLE singer_state.state_lock (
	namespace text COLLATE pg_catalog."C" NOT NULL,
	state_id text COLLATE pg_catalog."C" NOT NULL,
	lock_id uuid NOT NULL,
	token bigint NOT NULL,
	locked_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	holder_user text NOT NULL,
	application_name text NOT NULL,
	client_addr inet,
	PRIMARY KEY (namespace, state_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE singer_state.state_lock IS
'The leases, one row for each leased state id. Use acquire_lease, renew_lease and release_lease; the view "locks" shows them.';
COMMENT ON COLUMN singer_state.state_lock.lock_id IS 'Names the lease to renew_lease and release_lease';
COMMENT ON COLUMN singer_state.state_lock.token IS 'Fencing token: higher than that of every lease before';

CREATE SEQUENCE singer_state.state_lock_token;
COMMENT ON SEQUENCE singer_state.state_lock_token IS 'Fencing tokens of leases; only ever grows';

-- lz4 writes large documents several times faster than pglz, where the server has it
DO $$
DECLARE
	part record;
BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_settings
			   WHERE name OPERATOR(pg_catalog.=) 'default_toast_compression'
			   AND 'lz4' OPERATOR(pg_catalog.=) ANY (enumvals)) THEN
		FOR part IN SELECT t, c FROM pg_catalog.unnest(ARRAY['state', 'state_history']) t,
					pg_catalog.unnest(ARRAY['partial_state', 'completed_state']) c
		LOOP
			EXECUTE pg_catalog.format('ALTER TABLE singer_state.%I ALTER COLUMN %I SET COMPRESSION lz4', part.t, part.c);
		END LOOP;
	END IF;
END
$$;

SELECT pg_catalog.pg_extension_config_dump('singer_state.state', '');
SELECT pg_catalog.pg_extension_config_dump('singer_state.state_history', '');
SELECT pg_catalog.pg_extension_config_dump('singer_state.state_lock', '');
SELECT pg_catalog.pg_extension_config_dump('singer_state.state_lock_token', '');

CREATE FUNCTION singer_state.state_trigger() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_state_trigger';
COMMENT ON FUNCTION singer_state.state_trigger() IS
'Keeps the invariants of the table "state" for every writer: version and updated_at advance, the replaced row goes to the history, an UPDATE that changes nothing is dropped, documents are checked. Serves that table only.';

CREATE FUNCTION singer_state.state_notify() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_state_notify';
COMMENT ON FUNCTION singer_state.state_notify() IS
'Sends NOTIFY singer_state for each change while singer_state.notify is on; the payload is {"namespace": ..., "state_id": ..., "version": ...}, version null for a deleted state. Serves the table "state" only.';

CREATE TRIGGER state_trigger BEFORE INSERT OR UPDATE OR DELETE ON singer_state.state
FOR EACH ROW EXECUTE FUNCTION singer_state.state_trigger();
COMMENT ON TRIGGER state_trigger ON singer_state.state IS 'Versions, history and checks, for every writer';

-- The function asks the setting.  A WHEN clause would, too, but the server parses
-- and plans it anew in each statement, which costs more than the call.
CREATE TRIGGER state_notify AFTER INSERT OR UPDATE OR DELETE ON singer_state.state
FOR EACH ROW EXECUTE FUNCTION singer_state.state_notify();
COMMENT ON TRIGGER state_notify ON singer_state.state IS 'NOTIFY for each change, while singer_state.notify is on';

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

CREATE FUNCTION singer_state.current_namespace() RETURNS text
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_current_namespace';
COMMENT ON FUNCTION singer_state.current_namespace() IS
'The namespace that the session acts in: the setting singer_state.namespace.';

CREATE FUNCTION singer_state.get(
	state_id text
) RETURNS jsonb
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get';
COMMENT ON FUNCTION singer_state.get(text) IS
'The effective state: the partial part deep-merged over the completed one, what the next run starts from. NULL when there is no such state, {} when it is empty. From Meltano: state get.';

CREATE FUNCTION singer_state.get_state(
	state_id text
) RETURNS SETOF singer_state.state
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
AS $$
	SELECT s.namespace, s.state_id,
		COALESCE(s.partial_state, '{}'), COALESCE(s.completed_state, '{}'),
		s.version, s.updated_at
	FROM singer_state.state s
	WHERE s.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
	AND s.state_id OPERATOR(pg_catalog.=) $1
$$;
COMMENT ON FUNCTION singer_state.get_state(text) IS
'The row of a state, both parts separate, {} for an empty part; no row when there is no such state.';

CREATE FUNCTION singer_state.set(
	state_id text,
	completed_state jsonb,
	partial_state jsonb DEFAULT NULL,
	if_version bigint DEFAULT NULL,
	token bigint DEFAULT NULL,
	validate boolean DEFAULT true,
	allow_empty boolean DEFAULT false
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_set';
COMMENT ON FUNCTION singer_state.set(text, jsonb, jsonb, bigint, bigint, boolean, boolean) IS
'Replaces both parts of a state, or creates it; answers its version. A write that changes nothing writes nothing. An empty state over one that has bookmarks: 22023 unless allow_empty. 22023 for a document that is no state (validate => false takes any object or array), 22004 for NULL, 54000 over singer_state.max_state_size. if_version: only if the state has that version, 0 for "does not exist yet", else 40001. token: that of the caller''s lease; one that is not the newest gets 55000. Waits singer_state.lock_timeout for the run lock or lease of somebody else, then 55P03.';

CREATE FUNCTION singer_state.merge(
	state_id text,
	partial_state jsonb,
	if_version bigint DEFAULT NULL,
	token bigint DEFAULT NULL,
	validate boolean DEFAULT true,
	by_context boolean DEFAULT false
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_merge';
COMMENT ON FUNCTION singer_state.merge(text, jsonb, bigint, bigint, boolean, boolean) IS
'Deep-merges into the partial part, by Meltano''s rule (see deep_merge); the completed part stays; creates the state if absent; answers its version. A validated document takes the form of what is stored, payload or tap state. by_context merges partitions by their context. 22023 for a document that is no state (validate => false takes any object or array), 22004 for NULL, 54000 over singer_state.max_state_size. if_version: only if the state has that version, 0 for "does not exist yet", else 40001. token: that of the caller''s lease; one that is not the newest gets 55000. Waits singer_state.lock_timeout for the run lock or lease of somebody else, then 55P03.';

CREATE FUNCTION singer_state.update(
	state_id text,
	partial_state jsonb,
	completed_state jsonb DEFAULT NULL,
	if_version bigint DEFAULT NULL,
	token bigint DEFAULT NULL,
	validate boolean DEFAULT true,
	allow_empty boolean DEFAULT false
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_update';
COMMENT ON FUNCTION singer_state.update(text, jsonb, jsonb, bigint, bigint, boolean, boolean) IS
'Meltano''s rule: a completed state that is not empty replaces both parts, otherwise the partial one is merged; answers the version. 22023 for a document that is no state (validate => false takes any object or array), 22004 for NULL, 54000 over singer_state.max_state_size. if_version: only if the state has that version, 0 for "does not exist yet", else 40001. token: that of the caller''s lease; one that is not the newest gets 55000. Waits singer_state.lock_timeout for the run lock or lease of somebody else, then 55P03.';

CREATE FUNCTION singer_state.promote(
	state_id text,
	if_version bigint DEFAULT NULL,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_promote';
COMMENT ON FUNCTION singer_state.promote(text, bigint, bigint) IS
'The effective state becomes the completed one, the partial part becomes empty, as after a run that succeeded; answers the version. 02000 when there is no such state. if_version: only if the state has that version, 0 for "does not exist yet", else 40001. token: that of the caller''s lease; one that is not the newest gets 55000. Waits singer_state.lock_timeout for the run lock or lease of somebody else, then 55P03.';

CREATE FUNCTION singer_state.clear(
	state_id text,
	token bigint DEFAULT NULL,
	force boolean DEFAULT false
) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_clear';
COMMENT ON FUNCTION singer_state.clear(text, bigint, boolean) IS
'Deletes a state; true if there was one. Its history stays. force asks neither run lock nor lease, and the history says so. token: that of the caller''s lease; one that is not the newest gets 55000. Waits singer_state.lock_timeout for the run lock or lease of somebody else, then 55P03.';

CREATE FUNCTION singer_state.clear_all(
	pattern text,
	dry_run boolean DEFAULT false
) RETURNS SETOF text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_all';
COMMENT ON FUNCTION singer_state.clear_all(text, boolean) IS
'Deletes the states whose ids match a shell pattern (* ? [abc] [a-z] [!x]), all or nothing; answers their ids. dry_run answers them only. There is no default pattern. 55P03 if one is locked by somebody else.';

CREATE FUNCTION singer_state.copy(
	source text,
	target text,
	overwrite boolean DEFAULT false,
	fold boolean DEFAULT false
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_copy';
COMMENT ON FUNCTION singer_state.copy(text, text, boolean, boolean) IS
'Copies both parts of a state; answers the version of the target. fold makes the effective state the copy''s completed one, as Meltano does. 02000 without a source, 23505 when the target exists unless overwrite. Onto itself nothing happens.';

CREATE FUNCTION singer_state.move(
	source text,
	target text,
	overwrite boolean DEFAULT false,
	fold boolean DEFAULT false
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_move';
COMMENT ON FUNCTION singer_state.move(text, text, boolean, boolean) IS
'Moves a state in one step; arguments, answer and errors as those of copy. The history stays with the old id.';

CREATE FUNCTION singer_state.merge_from(
	source text,
	target text
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_merge_from';
COMMENT ON FUNCTION singer_state.merge_from(text, text) IS
'Merges the effective state of one into the partial part of the other; answers the version of the target. 02000 without a source. From Meltano: state merge.';

CREATE FUNCTION singer_state.list(
	pattern text DEFAULT '*'
) RETURNS SETOF text
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_list';
COMMENT ON FUNCTION singer_state.list(text) IS
'The state ids that match a shell pattern (* ? [abc] [a-z] [!x]; everything else is literal), in byte order.';

CREATE FUNCTION singer_state.export(
	pattern text DEFAULT '*'
) RETURNS jsonb
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_export';
COMMENT ON FUNCTION singer_state.export(text) IS
'The states whose ids match, as {"state id": {"completed": ..., "partial": ...}}, the format of meltano state export; {} when none does.';

CREATE FUNCTION singer_state.import(
	states jsonb,
	on_conflict text DEFAULT 'error'
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_import';
COMMENT ON FUNCTION singer_state.import(jsonb, text) IS
'Writes the states of an export, all or nothing; answers how many were written. A state that exists: 23505 with error, else overwrite or skip. 22023 for what is no export.';

CREATE FUNCTION singer_state.history(
	state_id text
) RETURNS SETOF singer_state.state_history
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10
AS $$
	SELECT h.*
	FROM singer_state.state_history h
	WHERE h.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
	AND h.state_id OPERATOR(pg_catalog.=) $1
	ORDER BY h.version DESC
$$;
COMMENT ON FUNCTION singer_state.history(text) IS
'The replaced versions of a state, newest first: parts, version, and what replaced them, who, when, and in which transaction.';

CREATE FUNCTION singer_state.state_at(
	state_id text,
	version bigint
) RETURNS jsonb
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_state_at';
COMMENT ON FUNCTION singer_state.state_at(text, bigint) IS
'The effective state that a version had, current or replaced. 02000 for a version that is gone; the detail names those that are there.';

CREATE FUNCTION singer_state.restore(
	state_id text,
	version bigint,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_restore';
COMMENT ON FUNCTION singer_state.restore(text, bigint, bigint) IS
'Makes a version of the history the current one, as a new version, whose number it answers; also after the state was cleared. 02000 for a version that is gone; the detail names those that are there.';

CREATE FUNCTION singer_state.diff(
	state_id text,
	from_version bigint,
	to_version bigint
) RETURNS TABLE (stream text, context jsonb, key text, old_value jsonb, new_value jsonb)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
	SELECT d.stream, d.context, d.key, d.old_value, d.new_value
	FROM singer_state.diff_states(singer_state.state_at($1, $2),
								  singer_state.state_at($1, $3)) d
$$;
COMMENT ON FUNCTION singer_state.diff(text, bigint, bigint) IS
'What changed between two versions of a state: one row for each stream, partition and key. 02000 for a version that is gone.';

CREATE FUNCTION singer_state.namespace_states() RETURNS TABLE (namespace text, state_id text, partial_state jsonb, completed_state jsonb, version bigint, updated_at timestamptz, effective_state jsonb)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
	SELECT s.namespace, s.state_id,
		COALESCE(s.partial_state, '{}'), COALESCE(s.completed_state, '{}'),
		s.version, s.updated_at,
		singer_state.deep_merge(COALESCE(s.completed_state, '{}'),
								COALESCE(s.partial_state, '{}'))
	FROM singer_state.state s
	WHERE s.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
$$;
COMMENT ON FUNCTION singer_state.namespace_states() IS
'The rows of the view "states". A function, so that the caller''s privileges and row security hold on every server version.';

CREATE VIEW singer_state.states AS
SELECT s.namespace, s.state_id, s.partial_state, s.completed_state,
	s.version, s.updated_at, s.effective_state
FROM singer_state.namespace_states() s;
COMMENT ON VIEW singer_state.states IS
'The states of the session''s namespace, with {} for an empty part, and the effective state: what the next run starts from.';

-- ---------------------------------------------------------------------------
-- Run locks and leases
-- ---------------------------------------------------------------------------

CREATE FUNCTION singer_state.lock_key(
	namespace text,
	state_id text
) RETURNS bigint
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_lock_key';
COMMENT ON FUNCTION singer_state.lock_key(text, text) IS
'The 64-bit key of a state id''s run lock: FNV-1a over namespace, a zero byte and state id. pg_locks shows it with objsubid 21331, classid the upper and objid the lower half. Never changes.';

CREATE FUNCTION singer_state.acquire_lock(
	state_id text,
	timeout interval DEFAULT NULL
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_acquire_lock';
COMMENT ON FUNCTION singer_state.acquire_lock(text, interval) IS
'Waits for the run lock of a state id, which the session then holds until it releases it or ends; once more counts. timeout: NULL takes singer_state.lock_timeout, 0 does not wait, negative waits for ever. 55P03 when the time is over; the detail names the holder. 42501 for who may not write the state.';

CREATE FUNCTION singer_state.try_acquire_lock(
	state_id text
) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_try_acquire_lock';
COMMENT ON FUNCTION singer_state.try_acquire_lock(text) IS
'The run lock at once: true, or false when somebody else has it or waits for it. 42501 for who may not write the state.';

CREATE FUNCTION singer_state.release_lock(
	state_id text
) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_release_lock';
COMMENT ON FUNCTION singer_state.release_lock(text) IS
'Lets go of the run lock once; true, or false and a WARNING when this session does not hold it.';

CREATE FUNCTION singer_state.release_all_locks() RETURNS integer
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_release_all_locks';
COMMENT ON FUNCTION singer_state.release_all_locks() IS
'Lets go of all run locks of this session, however often each was taken; answers how many there were.';

CREATE FUNCTION singer_state.holds_lock(
	state_id text
) RETURNS boolean
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'singer_state_holds_lock';
COMMENT ON FUNCTION singer_state.holds_lock(text) IS
'Does this session hold the run lock? Read from the server''s lock table.';

CREATE FUNCTION singer_state.acquire_lease(
	state_id text,
	ttl interval DEFAULT NULL,
	timeout interval DEFAULT NULL,
	OUT lock_id uuid,
	OUT token bigint,
	OUT expires_at timestamptz
) RETURNS record
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_acquire_lease';
COMMENT ON FUNCTION singer_state.acquire_lease(text, interval, interval) IS
'Waits for a lease: a run lock in a table, for clients without a session of their own. ttl: NULL takes singer_state.lease_ttl. timeout as in acquire_lock. Pass the token to the writing functions; whoever takes the lease later has a higher one. 55P03 when the time is over; the detail names the holder. 42501 for who may not write the state.';

CREATE FUNCTION singer_state.renew_lease(
	state_id text,
	lock_id uuid,
	ttl interval DEFAULT NULL
) RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_renew_lease';
COMMENT ON FUNCTION singer_state.renew_lease(text, uuid, interval) IS
'Prolongs a lease from now on; answers its new expiry. 55000 if it is no longer the caller''s: it is never created again.';

CREATE FUNCTION singer_state.release_lease(
	state_id text,
	lock_id uuid
) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_release_lease';
COMMENT ON FUNCTION singer_state.release_lease(text, uuid) IS
'Ends a lease; true. 55000 if it is not the caller''s.';

CREATE FUNCTION singer_state.break_lock(
	state_id text
) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_break_lock';
COMMENT ON FUNCTION singer_state.break_lock(text) IS
'For administrators: ends a lease, or says which process holds the run lock and how to end it.';

CREATE FUNCTION singer_state.namespace_locks() RETURNS TABLE (state_id text, kind text, pid integer, "user" text, application_name text, client inet, since timestamptz, expires_at timestamptz, token bigint, waiters bigint)
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
AS $$
	WITH locks AS (
		SELECT l.pid, l.granted, l.mode, l.classid, l.objid, l.objsubid,
			(l.classid::pg_catalog.int8 OPERATOR(pg_catalog.<<) 32)
			OPERATOR(pg_catalog.|) l.objid::pg_catalog.int8 AS key
		FROM pg_catalog.pg_locks l
		WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory'
		AND l.objsubid OPERATOR(pg_catalog.=) ANY ('{21331, 21332, 21333}'::pg_catalog.int2[])
		AND l.database OPERATOR(pg_catalog.=) (
			SELECT d.oid FROM pg_catalog.pg_database d
			WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
	), waiting AS (
		SELECT w.key, pg_catalog.count(DISTINCT w.pid) AS waiters
		FROM locks w
		WHERE w.objsubid OPERATOR(pg_catalog.=) 21332
		OR (w.objsubid OPERATOR(pg_catalog.=) 21331 AND NOT w.granted)
		GROUP BY w.key
	), ids AS (
		SELECT s.state_id FROM singer_state.state s
		WHERE s.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
		UNION
		SELECT s.state_id FROM singer_state.state_lock s
		WHERE s.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
		UNION
		SELECT h.state_id FROM singer_state.state_history h
		WHERE h.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
	), keys AS (
		SELECT i.state_id, singer_state.lock_key(singer_state.current_namespace(), i.state_id) AS key
		FROM ids i
	)
	SELECT k.state_id, 'run lock', l.pid, a.usename::pg_catalog.text,
		a.application_name, a.client_addr,
		(SELECT pg_catalog.to_timestamp(c.objid::pg_catalog.int8)
		 FROM locks c
		 WHERE c.objsubid OPERATOR(pg_catalog.=) 21333
		 AND c.pid OPERATOR(pg_catalog.=) l.pid
		 AND c.classid OPERATOR(pg_catalog.=) l.classid
		 LIMIT 1),
		NULL::pg_catalog.timestamptz, NULL::pg_catalog.int8,
		COALESCE(w.waiters, 0)
	FROM locks l
	LEFT JOIN keys k ON k.key OPERATOR(pg_catalog.=) l.key
	LEFT JOIN waiting w ON w.key OPERATOR(pg_catalog.=) l.key
	LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid
	WHERE l.objsubid OPERATOR(pg_catalog.=) 21331
	AND l.granted AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock'
	UNION ALL
	SELECT s.state_id, 'lease', NULL, s.holder_user, s.application_name,
		s.client_addr, s.locked_at, s.expires_at, s.token,
		COALESCE(w.waiters, 0)
	FROM singer_state.state_lock s
	JOIN keys k ON k.state_id OPERATOR(pg_catalog.=) s.state_id
	LEFT JOIN waiting w ON w.key OPERATOR(pg_catalog.=) k.key
	WHERE s.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
	AND s.expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()
$$;
COMMENT ON FUNCTION singer_state.namespace_locks() IS
'The rows of the view "locks". A function, so that the caller''s privileges hold on every server version.';

CREATE VIEW singer_state.locks AS
SELECT l.state_id, l.kind, l.pid, l."user", l.application_name, l.client,
	l.since, l.expires_at, l.token, l.waiters
FROM singer_state.namespace_locks() l;
COMMENT ON VIEW singer_state.locks IS
'Who holds the run locks of this database and the leases of the session''s namespace, and how many wait. state_id is NULL for a run lock of an id that the namespace has never stored.';

-- ---------------------------------------------------------------------------
-- Bookmarks of stored states
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Messages and runs
-- ---------------------------------------------------------------------------

-- ---------------------------------------------------------------------------
-- Privileges
-- ---------------------------------------------------------------------------

CREATE FUNCTION singer_state.grant_access(
	role regrole,
	level text
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_grant_access';
COMMENT ON FUNCTION singer_state.grant_access(regrole, text) IS
'Grants a role what a reader, a writer or an admin needs; each level has what those before it have, and an admin may grant on. 22023 for another level.';

CREATE FUNCTION singer_state.revoke_access(
	role regrole
) RETURNS void
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_revoke_access';
COMMENT ON FUNCTION singer_state.revoke_access(regrole) IS
'Takes back from a role whatever grant_access gave.';

-- PUBLIC gets the pure functions and nothing else.
DO $$
DECLARE
	f record;
BEGIN
	FOR f IN SELECT p.oid::pg_catalog.regprocedure AS name
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace OPERATOR(pg_catalog.=) 'singer_state'::pg_catalog.regnamespace
		AND p.provolatile OPERATOR(pg_catalog.<>) 'i'
		AND p.proname OPERATOR(pg_catalog.<>) 'get_replication_key_signpost'
	LOOP
		EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f.name);
	END LOOP;
END
$$;

-- A trusted install leaves the objects with the bootstrap superuser; whoever
-- installs the extension is its first administrator.
GRANT USAGE ON SCHEMA singer_state TO @extowner@ WITH GRANT OPTION;
GRANT ALL ON ALL TABLES IN SCHEMA singer_state TO @extowner@ WITH GRANT OPTION;
GRANT ALL ON ALL SEQUENCES IN SCHEMA singer_state TO @extowner@ WITH GRANT OPTION;
GRANT ALL ON ALL FUNCTIONS IN SCHEMA singer_state TO @extowner@ WITH GRANT OPTION;
