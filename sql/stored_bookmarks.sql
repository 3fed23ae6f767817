-- Bookmarks of stored states: what the functions write, and the view.
SET singer_state.namespace = 'regress_stored_bookmarks';

CREATE FUNCTION pg_temp.parts(state_id text, OUT version bigint, OUT completed jsonb, OUT partial jsonb)
LANGUAGE sql AS $$
	SELECT version, completed_state, partial_state FROM singer_state.get_state($1) $$;

-- A state that does not exist is made; the completed part is never written.
SELECT singer_state.fetch_bookmark('new', 'users', 'id');
SELECT singer_state.update_bookmark('new', 'users', 'id', '9007199254740993');
SELECT singer_state.advance_bookmark('new', 'users', 'id', '2');
SELECT * FROM pg_temp.parts('new');
SELECT singer_state.fetch_bookmark('new', 'users', 'id') AS id,
	singer_state.fetch_bookmark('new', 'users', 'replication_key_value') AS value,
	singer_state.fetch_bookmark('new', 'users', 'absent') AS absent,
	singer_state.fetch_bookmark('new', 'orders', 'id') AS no_stream;

-- What is written goes into the partial part, the stream with all it has; a
-- document keeps its form.
SELECT FROM singer_state.set('payload', '{"singer_state": {"bookmarks": {"users": {"id": 1}, "orders": {"id": 1}}}}');
SELECT FROM singer_state.set('tap', '{"bookmarks": {"users": {"id": 1}, "orders": {"id": 1}}, "currently_syncing": "users"}');
SELECT FROM singer_state.set('flat', '{"users": {"id": 1}, "orders": {"id": 1}}');
SELECT FROM singer_state.set('flat payload', '{"singer_state": {"users": {"id": 1}, "orders": {"id": 1}}}');
SELECT FROM singer_state.set('both', '{"bookmarks": {"users": {"id": 1}}}', '{"currently_syncing": "users"}');
SELECT state_id, singer_state.update_bookmark(state_id, 'users', 'name', '"x"') AS version
FROM singer_state.list() AS state_id;
SELECT state_id, completed_state, partial_state
FROM singer_state.states ORDER BY state_id COLLATE "C";
SELECT state_id, singer_state.remove_stream(state_id, 'users') AS version
FROM singer_state.list() AS state_id;
SELECT state_id, version, completed_state, partial_state
FROM singer_state.states ORDER BY state_id COLLATE "C";

-- Partitions: an array is replaced whole, so that the partial part has them all.
SELECT FROM singer_state.set('parts', '{"bookmarks": {"users": {"partitions": [{"context": {"org": "a"}, "id": 1}, {"context": {"org": "b"}, "id": 1}]}}}');
SELECT singer_state.update_bookmark('parts', 'users', 'id', '2', '{"org": "b"}');
SELECT singer_state.update_bookmark('parts', 'users', 'id', '3', '{"org": 1}');
SELECT * FROM pg_temp.parts('parts');
SELECT singer_state.fetch_bookmark('parts', 'users', 'id', '{"org": "b"}') AS b,
	singer_state.fetch_bookmark('parts', 'users', 'id', '{"org": 1.0}') AS one,
	singer_state.fetch_bookmark('parts', 'users', 'id', '{"org": "1"}') AS text;

-- What an overlay cannot take away is taken out of the completed part.
SELECT FROM singer_state.set('takes', '{"bookmarks": {"users": {"cursor": {"page": 1}}, "orders": {"id": 1}}}');
SELECT singer_state.update_bookmark('takes', 'users', 'cursor', '{}');
SELECT * FROM pg_temp.parts('takes');
SELECT FROM singer_state.set('hidden', '{"bookmarks": {"users": {"id": 1}, "orders": {"id": 1}}}', '{"bookmarks": null}');
SELECT singer_state.update_bookmark('hidden', 'users', 'id', '2');
SELECT singer_state.get('hidden');

-- Advancing: the greater value stays; check_sorted makes a smaller one an error;
-- without is_sorted it goes to the progress markers, which finalizing promotes.
SELECT singer_state.advance_bookmark('adv', 'users', 'id', '5');
SELECT singer_state.advance_bookmark('adv', 'users', 'id', '4');
SELECT singer_state.advance_bookmark('adv', 'users', 'id', '4', check_sorted => true);
SELECT singer_state.advance_bookmark('adv', 'users', 'id', '5.0') AS same_value;
SELECT singer_state.advance_bookmark('adv', 'users', 'id', 'null') AS nothing;
SELECT singer_state.advance_bookmark('adv', 'users', 'id', '7');
SELECT singer_state.advance_bookmark('adv', 'orders', 'id', '9', is_sorted => false);
SELECT singer_state.advance_bookmark('adv', 'orders', 'id', '8', is_sorted => false);
SELECT singer_state.advance_bookmark('adv', 'orders', 'at', '"2026-01-01T00:00:00Z"', '{"org": "a"}', is_timestamp => true);
SELECT singer_state.advance_bookmark('adv', 'orders', 'at', '"2026-01-01T01:00:00+02:00"', '{"org": "a"}', is_timestamp => true);
SELECT singer_state.get('adv');
SELECT stream, context, replication_key_value, progress_markers, resumable, part
FROM singer_state.bookmarks WHERE state_id = 'adv' ORDER BY stream COLLATE "C", context;
SELECT singer_state.promote('adv');
SELECT singer_state.finalize_bookmarks('adv', 'users') AS nothing_to_do;
SELECT singer_state.finalize_bookmarks('adv', 'orders');
SELECT * FROM pg_temp.parts('adv');
SELECT stream, context, replication_key_value, resumable, part
FROM singer_state.bookmarks WHERE state_id = 'adv' ORDER BY stream COLLATE "C", context;

-- Finalizing all of it leaves streams without markers where they are.
SELECT FROM singer_state.set('fin', '{"bookmarks": {"a": {"id": 1}, "b": {"progress_markers": {"replication_key": "id", "replication_key_value": 7}, "replication_key_signpost": 6},
	"c": {"partitions": [{"context": {"x": 1}, "starting_replication_value": 1}]}, "d": null}}');
SELECT singer_state.finalize_bookmarks('fin');
SELECT * FROM pg_temp.parts('fin');
SELECT singer_state.finalize_bookmarks('fin') AS again;

-- Streams named as they like.
SELECT name, singer_state.update_bookmark('names', name, name, '1') AS version
FROM unnest(ARRAY['a.b', '', 'bookmarks', 'x"y', 'a/b', 'singer_state']) AS name;
SELECT stream, singer_state.fetch_bookmark('names', stream, stream) AS value
FROM singer_state.bookmarks WHERE state_id = 'names' ORDER BY stream COLLATE "C";

-- A call that changes nothing writes nothing: no row version, no history.
SELECT xmin AS before_xmin, ctid AS before_ctid FROM singer_state.state
WHERE namespace = 'regress_stored_bookmarks' AND state_id = 'parts' \gset
SELECT singer_state.update_bookmark('parts', 'users', 'id', '2', '{"org": "b"}') AS same,
	singer_state.advance_bookmark('parts', 'users', 'replication_key', 'null', '{"org": "b"}') AS null_value,
	singer_state.finalize_bookmarks('parts') AS no_markers,
	singer_state.remove_stream('parts', 'no such') AS no_stream;
SELECT xmin = :'before_xmin'::xid AND ctid = :'before_ctid'::tid AS untouched FROM singer_state.state
WHERE namespace = 'regress_stored_bookmarks' AND state_id = 'parts';

-- The history names the function.
SELECT version, operation FROM singer_state.history('fin');
SELECT version, operation FROM singer_state.history('adv');
SELECT version, operation FROM singer_state.history('tap');

-- Errors, after each of which the state is as before.
SELECT FROM singer_state.set('twice', '{"bookmarks": {"users": {"partitions": [{"context": {"x": 1}, "id": 1}, {"context": {"x": 1.0}}]}, "bare": "x", "n": {"replication_key_value": 1}}}');
SELECT singer_state.update_bookmark('twice', 'users', 'id', '2', '{"x": 1}');
\set VERBOSITY sqlstate
SELECT singer_state.fetch_bookmark('twice', 'users', 'id', '{"x": 1}');
SELECT singer_state.update_bookmark('twice', 'bare', 'id', '2');
SELECT singer_state.update_bookmark('twice', 'users', 'id', '2', '5');
SELECT singer_state.update_bookmark('twice', 'users', 'id', NULL);
SELECT singer_state.update_bookmark('twice', NULL, 'id', '1');
SELECT singer_state.update_bookmark(NULL, 'users', 'id', '1');
SELECT singer_state.update_bookmark('', 'users', 'id', '1');
SELECT singer_state.update_bookmark('flat', 'bookmarks', 'id', '1');
SELECT singer_state.advance_bookmark('twice', 'n', 'id', '"x"');
SELECT singer_state.advance_bookmark('twice', 'n', 'id', NULL);
SELECT singer_state.advance_bookmark('twice', 'n', 'id', '1', is_sorted => NULL);
SELECT singer_state.advance_bookmark('twice', 'n', 'id', '"yesterday"', is_timestamp => true);
SELECT singer_state.finalize_bookmarks('twice', NULL, '{"x": 1}');
SELECT singer_state.finalize_bookmarks('no such');
SELECT singer_state.remove_stream('no such', 'users');
SELECT singer_state.remove_stream('twice', NULL);
SET singer_state.max_state_size = '1kB';
SELECT singer_state.update_bookmark('twice', 'n', 'id', to_jsonb(repeat('x', 2000)));
RESET singer_state.max_state_size;
BEGIN READ ONLY;
SELECT singer_state.update_bookmark('twice', 'n', 'id', '1');
ROLLBACK;
\set VERBOSITY default
SELECT version FROM singer_state.get_state('twice');

-- Somebody else's lease, and one that has been replaced.
SELECT lock_id, token FROM singer_state.acquire_lease('leased') \gset
SET singer_state.lock_timeout = 0;
\set VERBOSITY sqlstate
SELECT singer_state.update_bookmark('leased', 'users', 'id', '1');
SELECT singer_state.advance_bookmark('leased', 'users', 'id', '1');
SELECT singer_state.advance_bookmark('leased', 'users', 'id', '1', token => :token - 1);
SELECT singer_state.update_bookmark('leased', 'users', 'id', '1', token => :token - 1);
\set VERBOSITY default
SELECT singer_state.update_bookmark('leased', 'users', 'id', '1', token => :token);
SELECT singer_state.advance_bookmark('leased', 'users', 'id', '1', token => :token);
SELECT singer_state.finalize_bookmarks('leased', token => :token);
SELECT singer_state.remove_stream('leased', 'users', token => :token);
\set VERBOSITY sqlstate
SELECT singer_state.finalize_bookmarks('leased');
SELECT singer_state.finalize_bookmarks('leased', token => :token - 1);
SELECT singer_state.remove_stream('leased', 'users');
SELECT singer_state.remove_stream('leased', 'users', token => :token - 1);
\set VERBOSITY default
SELECT singer_state.release_lease('leased', :'lock_id');
RESET singer_state.lock_timeout;

-- 20,000 partitions, through each.
SELECT singer_state.set('many', jsonb_build_object('bookmarks', jsonb_build_object('users', jsonb_build_object('partitions',
	jsonb_agg(jsonb_build_object('context', jsonb_build_object('org', n), 'replication_key', 'id', 'replication_key_value', n) ORDER BY n)))))
FROM generate_series(1, 20000) AS n;
SELECT singer_state.fetch_bookmark('many', 'users', 'replication_key_value', '{"org": 20000}');
SELECT singer_state.update_bookmark('many', 'users', 'id', '1', '{"org": 10000}') AS update,
	singer_state.advance_bookmark('many', 'users', 'id', '20000', '{"org": 10000}') AS advance,
	singer_state.advance_bookmark('many', 'users', 'id', '30000', '{"org": 20001}', is_sorted => false) AS markers,
	singer_state.finalize_bookmarks('many') AS finalize;
SELECT part, count(*), sum(replication_key_value::numeric) FROM singer_state.bookmarks WHERE state_id = 'many' GROUP BY part;
SELECT singer_state.remove_stream('many', 'users');
SELECT count(*) FROM singer_state.bookmarks WHERE state_id = 'many';

-- The view: which part a bookmark comes from.
SELECT count(singer_state.clear(state_id)) FROM singer_state.list() AS state_id;
SELECT FROM singer_state.set('v', '{"bookmarks": {"done": {"id": 1}, "bare": "2026-01-01", "parts": {"partitions": [{"context": {"x": 1}}]}}}',
	'{"bookmarks": {"done": {"more": 1}, "fresh": {"progress_markers": {"Note": "n"}, "replication_key_signpost": 3, "starting_replication_value": null}}}');
SELECT stream, context, starting_replication_value AS start, signpost, progress_markers, resumable, part, bookmark
FROM singer_state.bookmarks ORDER BY stream COLLATE "C";
SELECT partial, singer_state.bookmark_part(partial, 's', NULL) AS stream, singer_state.bookmark_part(partial, 's', '{"x": 1}') AS partition
FROM unnest(ARRAY['{}', '{"bookmarks": null}', '{"s": 1}', '{"s": {}}', '{"bookmarks": {"s": null}}', '{"singer_state": {"s": {"partitions": []}}}',
	'{"s": {"partitions": [], "id": 1}}', '{"s": {"partitions": 1}}', '[]']::jsonb[]) AS partial;
SELECT v.updated_at = s.updated_at AS written FROM singer_state.bookmarks v JOIN singer_state.states s USING (state_id)
WHERE stream = 'done';
SET singer_state.namespace = 'regress_stored_bookmarks_other';
SELECT count(*) FROM singer_state.bookmarks;
SET singer_state.namespace = 'regress_stored_bookmarks';

-- The README's questions, of states written two days ago and one of them changed
-- since.
SELECT FROM singer_state.clear('v');
SELECT FROM singer_state.set('github', '{"bookmarks": {"issues": {"replication_key": "id", "replication_key_value": 1}, "repos": {"replication_key": "id", "replication_key_value": 1}}}');
SELECT FROM singer_state.set('gitlab', '{"bookmarks": {"issues": {"replication_key": "id", "replication_key_value": 1}}}');
SELECT FROM singer_state.set('twice', '{"bookmarks": {"teams": {"partitions": [{"context": {"org": "a", "id": 1}}, {"context": {"id": 1, "org": "a"}}]}}}');
SET session_replication_role = replica;
UPDATE singer_state.state SET updated_at = now() - interval '2 days'
WHERE namespace = 'regress_stored_bookmarks' AND state_id LIKE 'git%';
RESET session_replication_role;
SELECT singer_state.advance_bookmark('github', 'issues', 'id', '2');
SELECT singer_state.advance_bookmark('github', 'issues', 'id', '3');
SELECT singer_state.advance_bookmark('github', 'events', 'id', '9', is_sorted => false);

-- Which streams have not moved since yesterday?
SELECT b.state_id, b.stream, b.context, b.replication_key_value
FROM singer_state.bookmarks b
LEFT JOIN LATERAL (
	SELECT old.bookmark
	FROM singer_state.history(b.state_id) h,
		singer_state.bookmarks(singer_state.state_at(h.state_id, h.version)) old
	WHERE h.updated_at < now() - interval '1 day'
	AND h.changed_at >= now() - interval '1 day'
	AND old.stream = b.stream
	AND old.context IS NOT DISTINCT FROM b.context) yesterday ON true
WHERE b.updated_at < now() - interval '1 day'
OR yesterday.bookmark = b.bookmark
ORDER BY b.state_id, b.stream, b.context;

-- Which were interrupted?
SELECT state_id, stream, context, progress_markers
FROM singer_state.bookmarks
WHERE NOT resumable;

-- Which partitions are there twice?
SELECT s.state_id, p.stream, p.context, p.detail
FROM singer_state.states s, singer_state.check_state(s.effective_state) p
WHERE p.problem = 'duplicate_partition';

-- What changed between two versions?
SELECT * FROM singer_state.diff('github', 1, 3);

-- How large is each state?
SELECT s.state_id, pg_column_size(s.effective_state) AS bytes,
	(SELECT count(*) FROM singer_state.bookmarks(s.effective_state)) AS bookmarks
FROM singer_state.states s
ORDER BY bytes DESC, s.state_id;
