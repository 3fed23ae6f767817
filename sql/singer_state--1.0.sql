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
COMMENT ON COLUMN singer_state.state_history.namespace IS 'As in "state"';
COMMENT ON COLUMN singer_state.state_history.state_id IS 'As in "state"';
COMMENT ON COLUMN singer_state.state_history.partial_state IS 'The partial part that was replaced';
COMMENT ON COLUMN singer_state.state_history.completed_state IS 'The completed part that was replaced';
COMMENT ON COLUMN singer_state.state_history.version IS 'The version that was replaced';
COMMENT ON COLUMN singer_state.state_history.updated_at IS 'When the replaced version was written';
COMMENT ON COLUMN singer_state.state_history.application_name IS 'The application_name of the session that replaced the row';
COMMENT ON COLUMN singer_state.state_history.changed_at IS 'When the row was replaced';
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
COMMENT ON COLUMN singer_state.state_lock.namespace IS 'As in "state"';
COMMENT ON COLUMN singer_state.state_lock.state_id IS 'The leased state id; the state itself need not exist';
COMMENT ON COLUMN singer_state.state_lock.locked_at IS 'When the lease was taken';
COMMENT ON COLUMN singer_state.state_lock.expires_at IS 'When it ends unless it is renewed';
COMMENT ON COLUMN singer_state.state_lock.holder_user IS 'Role that took it';
COMMENT ON COLUMN singer_state.state_lock.application_name IS 'The application_name of the session that took it';
COMMENT ON COLUMN singer_state.state_lock.client_addr IS 'Address of the client that took it; NULL for a Unix-domain socket';
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

CREATE FUNCTION singer_state.state_after() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_state_after';
COMMENT ON FUNCTION singer_state.state_after() IS
'After each change of the table "state": gives a row its version again if the insertion had to wait for one that is gone, and, while singer_state.notify is on, sends NOTIFY singer_state with {"namespace": ..., "state_id": ..., "version": ...}, version null for a deleted state. Serves that table only.';

CREATE TRIGGER state_trigger BEFORE INSERT OR UPDATE OR DELETE ON singer_state.state
FOR EACH ROW EXECUTE FUNCTION singer_state.state_trigger();
COMMENT ON TRIGGER state_trigger ON singer_state.state IS 'Versions, history and checks, for every writer';

-- The function asks the setting.  A WHEN clause would, too, but the server parses
-- and plans it anew in each statement, which costs more than the call.
CREATE TRIGGER state_after AFTER INSERT OR UPDATE OR DELETE ON singer_state.state
FOR EACH ROW EXECUTE FUNCTION singer_state.state_after();
COMMENT ON TRIGGER state_after ON singer_state.state IS 'Versions of rows whose insertion had to wait; NOTIFY, while singer_state.notify is on';

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

CREATE FUNCTION singer_state.get_bookmark(
	state pg_catalog.jsonb,
	stream text,
	key text,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_bookmark';
COMMENT ON FUNCTION singer_state.get_bookmark(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'What a stream''s bookmark, or that of the partition with a context, has under a key; NULL if it is not there, JSON null if it is null. Never fails on a malformed state. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From singer-python''s get_bookmark.';

CREATE FUNCTION singer_state.set_bookmark(
	state pg_catalog.jsonb,
	stream text,
	key text,
	value pg_catalog.jsonb,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_set_bookmark';
COMMENT ON FUNCTION singer_state.set_bookmark(pg_catalog.jsonb, text, text, pg_catalog.jsonb, pg_catalog.jsonb) IS
'Sets a key of a stream''s bookmark, or of the partition with a context; makes what is missing on the way. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From singer-python''s set_bookmark and the SDK''s write_stream_state.';

CREATE FUNCTION singer_state.clear_bookmark(
	state pg_catalog.jsonb,
	stream text,
	key text,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_bookmark';
COMMENT ON FUNCTION singer_state.clear_bookmark(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'Removes a key of a stream''s bookmark. As in singer-python, the stream is made if it is not there. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL.';

CREATE FUNCTION singer_state.reset_stream(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_reset_stream';
COMMENT ON FUNCTION singer_state.reset_stream(pg_catalog.jsonb, text) IS
'Makes a stream''s bookmark an empty object, and its version too if the state has versions: the next run reads it from the beginning. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.clear_stream(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_stream';
COMMENT ON FUNCTION singer_state.clear_stream(pg_catalog.jsonb, text) IS
'Removes a stream from the bookmarks, key and all. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be.';

CREATE FUNCTION singer_state.rename_stream(
	state pg_catalog.jsonb,
	stream text,
	new_name text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_rename_stream';
COMMENT ON FUNCTION singer_state.rename_stream(pg_catalog.jsonb, text, text) IS
'Moves a stream to a new name, in the bookmarks, the versions and currently_syncing. 22023 if there is no such stream, or one with the new name already. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be.';

CREATE FUNCTION singer_state.get_offset(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_offset';
COMMENT ON FUNCTION singer_state.get_offset(pg_catalog.jsonb, text) IS
'The offset object of a stream: how far a paged read had come. NULL if there is none. From singer-python.';

CREATE FUNCTION singer_state.set_offset(
	state pg_catalog.jsonb,
	stream text,
	offset_key text,
	value pg_catalog.jsonb
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_set_offset';
COMMENT ON FUNCTION singer_state.set_offset(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'Sets a key of a stream''s offset. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.clear_offset(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_offset';
COMMENT ON FUNCTION singer_state.clear_offset(pg_catalog.jsonb, text) IS
'Removes a stream''s offset. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.get_currently_syncing(
	state pg_catalog.jsonb
) RETURNS text
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_currently_syncing';
COMMENT ON FUNCTION singer_state.get_currently_syncing(pg_catalog.jsonb) IS
'The stream that was being read when the state was written; NULL if none. From singer-python.';

CREATE FUNCTION singer_state.set_currently_syncing(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_set_currently_syncing';
COMMENT ON FUNCTION singer_state.set_currently_syncing(pg_catalog.jsonb, text) IS
'Notes the stream that is being read; clear_currently_syncing(state) notes that none is. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.clear_currently_syncing(
	state pg_catalog.jsonb
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_currently_syncing';
COMMENT ON FUNCTION singer_state.clear_currently_syncing(pg_catalog.jsonb) IS
'Sets currently_syncing to null: singer-python''s set_currently_syncing(state, None). Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be.';

CREATE FUNCTION singer_state.get_version(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_version';
COMMENT ON FUNCTION singer_state.get_version(pg_catalog.jsonb, text) IS
'The version of a stream''s table in activate_versions; NULL if there is none. From singer-python.';

CREATE FUNCTION singer_state.set_version(
	state pg_catalog.jsonb,
	stream text,
	version pg_catalog.jsonb
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_set_version';
COMMENT ON FUNCTION singer_state.set_version(pg_catalog.jsonb, text, pg_catalog.jsonb) IS
'Sets the version of a stream''s table in activate_versions. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.clear_version(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_clear_version';
COMMENT ON FUNCTION singer_state.clear_version(pg_catalog.jsonb, text) IS
'Removes the version of a stream''s table from activate_versions. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. From singer-python.';

CREATE FUNCTION singer_state.stream_state(
	state pg_catalog.jsonb,
	stream text,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_stream_state';
COMMENT ON FUNCTION singer_state.stream_state(pg_catalog.jsonb, text, pg_catalog.jsonb) IS
'The whole bookmark of a stream, or of the partition with a context; NULL if it is not there. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK''s get_state_if_exists.';

CREATE FUNCTION singer_state.partitions(
	state pg_catalog.jsonb,
	stream text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_partitions';
COMMENT ON FUNCTION singer_state.partitions(pg_catalog.jsonb, text) IS
'The list of a stream''s partitions; NULL if it has none. From the SDK''s get_state_partitions_list.';

CREATE FUNCTION singer_state.partition_context(
	context pg_catalog.jsonb,
	partitioning_keys text[]
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_partition_context';
COMMENT ON FUNCTION singer_state.partition_context(pg_catalog.jsonb, text[]) IS
'The part of a context that has the partitioning keys: what tells partitions apart if a stream declares state_partitioning_keys. The context itself if the keys are NULL; NULL, the stream itself, if none is left. From the SDK''s get_state_partition_context.';

CREATE FUNCTION singer_state.write_starting_replication_value(
	state pg_catalog.jsonb,
	stream text,
	replication_method text,
	replication_key text DEFAULT NULL,
	start_date text DEFAULT NULL,
	is_timestamp boolean DEFAULT false,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_write_starting_replication_value';
COMMENT ON FUNCTION singer_state.write_starting_replication_value(pg_catalog.jsonb, text, text, text, text, boolean, pg_catalog.jsonb) IS
'Begins a sync: writes the value that it starts from, which is the bookmark''s if it is of the same replication key, else start_date; with is_timestamp the later of the two as instants, as it was written. A value that Python takes for false (0, empty, false) does not count, as in the SDK. FULL_TABLE writes nothing; a method other than INCREMENTAL, FULL_TABLE and LOG_BASED: 22023; not a timestamp: 22023, or 42804 if it is no string. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL.';

CREATE FUNCTION singer_state.get_starting_replication_value(
	state pg_catalog.jsonb,
	stream text,
	replication_method text DEFAULT 'INCREMENTAL',
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_starting_replication_value';
COMMENT ON FUNCTION singer_state.get_starting_replication_value(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'The value that the current sync started from; NULL if there is none or the method is FULL_TABLE. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK.';

CREATE FUNCTION singer_state.get_starting_timestamp(
	state pg_catalog.jsonb,
	stream text,
	replication_method text DEFAULT 'INCREMENTAL',
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS timestamptz
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_starting_timestamp';
COMMENT ON FUNCTION singer_state.get_starting_timestamp(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'The value that the current sync started from as an instant; a timestamp without zone is UTC, whatever TimeZone is. NULL if there is none; 22023 if it is no ISO 8601 timestamp, 42804 if it is no string. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK.';

CREATE FUNCTION singer_state.write_replication_key_signpost(
	state pg_catalog.jsonb,
	stream text,
	value pg_catalog.jsonb,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_write_replication_key_signpost';
COMMENT ON FUNCTION singer_state.write_replication_key_signpost(pg_catalog.jsonb, text, pg_catalog.jsonb, pg_catalog.jsonb) IS
'Writes the greatest value that the current sync can vouch for: finalizing caps the bookmark there. A value that Python takes for false changes nothing, as in the SDK. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL.';

CREATE FUNCTION singer_state.get_replication_key_signpost(
	is_timestamp boolean DEFAULT true
) RETURNS pg_catalog.jsonb
LANGUAGE c STABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_get_replication_key_signpost';
COMMENT ON FUNCTION singer_state.get_replication_key_signpost(boolean) IS
'The signpost of a sync that begins now: the start of the transaction, in UTC, as the SDK prints it. NULL if the replication key is no timestamp.';

CREATE FUNCTION singer_state.increment_state(
	state pg_catalog.jsonb,
	stream text,
	latest_record pg_catalog.jsonb,
	replication_key text,
	is_sorted boolean DEFAULT false,
	check_sorted boolean DEFAULT true,
	context pg_catalog.jsonb DEFAULT NULL,
	partitioning_keys text[] DEFAULT NULL,
	is_timestamp boolean DEFAULT false
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_increment_state';
COMMENT ON FUNCTION singer_state.increment_state(pg_catalog.jsonb, text, pg_catalog.jsonb, text, boolean, boolean, pg_catalog.jsonb, text[], boolean) IS
'Moves a bookmark on to a record''s replication value: the bookmark itself in a sorted stream, else its progress markers, which count once the sync is finalized. A smaller value is passed over, or in a sorted stream is SS001 (both values in the message); check_sorted => false takes it. partitioning_keys keeps only those keys of the context, and such a stream is never sorted. Null changes no value. Numbers compare as numbers, strings by code point, with is_timestamp as instants; kinds that do not compare: 42804. A record without the key: 22023. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK.';

CREATE FUNCTION singer_state.finalize_state_progress_markers(
	state pg_catalog.jsonb,
	stream text DEFAULT NULL,
	context pg_catalog.jsonb DEFAULT NULL,
	is_timestamp boolean DEFAULT false
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_finalize_state_progress_markers';
COMMENT ON FUNCTION singer_state.finalize_state_progress_markers(pg_catalog.jsonb, text, pg_catalog.jsonb, boolean) IS
'Ends a sync: promotes the progress markers of a bookmark to be the bookmark, not beyond its signpost, and removes markers, signpost and starting value. Without a stream, for all streams and partitions; with a stream and no context, for the stream itself and not its partitions, as in the SDK. Marker and signpost that do not compare: 42804. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL.';

CREATE FUNCTION singer_state.reset_state_progress_markers(
	state pg_catalog.jsonb,
	stream text DEFAULT NULL,
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_reset_state_progress_markers';
COMMENT ON FUNCTION singer_state.reset_state_progress_markers(pg_catalog.jsonb, text, pg_catalog.jsonb) IS
'Removes the progress markers of a bookmark; without a stream, those of all streams and partitions. Answers a changed copy of the state, in the form it has. 22004 for a NULL argument without a default, 22023 if the state is no JSON object or has something else where an object has to be. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK.';

CREATE FUNCTION singer_state.is_state_non_resumable(
	state pg_catalog.jsonb,
	stream text,
	replication_method text DEFAULT 'INCREMENTAL',
	context pg_catalog.jsonb DEFAULT NULL
) RETURNS boolean
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_is_state_non_resumable';
COMMENT ON FUNCTION singer_state.is_state_non_resumable(pg_catalog.jsonb, text, text, pg_catalog.jsonb) IS
'Whether a run that stopped here has to begin the stream anew: so it is if the bookmark has progress markers, and always for FULL_TABLE. A method other than INCREMENTAL, FULL_TABLE and LOG_BASED: 22023. A context matches by equality as jsonb (1 and "1" differ); NULL, null and {} mean the stream itself; two partitions with one context: 22023, the context in the DETAIL. From the SDK.';

CREATE FUNCTION singer_state.merge_transition(
	base pg_catalog.jsonb,
	patch pg_catalog.jsonb
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_deep_merge';
COMMENT ON FUNCTION singer_state.merge_transition(pg_catalog.jsonb, pg_catalog.jsonb) IS
'Step of deep_merge_agg: base with patch merged into it.';

CREATE AGGREGATE singer_state.deep_merge_agg(state pg_catalog.jsonb) (
	SFUNC = singer_state.merge_transition,
	STYPE = pg_catalog.jsonb,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE singer_state.deep_merge_agg(pg_catalog.jsonb) IS
'All states deep-merged, each over those before it: give an ORDER BY. NULLs are passed over; NULL if there is nothing else.';

CREATE FUNCTION singer_state.increment_transition(
	value pg_catalog.jsonb,
	record pg_catalog.jsonb,
	replication_key text
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_increment_agg_transition';
COMMENT ON FUNCTION singer_state.increment_transition(pg_catalog.jsonb, pg_catalog.jsonb, text) IS
'Step of increment_agg: the greater of value and what record has under replication_key.';

CREATE FUNCTION singer_state.increment_combine(
	a pg_catalog.jsonb,
	b pg_catalog.jsonb
) RETURNS pg_catalog.jsonb
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_increment_agg_combine';
COMMENT ON FUNCTION singer_state.increment_combine(pg_catalog.jsonb, pg_catalog.jsonb) IS
'Step of increment_agg in parallel plans: the greater of two replication values. Kinds that do not compare: 42804.';

CREATE AGGREGATE singer_state.increment_agg(record pg_catalog.jsonb, replication_key text) (
	SFUNC = singer_state.increment_transition,
	STYPE = pg_catalog.jsonb,
	COMBINEFUNC = singer_state.increment_combine,
	PARALLEL = SAFE
);
COMMENT ON AGGREGATE singer_state.increment_agg(pg_catalog.jsonb, text) IS
'The greatest replication value of all records, by the rules of increment_state: one pass over a batch moves a bookmark. Nulls are passed over; a record without the key: 22023, kinds that do not compare: 42804.';

CREATE FUNCTION singer_state.bookmarks(
	state pg_catalog.jsonb,
	OUT stream text,
	OUT context pg_catalog.jsonb,
	OUT replication_key text,
	OUT replication_key_value pg_catalog.jsonb,
	OUT starting_replication_value pg_catalog.jsonb,
	OUT signpost pg_catalog.jsonb,
	OUT progress_markers pg_catalog.jsonb,
	OUT resumable boolean,
	OUT bookmark pg_catalog.jsonb
) RETURNS SETOF pg_catalog.record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_bookmarks';
COMMENT ON FUNCTION singer_state.bookmarks(pg_catalog.jsonb) IS
'One row per stream and partition of a state, in whatever form. context is NULL in the row of a stream itself, which is left out if the stream has nothing but partitions. resumable is false while there are progress markers: the run that wrote them was interrupted. bookmark is all there is, without the list of partitions. Never fails: a bare value is a bookmark without keys.';

CREATE FUNCTION singer_state.check_state(
	state pg_catalog.jsonb,
	OUT stream text,
	OUT context pg_catalog.jsonb,
	OUT problem text,
	OUT detail text
) RETURNS SETOF pg_catalog.record
LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_check_state';
COMMENT ON FUNCTION singer_state.check_state(pg_catalog.jsonb) IS
'What is wrong with a state before a tap meets it, one row a problem: not_object, singer_state_not_object, double_wrapping, state_message, bookmarks_not_object; of a stream null_stream, stream_not_object, empty_stream, partitions_are_map, partitions_not_array, partition_not_object, partition_without_context, duplicate_partition, progress_markers_not_object. No row: nothing was found.';

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

CREATE FUNCTION singer_state.namespace_locks() RETURNS TABLE (state_id text, kind text, pid integer, holder_user text, application_name text, client inet, since timestamptz, expires_at timestamptz, token bigint, waiters bigint)
LANGUAGE sql STABLE PARALLEL RESTRICTED
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
SELECT l.state_id, l.kind, l.pid, l.holder_user, l.application_name, l.client,
	l.since, l.expires_at, l.token, l.waiters
FROM singer_state.namespace_locks() l;
COMMENT ON VIEW singer_state.locks IS
'Who holds the run locks of this database and the leases of the session''s namespace, and how many wait. state_id is NULL for a run lock of an id that the namespace has never stored.';

-- ---------------------------------------------------------------------------
-- Bookmarks of stored states
-- ---------------------------------------------------------------------------

CREATE FUNCTION singer_state.fetch_bookmark(
	state_id text,
	stream text,
	key text,
	context jsonb DEFAULT NULL
) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
	SELECT singer_state.get_bookmark(singer_state.get($1), $2, $3, $4)
$$;
COMMENT ON FUNCTION singer_state.fetch_bookmark(text, text, text, jsonb) IS
'get_bookmark on the effective state of a stored one; NULL when there is no such state, stream, partition or key.';

CREATE FUNCTION singer_state.update_bookmark(
	state_id text,
	stream text,
	key text,
	value jsonb,
	context jsonb DEFAULT NULL,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_update_bookmark';
COMMENT ON FUNCTION singer_state.update_bookmark(text, text, text, jsonb, jsonb, bigint) IS
'set_bookmark on a stored state, in one atomic write to its partial part; creates the state if absent; answers the version. Errors as those of set_bookmark (22004, 22023) and merge (55000, 55P03, 54000).';

CREATE FUNCTION singer_state.advance_bookmark(
	state_id text,
	stream text,
	replication_key text,
	value jsonb,
	context jsonb DEFAULT NULL,
	is_sorted boolean DEFAULT true,
	check_sorted boolean DEFAULT false,
	is_timestamp boolean DEFAULT false,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_advance_bookmark';
COMMENT ON FUNCTION singer_state.advance_bookmark(text, text, text, jsonb, jsonb, boolean, boolean, boolean, bigint) IS
'increment_state on a stored state, in one atomic write to its partial part; creates the state if absent; answers the version. A smaller value than the bookmark''s changes nothing, so that the greater stays whoever comes last; check_sorted => true makes it an error (SS001). is_sorted => false puts the value into progress markers, for finalize_bookmarks. A JSON null value moves nothing, though the bookmark is made if it is not there, as by increment_state. Values that do not compare: 42804.';

CREATE FUNCTION singer_state.finalize_bookmarks(
	state_id text,
	stream text DEFAULT NULL,
	context jsonb DEFAULT NULL,
	is_timestamp boolean DEFAULT false,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_finalize_bookmarks';
COMMENT ON FUNCTION singer_state.finalize_bookmarks(text, text, jsonb, boolean, bigint) IS
'finalize_state_progress_markers on a stored state, of all streams if stream is NULL; markers are taken out of both parts; answers the version. 02000 when there is no such state.';

CREATE FUNCTION singer_state.remove_stream(
	state_id text,
	stream text,
	token bigint DEFAULT NULL
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_remove_stream';
COMMENT ON FUNCTION singer_state.remove_stream(text, text, bigint) IS
'Takes a stream out of both parts of a stored state, so that its next run starts from the beginning; answers the version, the same if there was no such stream. 02000 when there is no such state.';

CREATE FUNCTION singer_state.bookmark_part(
	partial_state pg_catalog.jsonb,
	stream text,
	context pg_catalog.jsonb
) RETURNS text
LANGUAGE c IMMUTABLE PARALLEL SAFE
AS 'MODULE_PATHNAME', 'singer_state_bookmark_part';
COMMENT ON FUNCTION singer_state.bookmark_part(pg_catalog.jsonb, text, pg_catalog.jsonb) IS
'Which part of a state a row of the view "bookmarks" comes from: partial if the partial part has the stream, or with a context its partitions, which it has all or none of; else completed. 22004 for a NULL state or stream.';

CREATE FUNCTION singer_state.namespace_bookmarks() RETURNS TABLE (
	state_id text,
	stream text,
	context jsonb,
	replication_key text,
	replication_key_value jsonb,
	starting_replication_value jsonb,
	signpost jsonb,
	progress_markers jsonb,
	resumable boolean,
	part text,
	updated_at timestamptz,
	bookmark jsonb
)
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
	SELECT s.state_id, b.stream, b.context, b.replication_key,
		b.replication_key_value, b.starting_replication_value, b.signpost,
		b.progress_markers, b.resumable,
		singer_state.bookmark_part(s.partial_state, b.stream, b.context),
		s.updated_at, b.bookmark
	FROM singer_state.namespace_states() s
	CROSS JOIN LATERAL singer_state.bookmarks(s.effective_state) b
$$;
COMMENT ON FUNCTION singer_state.namespace_bookmarks() IS
'The rows of the view "bookmarks". A function, so that the caller''s privileges and row security hold on every server version.';

CREATE VIEW singer_state.bookmarks AS
SELECT b.state_id, b.stream, b.context, b.replication_key,
	b.replication_key_value, b.starting_replication_value, b.signpost,
	b.progress_markers, b.resumable, b.part, b.updated_at, b.bookmark
FROM singer_state.namespace_bookmarks() b;
COMMENT ON VIEW singer_state.bookmarks IS
'One row per stream and partition over all states of the session''s namespace: what bookmarks(effective_state) answers, which part it comes from (see bookmark_part), and when the state was last written.';

-- ---------------------------------------------------------------------------
-- Messages and runs
-- ---------------------------------------------------------------------------

CREATE TABLE singer_state.run (
	run_id uuid PRIMARY KEY DEFAULT pg_catalog.gen_random_uuid(),
	namespace text COLLATE pg_catalog."C" NOT NULL,
	state_id text COLLATE pg_catalog."C" NOT NULL,
	strategy text NOT NULL
		CHECK (strategy OPERATOR(pg_catalog.=) ANY (ARRAY['overwrite', 'merge'])),
	status text NOT NULL DEFAULT 'running'
		CHECK (status OPERATOR(pg_catalog.=) ANY (ARRAY['running', 'success', 'failed'])),
	locked boolean NOT NULL,
	token bigint,
	started_by text NOT NULL,
	pid integer NOT NULL,
	backend_start timestamptz NOT NULL,
	application_name text,
	client_addr inet,
	started_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	heartbeat_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	finished_at timestamptz,
	messages_processed bigint NOT NULL DEFAULT 0,
	states_processed bigint NOT NULL DEFAULT 0,
	lines_skipped bigint NOT NULL DEFAULT 0,
	message_counts jsonb NOT NULL DEFAULT '{}',
	stream_counts jsonb NOT NULL DEFAULT '{}',
	reached_state boolean NOT NULL DEFAULT false,
	final_state jsonb,
	resumable boolean,
	error text
) WITH (fillfactor = 70);
CREATE INDEX run_running ON singer_state.run (namespace, state_id)
	WHERE status OPERATOR(pg_catalog.=) 'running';
SELECT pg_catalog.pg_extension_config_dump('singer_state.run', '');
COMMENT ON TABLE singer_state.run IS
'One row a pipeline run, written by begin_run, finish_run and what lies between. People read the view runs. Rows stay until an administrator deletes them: DELETE FROM singer_state.run WHERE finished_at < now() - interval ''90 days''.';
COMMENT ON COLUMN singer_state.run.run_id IS 'Names the run; what begin_run answers';
COMMENT ON COLUMN singer_state.run.namespace IS 'Namespace of the state id';
COMMENT ON COLUMN singer_state.run.state_id IS 'The pipeline''s state that the run reads and writes';
COMMENT ON COLUMN singer_state.run.strategy IS 'What a state does to the one that the run has reached before: overwrite or merge';
COMMENT ON COLUMN singer_state.run.status IS 'running, success or failed; the view runs tells which of the running ones are stale';
COMMENT ON COLUMN singer_state.run.locked IS 'Whether the run holds the run lock of its state id';
COMMENT ON COLUMN singer_state.run.token IS 'Token of the lease under which the run writes; NULL if it has none';
COMMENT ON COLUMN singer_state.run.started_by IS 'Role that has begun the run, and may write to it';
COMMENT ON COLUMN singer_state.run.pid IS 'Process of the session that has begun the run';
COMMENT ON COLUMN singer_state.run.backend_start IS 'When that session began, which tells its process from a later one with its number';
COMMENT ON COLUMN singer_state.run.application_name IS 'application_name of that session';
COMMENT ON COLUMN singer_state.run.client_addr IS 'Address of its client; NULL for a local one';
COMMENT ON COLUMN singer_state.run.started_at IS 'When the run was begun';
COMMENT ON COLUMN singer_state.run.heartbeat_at IS 'When the run was last heard of: a heartbeat, or a transaction with messages';
COMMENT ON COLUMN singer_state.run.finished_at IS 'When it was finished, or found dead; NULL while it goes on';
COMMENT ON COLUMN singer_state.run.messages_processed IS 'Messages of every type, states too';
COMMENT ON COLUMN singer_state.run.states_processed IS 'STATE messages and bare states';
COMMENT ON COLUMN singer_state.run.lines_skipped IS 'Lines that were no messages, with on_error => ''skip''';
COMMENT ON COLUMN singer_state.run.message_counts IS 'Messages by type, {"RECORD": 10, "STATE": 1}';
COMMENT ON COLUMN singer_state.run.stream_counts IS 'Messages by stream and type, {"users": {"RECORD": 10}}; version is that of the stream''s last ACTIVATE_VERSION';
COMMENT ON COLUMN singer_state.run.reached_state IS 'Whether the run has written a state, which then is the partial part';
COMMENT ON COLUMN singer_state.run.final_state IS 'The effective state when the run was finished';
COMMENT ON COLUMN singer_state.run.resumable IS 'Whether a run can resume from each bookmark of the final state: none has progress markers; NULL if there is no state';
COMMENT ON COLUMN singer_state.run.error IS 'Why the run has failed';

CREATE FUNCTION singer_state.begin_run(
	state_id text,
	strategy text DEFAULT 'overwrite',
	lock boolean DEFAULT true,
	token bigint DEFAULT NULL
) RETURNS uuid
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_begin_run';
COMMENT ON FUNCTION singer_state.begin_run(text, text, boolean, bigint) IS
'Starts a run of a state id, makes it the session''s current run and answers its id. Takes the run lock, for which it waits singer_state.lock_timeout, and keeps it until finish_run or the end of the session; 55P03 names who has it. lock => false takes none: for sessions that are not the client''s own (poolers), with the token of a lease, or none. Strategies are Meltano''s: with overwrite each state replaces what the run has reached, and at the end what was completed; with merge it is deep-merged. A run begun in a transaction that is rolled back never was. With the lock, runs of the state id that never ended are marked failed, since their sessions are gone.';

CREATE FUNCTION singer_state.current_run() RETURNS uuid
LANGUAGE c STABLE PARALLEL RESTRICTED
AS 'MODULE_PATHNAME', 'singer_state_current_run';
COMMENT ON FUNCTION singer_state.current_run() IS
'The run that this session has begun last and not finished, which COPY to the view messages adds to; NULL if there is none.';

CREATE FUNCTION singer_state.heartbeat(run_id uuid)
RETURNS timestamptz
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_heartbeat';
COMMENT ON FUNCTION singer_state.heartbeat(uuid) IS
'Says that a run is alive, and answers when it did. Messages say so too, when their transaction commits. A run whose session is gone and that nobody has heard of for 5 minutes shows as stale. 02000: no such run; 55000: it is finished; 42501: it is another role''s.';

CREATE FUNCTION singer_state.finish_run(
	INOUT run_id uuid,
	success boolean DEFAULT true,
	INOUT error text DEFAULT NULL,
	OUT state_id text,
	OUT status text,
	OUT messages_processed bigint,
	OUT states_processed bigint,
	OUT lines_skipped bigint,
	OUT message_counts jsonb,
	OUT stream_counts jsonb,
	OUT streams text[],
	OUT duration interval,
	OUT final_state jsonb,
	OUT resumable boolean
) RETURNS record
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_finish_run';
COMMENT ON FUNCTION singer_state.finish_run(uuid, boolean, text) IS
'Ends a run and answers its summary. success => true completes the state: with strategy overwrite the state that the run has reached replaces the completed one, with merge (or if it has reached none) the partial part is merged into it. success => false leaves what it has reached as partial state, from which the next run resumes; error says why. final_state is the effective state now. resumable is the Singer SDK''s rule for an aborted sync: paused when true, failed when false. The run lock is released when the transaction commits. 02000: no such run; 55000: finished already; 42501: another role''s.';

CREATE FUNCTION singer_state.process_message(
	run_id uuid,
	message text
) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_process_message';
COMMENT ON FUNCTION singer_state.process_message(uuid, text) IS
'Takes one message of a tap, or a bare state as targets print it: counts it, writes the state if it is one, and answers its type (NULL for an empty line). 22023: it is no Singer message.';

CREATE FUNCTION singer_state.process_messages(
	run_id uuid,
	messages text,
	on_error text DEFAULT 'stop'
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_process_messages';
COMMENT ON FUNCTION singer_state.process_messages(uuid, text, text) IS
'Takes messages of a tap or bare states, one a line: SCHEMA, RECORD, STATE, ACTIVATE_VERSION and BATCH are counted, by type and by stream, and the state reached last is written. Records are checked to be JSON and not looked into, so \u0000, NaN or a lone surrogate in one is no error. A state without bookmarks is counted and changes nothing. Answers how many messages there were. A line that is no message is an error (22023) that names it; on_error => ''skip'' counts it as skipped. A state that jsonb cannot hold is an error always.';

CREATE FUNCTION singer_state.messages_insert() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_messages_insert';
COMMENT ON FUNCTION singer_state.messages_insert() IS
'Row trigger of the view messages: counts a line, as process_message does.';

CREATE FUNCTION singer_state.messages_end() RETURNS trigger
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_messages_end';
COMMENT ON FUNCTION singer_state.messages_end() IS
'Statement trigger of the view messages: writes the state that its lines have brought.';

CREATE VIEW singer_state.messages AS
	SELECT NULL::text AS message WHERE false;
COMMENT ON VIEW singer_state.messages IS
'Where the output of a tap or a target is copied to: each line is a message of the session''s current run (begin_run). COPY singer_state.messages FROM STDIN WITH (FORMAT csv, DELIMITER E''\x02'', QUOTE E''\x01'') leaves JSON as it is, backslashes and quotes too, since the two control characters cannot stand in it. One COPY is one statement: it is taken whole or not at all. Reading the view answers nothing.';

CREATE TRIGGER messages_insert INSTEAD OF INSERT ON singer_state.messages
	FOR EACH ROW EXECUTE FUNCTION singer_state.messages_insert();
COMMENT ON TRIGGER messages_insert ON singer_state.messages IS
'Counts each line that is copied to the view.';
CREATE TRIGGER messages_end AFTER INSERT ON singer_state.messages
	FOR EACH STATEMENT EXECUTE FUNCTION singer_state.messages_end();
COMMENT ON TRIGGER messages_end ON singer_state.messages IS
'Writes the state reached when the statement ends.';

CREATE FUNCTION singer_state.namespace_runs() RETURNS TABLE (run_id uuid, state_id text, status text, strategy text, started_by text, started_at timestamptz, heartbeat_at timestamptz, finished_at timestamptz, duration interval, messages_processed bigint, states_processed bigint, lines_skipped bigint, message_counts jsonb, stream_counts jsonb, streams text[], last_state jsonb, resumable boolean, error text, locked boolean, pid integer, application_name text, client_addr inet)
LANGUAGE sql STABLE PARALLEL RESTRICTED
AS $$
	SELECT r.run_id, r.state_id,
		CASE WHEN r.status OPERATOR(pg_catalog.=) 'running'
			AND r.heartbeat_at OPERATOR(pg_catalog.<)
				(pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) '5 minutes'::pg_catalog.interval)
			AND NOT EXISTS (
				SELECT FROM pg_catalog.pg_stat_get_activity(r.pid) a
				WHERE a.pid OPERATOR(pg_catalog.=) r.pid
				AND COALESCE(a.backend_start OPERATOR(pg_catalog.=) r.backend_start, true))
			THEN 'stale' ELSE r.status END,
		r.strategy, r.started_by, r.started_at, r.heartbeat_at, r.finished_at,
		COALESCE(r.finished_at, pg_catalog.statement_timestamp())
			OPERATOR(pg_catalog.-) r.started_at,
		r.messages_processed, r.states_processed, r.lines_skipped,
		r.message_counts, r.stream_counts,
		ARRAY(SELECT s.k FROM pg_catalog.jsonb_object_keys(r.stream_counts) s(k)
			ORDER BY s.k COLLATE pg_catalog."C"),
		CASE WHEN r.status OPERATOR(pg_catalog.<>) 'running' THEN r.final_state
			WHEN r.reached_state THEN p.partial_state END,
		r.resumable, r.error, r.locked, r.pid, r.application_name, r.client_addr
	FROM singer_state.run r
	LEFT JOIN singer_state.state p
		ON p.namespace OPERATOR(pg_catalog.=) r.namespace
		AND p.state_id OPERATOR(pg_catalog.=) r.state_id
		AND r.status OPERATOR(pg_catalog.=) 'running'
	WHERE r.namespace OPERATOR(pg_catalog.=) singer_state.current_namespace()
$$;
COMMENT ON FUNCTION singer_state.namespace_runs() IS
'The rows of the view "runs". A function, so that the caller''s privileges and row security hold on every server version.';

CREATE VIEW singer_state.runs AS
SELECT r.run_id, r.state_id, r.status, r.strategy, r.started_by,
	r.started_at, r.heartbeat_at, r.finished_at, r.duration,
	r.messages_processed, r.states_processed, r.lines_skipped,
	r.message_counts, r.stream_counts, r.streams, r.last_state, r.resumable,
	r.error, r.locked, r.pid, r.application_name, r.client_addr
FROM singer_state.namespace_runs() r;
COMMENT ON VIEW singer_state.runs IS
'The runs of the session''s namespace. status is running, success, failed, or stale: never finished, its session gone, and not heard of for 5 minutes. Counts are those of committed transactions. last_state is the state reached so far, or, when the run is finished, the effective state at its end.';

CREATE FUNCTION singer_state.save_state(
	state_id text,
	path text
) RETURNS bigint
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_save_state';
COMMENT ON FUNCTION singer_state.save_state(text, text) IS
'Writes the effective state of a state id to a file of the server, as the tap state that taps read (--state); answers how many bytes. The file is replaced as a whole or not at all: whoever reads it sees the old one or the new one, also after a crash. Missing directories are created. Only for members of pg_write_server_files (42501). 02000: no such state. A file is no part of the transaction: a rollback does not bring the old one back.';

CREATE FUNCTION singer_state.load_state(
	state_id text,
	path text
) RETURNS boolean
LANGUAGE c VOLATILE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'singer_state_load_state';
COMMENT ON FUNCTION singer_state.load_state(text, text) IS
'Replaces a state by the one in a file of the server, in UTF-8, as its completed part. Answers false, and changes nothing, if there is no such file. Only for members of pg_read_server_files (42501). A file that holds no valid state is an error, as it is for set.';

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
-- installs the extension is its first administrator.  Restoring a dump takes
-- INSERT on every table that is dumped.
SELECT singer_state.grant_access('@extowner@', 'admin');
GRANT INSERT ON singer_state.state_history TO @extowner@;
