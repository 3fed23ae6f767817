-- Runs: begin, finish, strategies, owners, transactions.

SET singer_state.lock_timeout = 0;

-- The summary without what differs from one run to the next
CREATE SCHEMA regress_runs;
GRANT USAGE ON SCHEMA regress_runs TO PUBLIC;
CREATE FUNCTION regress_runs.finish(success boolean, error text DEFAULT NULL)
RETURNS TABLE (error_ text, state_id text, status text, messages bigint, states bigint, skipped bigint, streams text[], final_state jsonb)
LANGUAGE sql AS $$
	SELECT r.error, r.state_id, r.status, messages_processed, states_processed,
		lines_skipped, streams, final_state
	FROM singer_state.finish_run(singer_state.current_run(), success, error) r
$$;
CREATE FUNCTION regress_runs.take(messages text) RETURNS bigint
LANGUAGE sql AS 'SELECT singer_state.process_messages(singer_state.current_run(), messages)';

-- Success promotes; the second run resumes there
SELECT singer_state.current_run();
SELECT singer_state.begin_run('p') = singer_state.current_run() AS current;
SELECT singer_state.holds_lock('p');
SELECT regress_runs.take(E'{"type":"RECORD","stream":"u","record":{}}\n{"bookmarks":{"u":{"id":1},"v":{"id":1}}}');
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
SELECT * FROM regress_runs.finish(true);
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
SELECT singer_state.current_run(), singer_state.holds_lock('p');

-- Overwrite: the state reached replaces what was completed
SELECT singer_state.begin_run('p') IS NOT NULL AS begun;
SELECT regress_runs.take(E'{"bookmarks":{"u":{"id":2},"w":{}}}\n{"bookmarks":{"u":{"id":3}}}');
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
SELECT * FROM regress_runs.finish(true);

-- Merge: it is merged
SELECT singer_state.begin_run('p', 'merge') IS NOT NULL AS begun;
SELECT regress_runs.take(E'{"bookmarks":{"v":{"id":4}}}\n{"bookmarks":{"v":{"at":4},"w":{"id":4}}}');
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
SELECT * FROM regress_runs.finish(true);

-- ... each state by itself, where the order matters
SELECT singer_state.begin_run('order', 'merge') IS NOT NULL AS begun;
SELECT regress_runs.take(E'{"bookmarks":{"u":{"k":1}}}\n{"bookmarks":{"u":5}}\n{"bookmarks":{"u":{"j":2}}}');
SELECT * FROM regress_runs.finish(true);

-- Failure keeps what was reached as partial state
SELECT singer_state.begin_run('p') IS NOT NULL AS begun;
SELECT regress_runs.take('{"bookmarks":{"u":{"id":9}}}');
SELECT * FROM regress_runs.finish(false, 'the tap has crashed');
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
-- ... and a run that reaches nothing completes it
SELECT singer_state.begin_run('p') IS NOT NULL AS begun;
SELECT regress_runs.take(E'{"type":"RECORD","stream":"u","record":{}}\n{"bookmarks":{}}');
SELECT * FROM regress_runs.finish(true);
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'p';
-- A run without states makes no state
SELECT singer_state.begin_run('none') IS NOT NULL AS begun;
SELECT * FROM regress_runs.finish(true);
SELECT singer_state.get('none');

-- A payload stays a payload, whatever the tap prints
SELECT singer_state.set('wrapped', '{"singer_state": {"bookmarks": {"u": {"id": 1}}}}');
SELECT singer_state.begin_run('wrapped') IS NOT NULL AS begun;
SELECT regress_runs.take('{"bookmarks":{"u":{"id":2}}}');
SELECT completed_state, partial_state FROM singer_state.states WHERE state_id = 'wrapped';
SELECT * FROM regress_runs.finish(true);

-- Whether the final state can be resumed from
SELECT singer_state.begin_run('signs') IS NOT NULL AS begun;
SELECT regress_runs.take('{"bookmarks":{"u":{"replication_key":"id","replication_key_value":1}}}');
SELECT resumable FROM singer_state.finish_run(singer_state.current_run(), false);
SELECT singer_state.begin_run('signs') IS NOT NULL AS begun;
SELECT regress_runs.take('{"bookmarks":{"u":{"replication_key":"id","replication_key_value":1,"progress_markers":{"Note":"Progress is not resumable if interrupted.","replication_key":"id","replication_key_value":2}}}}');
SELECT resumable FROM singer_state.finish_run(singer_state.current_run(), false);

-- What can be wrong
SELECT singer_state.begin_run(NULL);
SELECT singer_state.begin_run('');
SELECT singer_state.begin_run('p', 'append');
SELECT singer_state.begin_run('p', NULL);
SELECT singer_state.begin_run('p', lock => NULL);
SELECT singer_state.begin_run('p', token => 1);
SELECT singer_state.begin_run('p', lock => false, token => 1);
SELECT singer_state.heartbeat(NULL);
SELECT singer_state.heartbeat('00000000-0000-0000-0000-000000000000');
SELECT singer_state.finish_run(NULL);
SELECT singer_state.finish_run('00000000-0000-0000-0000-000000000000');
SELECT singer_state.current_run(), singer_state.holds_lock('p');

-- Twice in one session; finished twice
SELECT singer_state.begin_run('p') AS run \gset
DO $$
BEGIN
	PERFORM singer_state.begin_run('p');
EXCEPTION WHEN lock_not_available THEN
	RAISE NOTICE '%', sqlerrm;
END
$$;
SELECT singer_state.heartbeat(:'run') > (SELECT started_at FROM singer_state.runs WHERE run_id = :'run') AS later;
SELECT regress_runs.finish(true, 'an error');
SELECT status FROM singer_state.finish_run(:'run');
DO $$
DECLARE
	finished uuid := (SELECT run_id FROM singer_state.run ORDER BY started_at DESC LIMIT 1);
	call text;
BEGIN
	FOREACH call IN ARRAY ARRAY['finish_run(%L)', 'heartbeat(%L)', 'process_message(%L, ''{}'')'] LOOP
		BEGIN
			EXECUTE 'SELECT singer_state.' || format(call, finished);
		EXCEPTION WHEN OTHERS THEN
			RAISE NOTICE '% %', sqlstate, replace(sqlerrm, finished::text, '(id)');
		END;
	END LOOP;
END
$$;

-- A lock that was there before is still there after
SELECT singer_state.acquire_lock('p');
SELECT singer_state.begin_run('p') IS NOT NULL AS begun;
SELECT status FROM regress_runs.finish(true);
SELECT singer_state.holds_lock('p'), singer_state.release_lock('p'), singer_state.holds_lock('p');

-- Transactions: a run that was not begun
BEGIN;
SELECT singer_state.begin_run('t') IS NOT NULL AS begun;
SELECT regress_runs.take('{"bookmarks":{"u":{"id":1}}}');
ROLLBACK;
SELECT singer_state.current_run(), singer_state.holds_lock('t'), singer_state.get('t');
SELECT count(*) FROM singer_state.runs WHERE state_id = 't';

-- ... one that was not finished
SELECT singer_state.begin_run('t') AS run \gset
BEGIN;
SELECT regress_runs.take('{"bookmarks":{"u":{"id":1}}}');
SELECT status, messages FROM regress_runs.finish(true);
SELECT singer_state.current_run(), singer_state.holds_lock('t');
ROLLBACK;
SELECT singer_state.current_run() = :'run' AS current, singer_state.holds_lock('t'), singer_state.get('t');
SELECT status, messages_processed FROM singer_state.runs WHERE run_id = :'run';

-- ... counts and states that were taken back with their savepoint
BEGIN;
SELECT regress_runs.take('{"type":"RECORD","stream":"kept","record":{}}');
SAVEPOINT one;
SELECT regress_runs.take(E'{"type":"RECORD","stream":"lost","record":{}}\n{"bookmarks":{"u":{"id":1}}}');
SAVEPOINT two;
SELECT regress_runs.take('{"type":"RECORD","stream":"lost","record":{}}');
RELEASE two;
ROLLBACK TO one;
SAVEPOINT three;
SELECT regress_runs.take(E'{"type":"RECORD","stream":"kept","record":{}}\n{"bookmarks":{"u":{"id":2}}}');
SAVEPOINT four;
SELECT regress_runs.take('{"type":"ACTIVATE_VERSION","stream":"kept","version":4}');
RELEASE three;
SELECT singer_state.get('t');
COMMIT;
SELECT messages_processed, message_counts, stream_counts, streams, last_state FROM singer_state.runs WHERE run_id = :'run';

-- ... a finish that was taken back, after which the run goes on
BEGIN;
SELECT regress_runs.take('{"type":"RECORD","stream":"kept","record":{}}');
SAVEPOINT one;
SELECT regress_runs.take('{"type":"RECORD","stream":"lost","record":{}}');
SELECT messages FROM regress_runs.finish(true);
SELECT singer_state.current_run();
ROLLBACK TO one;
SELECT singer_state.current_run() = :'run' AS current;
SELECT regress_runs.take('{"type":"RECORD","stream":"kept","record":{}}');
COMMIT;
SELECT status, messages_processed, stream_counts FROM singer_state.runs WHERE run_id = :'run';

-- ... a finish in a savepoint that stays
BEGIN;
SELECT regress_runs.take('{"type":"RECORD","stream":"kept","record":{}}');
SAVEPOINT one;
SELECT status, messages FROM regress_runs.finish(true);
RELEASE one;
SELECT singer_state.holds_lock('t');
COMMIT;
SELECT singer_state.current_run(), singer_state.holds_lock('t');
SELECT status, messages_processed, stream_counts FROM singer_state.runs WHERE run_id = :'run';

-- A run begun in a savepoint that is taken back: the one before is current
SELECT singer_state.begin_run('before') AS run \gset
BEGIN;
SAVEPOINT one;
SELECT singer_state.begin_run('inner') IS NOT NULL AS begun;
SELECT singer_state.holds_lock('inner');
ROLLBACK TO one;
SELECT singer_state.current_run() = :'run' AS current, singer_state.holds_lock('inner');
COMMIT;
SELECT status FROM regress_runs.finish(false);

-- Two runs in one transaction
SELECT singer_state.begin_run('one') AS one \gset
SELECT singer_state.begin_run('two') AS two \gset
BEGIN;
SELECT singer_state.process_message(:'one', '{"bookmarks":{"u":{"id":1}}}'), singer_state.process_message(:'two', '{"bookmarks":{"u":{"id":2}}}');
COMMIT;
SELECT state_id, messages_processed, last_state FROM singer_state.runs WHERE run_id IN (:'one', :'two') ORDER BY 1;
SELECT status FROM singer_state.finish_run(:'one');
SELECT status FROM singer_state.finish_run(:'two');

-- Namespaces: a run of another one is not there
SELECT singer_state.begin_run('p') AS run \gset
SET singer_state.namespace = 'other';
SELECT count(*) FROM singer_state.runs;
DO $$
BEGIN
	PERFORM singer_state.process_message(singer_state.current_run(), '{}');
EXCEPTION WHEN SQLSTATE '02000' THEN
	RAISE NOTICE 'no such run';
END
$$;
RESET singer_state.namespace;
SELECT status FROM singer_state.finish_run(:'run');

-- Stale: no session, and not heard of for five minutes
SELECT singer_state.begin_run('stale') AS run \gset
SELECT status FROM singer_state.runs WHERE run_id = :'run';
UPDATE singer_state.run SET heartbeat_at = now() - interval '6 minutes' WHERE run_id = :'run';
SELECT status FROM singer_state.runs WHERE run_id = :'run';
UPDATE singer_state.run SET backend_start = backend_start - interval '1 day' WHERE run_id = :'run';
SELECT status FROM singer_state.runs WHERE run_id = :'run';
UPDATE singer_state.run SET pid = 0 WHERE run_id = :'run';
SELECT status FROM singer_state.runs WHERE run_id = :'run';
SELECT singer_state.heartbeat(:'run') IS NOT NULL AS heard;
SELECT status FROM singer_state.runs WHERE run_id = :'run';
-- its lock is free: whoever gets it knows that the run is dead
SELECT singer_state.release_lock('stale');
SELECT singer_state.begin_run('stale') IS NOT NULL AS begun;
SELECT status, error FROM singer_state.runs WHERE run_id = :'run';
SELECT status FROM regress_runs.finish(true);

SET client_min_messages = warning;
DROP SCHEMA regress_runs CASCADE;
DELETE FROM singer_state.run;
DELETE FROM singer_state.state;
DELETE FROM singer_state.state_history;
