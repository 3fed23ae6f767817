-- Document functions: what the recorded vectors do not cover.
SET search_path = singer_state;

-- The three forms: readers see through them, writers keep them.
SELECT form, get_bookmark(s, 'users', 'id') AS id,
	set_bookmark(s, 'users', 'id', '4') AS changed
FROM (VALUES
	('payload', jsonb '{"singer_state": {"bookmarks": {"users": {"id": 3}}}, "x": 1}'),
	('tap state', '{"bookmarks": {"users": {"id": 3}}}'),
	('flat', '{"users": {"id": 3}}'),
	('flat in payload', '{"singer_state": {"users": {"id": 3}}}'),
	('empty', '{}'),
	('null payload', '{"singer_state": null}'),
	('null bookmarks', '{"bookmarks": null}')) AS v (form, s);

-- Names are single keys.
SELECT name, get_bookmark(set_bookmark('{"bookmarks": {}}', name, name, '1'), name, name)
FROM unnest(ARRAY['a.b', '', 'bookmarks', 'x"y', 'a/b', 'singer_state']) AS name;

-- Values keep every digit; null is not absent; 0, false and "" are values.
SELECT v, get_bookmark(set_bookmark('{}', 's', 'k', v), 's', 'k') AS back
FROM unnest(ARRAY['9007199254740993', '1.50', '1e30', '0', 'false', '""', 'null']::jsonb[]) AS v;
SELECT get_bookmark('{"bookmarks": {"s": {"k": null}}}', 's', 'k') AS json_null,
	get_bookmark('{"bookmarks": {"s": {}}}', 's', 'k') AS absent;

-- Readers work on anything.
SELECT s, get_bookmark(s, 'a', 'k') AS bookmark, stream_state(s, 'a') AS state,
	partitions(s, 'a') AS parts, get_version(s, 'a') AS version,
	get_currently_syncing(s) AS syncing, is_state_non_resumable(s, 'a') AS lost
FROM unnest(ARRAY['null', '1', '[]', '{}', '{"bookmarks": []}', '{"bookmarks": {"a": null}}',
	'{"bookmarks": {"a": "2021-01-01"}}', '{"bookmarks": {"a": {"partitions": {}}}}',
	'{"activate_versions": 1, "currently_syncing": {}}', '{"singer_state": 1}']::jsonb[]) AS s;
SELECT get_bookmark(NULL, 'a', 'k'), get_bookmark('{}', NULL, 'k'), get_bookmark('{}', 'a', NULL);

-- Contexts: order of keys is nothing, 1 and 1.0 are equal, 1 and "1" are not.
\set parts '{"bookmarks": {"a": {"partitions": [{"context": {"x": 1, "yy": 2}, "v": 1}, {"context": {"x": "1"}, "v": 2}]}}}'
SELECT stream_state(:'parts', 'a', '{"yy": 2, "x": 1.0}'), stream_state(:'parts', 'a', '{"x": "1"}'),
	stream_state(:'parts', 'a', '{"x": 1}') AS not_there;
SELECT set_bookmark(:'parts', 'a', 'v', '9', '{"yy": 2.0, "x": 1}');
SELECT set_bookmark(:'parts', 'a', 'v', '9', '{"new": true}');
SELECT clear_bookmark(:'parts', 'a', 'v', '{"x": "1"}');
SELECT partition_context('{"org": "a", "repo": "b"}', '{repo,other}'),
	partition_context('{"org": "a"}', NULL), partition_context('{"org": "a"}', '{}') AS none;
\set twice '{"bookmarks": {"a": {"partitions": [{"context": {"x": 1}}, {"context": {"x": 1.0}}]}}}'
SELECT get_bookmark(:'twice', 'a', 'k', '{"x": 1}');
SELECT set_bookmark(:'twice', 'a', 'k', '1', '{"x": 1}');

-- What writers refuse.
\set VERBOSITY sqlstate
SELECT set_bookmark(NULL, 'a', 'k', '1');
SELECT set_bookmark('{}', NULL, 'k', '1');
SELECT set_bookmark('{}', 'a', NULL, '1');
SELECT set_bookmark('{}', 'a', 'k', NULL);
SELECT set_currently_syncing('{}', NULL);
SELECT increment_state('{}', 'a', NULL, 'k');
SELECT finalize_state_progress_markers(NULL);
SELECT set_bookmark('[]', 'a', 'k', '1');
SELECT set_bookmark('{"singer_state": 1}', 'a', 'k', '1');
SELECT set_bookmark('{"bookmarks": 1}', 'a', 'k', '1');
SELECT set_bookmark('{"bookmarks": {"a": "x"}}', 'a', 'k', '1');
SELECT set_bookmark('{"bookmarks": {"a": {"partitions": {}}}}', 'a', 'k', '1', '{"x": 1}');
SELECT set_bookmark('{}', 'a', 'k', '1', '1');
SELECT set_bookmark('{"users": 1}', 'bookmarks', 'k', '1');
SELECT rename_stream('{}', 'a', 'b');
SELECT rename_stream('{"bookmarks": {"a": {}, "b": {}}}', 'a', 'b');
SELECT finalize_state_progress_markers('{}', NULL, '{"x": 1}');
SELECT increment_state('{}', 'a', '{}', 'k');
SELECT increment_state('{}', 'a', '1', 'k');
SELECT is_state_non_resumable('{}', 'a', 'SOMETIMES');
SELECT write_starting_replication_value('{}', 'a', 'incremental');
\set VERBOSITY default

-- Streams.
SELECT reset_stream('{"bookmarks": {"a": "x"}, "activate_versions": null}', 'a'),
	clear_stream('{"bookmarks": {"a": {}, "b": {}}}', 'a'), clear_stream('{}', 'a') AS unchanged,
	rename_stream('{"bookmarks": {"a": {"k": 1}, "b": {}}, "currently_syncing": "a", "activate_versions": {"a": 1}}', 'a', 'ccc'),
	clear_currently_syncing(set_currently_syncing('{}', 'a'));

-- Sorted streams, values that do not compare, and timestamps as instants.
\set sorted '{"bookmarks": {"a": {"replication_key": "k", "replication_key_value": 5}}}'
SELECT increment_state(:'sorted', 'a', '{"k": 5.0}', 'k', is_sorted => true);
SELECT increment_state(:'sorted', 'a', '{"k": 4}', 'k', is_sorted => true);
SELECT increment_state(:'sorted', 'a', '{"k": 4}', 'k', is_sorted => true, check_sorted => false);
SELECT increment_state(:'sorted', 'a', '{"k": "6"}', 'k', is_sorted => true);
SELECT increment_state(:'sorted', 'a', '{"k": null}', 'k', is_sorted => true);
SELECT increment_state(:'sorted', 'a', '{"k": 4}', 'k', is_sorted => true, partitioning_keys => '{}');
SELECT is_timestamp, increment_state('{"bookmarks": {"a": {"progress_markers": {"replication_key_value": "2021-01-01T02:00:00+02:00"}}}}',
	'a', '{"k": "2021-01-01T00:30:00Z"}', 'k', is_timestamp => is_timestamp)
FROM unnest(ARRAY[true, false]) AS is_timestamp;

-- Timestamps do not depend on the session.
SET TimeZone = 'Asia/Kolkata';
SET DateStyle = 'SQL, DMY';
SELECT v, to_char(get_starting_timestamp(jsonb_build_object('bookmarks',
	jsonb_build_object('s', jsonb_build_object('starting_replication_value', v))), 's') AT TIME ZONE 'UTC',
	'YYYY-MM-DD HH24:MI:SS.US') AS utc
FROM unnest(ARRAY['2021-05-17', '20210517', '2021-W20-1', '2021-05-17T20:41:16Z', '2021-05-17 20:41:16',
	'2021-05-17T20:41:16.1234567+0530', '2021-05-17T20:41-05:30', '2021-05-17T204116,5', '0001-01-01', '9999-12-31']) AS v;
SELECT get_starting_timestamp('{"bookmarks": {"s": {"starting_replication_value": "17/05/2021"}}}', 's');
SELECT get_starting_timestamp('{"bookmarks": {"s": {"starting_replication_value": 5}}}', 's');
SELECT get_starting_timestamp('{"bookmarks": {"s": {"starting_replication_value": null}}}', 's') AS null_value;
BEGIN;
SELECT (get_replication_key_signpost() #>> '{}')::timestamptz = now() AS is_now,
	get_replication_key_signpost() #>> '{}' LIKE '____-__-__T__:__:__%+00:00' AS format,
	get_replication_key_signpost(false) AS no_timestamp;
COMMIT;
RESET TimeZone;
RESET DateStyle;

-- Finalizing and resetting everything.
\set dirty '{"singer_state": {"bookmarks": {"a": {"partitions": [{"context": {"x": 1}, "progress_markers": {"Note": "n", "replication_key": "k", "replication_key_value": 7}, "replication_key_signpost": 6}, {"context": {"x": 2}}], "progress_markers": {"Note": "n"}}, "b": {"k": 1}, "c": "bare"}}}'
SELECT finalize_state_progress_markers(:'dirty');
SELECT reset_state_progress_markers(:'dirty');
SELECT finalize_state_progress_markers(:'dirty', 'a');
SELECT finalize_state_progress_markers('{"bookmarks": {"a": {"replication_key_signpost": "x", "progress_markers": {"replication_key": "k", "replication_key_value": 1}}}}', 'a');

-- Merging by context, and where it cannot.
SELECT deep_merge('{"a": {"partitions": [{"context": {"x": 1}, "v": 1}, {"context": {"x": 2}, "v": 2}]}}',
	'{"a": {"partitions": [{"context": {"x": 3}}, {"context": {"x": 2.0}, "w": 3}]}}', by_context => true);
SELECT deep_merge('{"partitions": [{"context": 1}, {"context": 1}]}', '{"partitions": [{"context": 2}]}', true),
	deep_merge('{"partitions": [{"context": 1}]}', '{"partitions": [2]}', true);
SELECT deep_merge('1', '{"a": 1}'), deep_merge('{"a": 1}', '{}'), deep_merge('[1]', '{}'), deep_merge('{"a": 1}', 'null'),
	deep_merge('{"a": 1}', '{"a": {"b": {}}}'), deep_merge(NULL, '{}');
SELECT deep_merge_agg(s ORDER BY n) FROM (VALUES (1, jsonb '{"a": {"x": 1}}'), (2, NULL), (3, '{"a": {"y": 2}}')) AS v (n, s);
SELECT increment_agg(to_jsonb(v), 'id'), increment_agg(to_jsonb(v), 'name')
FROM (VALUES (1, 'b'), (30, 'aa'), (NULL, 'z'), (4, 'c')) AS v (id, name);
SELECT increment_agg(v, 'k') AS none FROM (VALUES (NULL::jsonb), ('{"k": null}')) AS t (v);
SELECT increment_agg(v, 'k') FROM (VALUES ('{"k": 1}'::jsonb), ('{"k": "a"}')) AS t (v);

-- Differences.
SELECT * FROM diff_states(
	'{"bookmarks": {"a": {"x": 1, "partitions": [{"context": {"id": 1}, "v": 1}, {"context": {"id": 2}, "v": 1}, {"context": {"id": 4}}]}, "s": "str", "gone": {}}, "currently_syncing": "a"}',
	'{"singer_state": {"bookmarks": {"a": {"x": 2, "partitions": [{"context": {"id": 2}, "v": 3}, {"context": {"id": 1.0}, "v": 1}, {"context": {"id": 3}, "v": 1}]}, "s": {"k": 2}, "new": {"k": null}}, "currently_syncing": null}}');
SELECT * FROM diff_states('{"users": {"id": 1}}', '{"bookmarks": {"users": {"id": 1.0}}}');
SELECT * FROM diff_states(NULL, '{"bookmarks": {"users": {"id": 1}}}');
SELECT * FROM diff_states('[1]', '{}');
SELECT count(*) FROM diff_states(:'dirty', :'dirty');

-- What is in a state, and what is wrong with it.
SELECT stream, context, replication_key AS key, replication_key_value AS value,
	starting_replication_value AS start, signpost, progress_markers AS markers, resumable, bookmark
FROM bookmarks('{"bookmarks": {"a": {"replication_key": "k", "replication_key_value": 1, "partitions": [{"context": {"x": 1}, "progress_markers": {"Note": "n"}}, 5]},
	"b": "bare", "c": null, "d": {}, "e": {"partitions": [{"context": {}, "replication_key_signpost": 3, "starting_replication_value": null}]}, "f": {"partitions": {"0": {"context": {"x": 1}}}}}}');
SELECT * FROM check_state('{"bookmarks": {"ok": {"k": 1}, "nil": null, "bare": "x", "empty": {}, "map": {"partitions": {"0": {}}}, "num": {"partitions": 1},
	"twice": {"partitions": [{"context": {"x": 1}}, {"context": {"x": 1.0}}, 5, {}]}, "mark": {"progress_markers": 1}}}');
SELECT s, p.* FROM unnest(ARRAY['[]', '"{}"', '{"singer_state": null}', '{"singer_state": {"singer_state": {}}}',
	'{"type": "STATE", "value": {}}', '{"bookmarks": null}', '{}', '{"users": {"id": 1}}']::jsonb[]) AS s, check_state(s) p;
