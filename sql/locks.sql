-- Run locks, as one session sees them.
SET singer_state.namespace = 'regress_locks';
SET singer_state.lock_timeout = 0;

-- Our locks in this session, from the lock table.
CREATE FUNCTION locks_held() RETURNS TABLE (class smallint, mode text, granted boolean)
LANGUAGE sql AS $$
	SELECT l.objsubid, l.mode, l.granted FROM pg_locks l
	WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.objsubid > 2
	ORDER BY 1, 2 $$;

-- The keys are an ABI: FNV-1a of 64 bits over namespace, a zero byte and
-- state id.  These values were computed by another program and never change.
SELECT n AS namespace, octet_length(i) AS bytes, singer_state.lock_key(n, i) = k AS good
FROM (VALUES
	('meltano', 'prod:tap-github-to-target-postgres:eu', 9172401301607477623::bigint),
	('meltano', 'a', 6888985270224797598::bigint),
	('tenant', 'a', -4433638626390799110::bigint),
	('a', 'bc', -6106610056285866717::bigint),
	('ab', 'c', -188658036487747481::bigint),
	('regress_locks', U&'\00E4\20AC', -357121526737579736::bigint),
	('', '', -5808590958014384161::bigint),
	('meltano', repeat('x', 1024), -3035604658717215093::bigint)
) AS v (n, i, k);
SELECT singer_state.lock_key(NULL, 'a') IS NULL AS strict;
-- that is where pg_locks shows the lock
SELECT FROM singer_state.acquire_lock('a');
SELECT (classid::bigint << 32) | objid::bigint = singer_state.lock_key('regress_locks', 'a') AS found,
	database = (SELECT oid FROM pg_database WHERE datname = current_database()) AS ours, objsubid, mode, granted
FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 21331;
SELECT * FROM locks_held();
SELECT kind, pid = pg_backend_pid() AS mine, holder_user = session_user AS by_me,
	application_name = current_setting('application_name') AS by_this,
	since <= clock_timestamp() AND since > clock_timestamp() - interval '1 hour' AS since,
	expires_at, token, waiters
FROM singer_state.locks;
SELECT singer_state.release_lock('a');
SELECT * FROM locks_held();

-- Taken twice, it must be released twice.
SELECT FROM singer_state.acquire_lock('a');
SELECT FROM singer_state.acquire_lock('a');
SELECT singer_state.try_acquire_lock('a');
SELECT singer_state.release_lock('a'), singer_state.holds_lock('a');
SELECT singer_state.release_lock('a'), singer_state.holds_lock('a');
SELECT singer_state.release_lock('a'), singer_state.holds_lock('a');
SELECT singer_state.release_lock('a');
SELECT singer_state.holds_lock('never');
-- all of them, however often
SELECT FROM singer_state.acquire_lock('a');
SELECT FROM singer_state.acquire_lock('a');
SELECT FROM singer_state.acquire_lock('b');
SELECT singer_state.release_all_locks();
SELECT singer_state.release_all_locks();
SELECT * FROM locks_held();

-- Namespaces are independent.
SELECT FROM singer_state.acquire_lock('a');
SET singer_state.namespace = 'regress_locks_2';
SELECT singer_state.holds_lock('a');
SELECT singer_state.release_lock('a');
SELECT singer_state.try_acquire_lock('a');
SELECT singer_state.release_lock('a');
SET singer_state.namespace = 'regress_locks';
SELECT singer_state.holds_lock('a');

-- DISCARD ALL frees, and holds_lock says so; so does pg_advisory_unlock_all.
DISCARD ALL;
SET singer_state.namespace = 'regress_locks';
SELECT singer_state.holds_lock('a');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT singer_state.release_all_locks();
SELECT FROM singer_state.acquire_lock('a');
SELECT pg_advisory_unlock_all();
SELECT singer_state.holds_lock('a');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid();
SELECT singer_state.release_all_locks();

-- A run lock outlives the transaction that took it, however that ends, and is
-- released at once, also in a transaction that rolls back.
BEGIN;
SELECT FROM singer_state.acquire_lock('a');
ROLLBACK;
SELECT singer_state.holds_lock('a');
BEGIN;
SELECT singer_state.release_lock('a');
ROLLBACK;
SELECT singer_state.holds_lock('a');
BEGIN;
SAVEPOINT s;
SELECT FROM singer_state.acquire_lock('a');
SELECT 1 / 0;
ROLLBACK TO s;
SELECT singer_state.holds_lock('a');
COMMIT;
SELECT singer_state.release_lock('a');
-- a function that fails after it has the lock has it all the same
DO $$
BEGIN
	PERFORM singer_state.acquire_lock('a');
	RAISE EXCEPTION 'later';
EXCEPTION WHEN raise_exception THEN
	RAISE NOTICE 'held: %', singer_state.holds_lock('a');
END $$;
SELECT singer_state.release_lock('a');

-- No key of pg_advisory_lock is ours, and none of ours is theirs.
SELECT FROM singer_state.acquire_lock('a');
SELECT singer_state.lock_key('regress_locks', 'a') AS key \gset
SELECT pg_advisory_lock(:key);
SELECT pg_advisory_lock((:key >> 32)::integer, ((:key << 32) >> 32)::integer);
SELECT pg_advisory_unlock(:key), pg_advisory_unlock((:key >> 32)::integer, ((:key << 32) >> 32)::integer);
SELECT pg_advisory_unlock(:key), pg_advisory_unlock((:key >> 32)::integer, ((:key << 32) >> 32)::integer);
SELECT singer_state.holds_lock('a');
SELECT singer_state.release_lock('a');

-- The session's own settings stay as they were.
SET lock_timeout = '12345ms';
SELECT FROM singer_state.acquire_lock('a', '1 day');
SELECT singer_state.set('a', '{"a": 1}');
SHOW lock_timeout;
SELECT singer_state.release_all_locks();
RESET lock_timeout;

-- Arguments.
\set VERBOSITY sqlstate
SELECT singer_state.acquire_lock(NULL);
SELECT singer_state.acquire_lock('');
SELECT singer_state.acquire_lock(repeat('x', 1025));
SELECT singer_state.try_acquire_lock(NULL);
SELECT singer_state.release_lock(NULL);
SELECT singer_state.holds_lock(NULL);
SELECT singer_state.break_lock(NULL);
\set VERBOSITY default
SELECT singer_state.acquire_lock(repeat('x', 1024));
SELECT singer_state.release_lock(repeat('x', 1024));
SELECT singer_state.acquire_lock('a', '0'), singer_state.acquire_lock('a', '-1 second'),
	singer_state.acquire_lock('a', '1 millisecond'), singer_state.acquire_lock('a', '1000 years');
SELECT singer_state.release_all_locks();
SELECT * FROM locks_held();

-- break_lock says how things are.
SELECT singer_state.break_lock('a');
SELECT FROM singer_state.acquire_lock('a');
SELECT singer_state.break_lock('a');
SELECT singer_state.holds_lock('a');

-- The holder writes, and may force.
SELECT singer_state.merge('a', '{"b": 1}');
SELECT singer_state.clear('a', force => true);
SELECT operation FROM singer_state.history('a') LIMIT 1;
SELECT singer_state.release_lock('a');

-- In a read-only transaction a run lock may be had: it writes nothing.
BEGIN READ ONLY;
SELECT singer_state.try_acquire_lock('a');
COMMIT;
SELECT singer_state.release_lock('a');

-- Who may not write a state may not lock it.
CREATE ROLE regress_locks_reader;
CREATE ROLE regress_locks_writer;
CREATE ROLE regress_locks_nobody;
SELECT singer_state.grant_access('regress_locks_reader', 'reader');
SELECT singer_state.grant_access('regress_locks_writer', 'writer');
\set VERBOSITY terse
SET ROLE regress_locks_nobody;
SELECT singer_state.acquire_lock('a');
SELECT singer_state.acquire_lease('a');
SET ROLE regress_locks_reader;
SELECT singer_state.acquire_lock('a');
SELECT singer_state.try_acquire_lock('a');
SELECT singer_state.acquire_lease('a');
SELECT singer_state.break_lock('a');
SELECT count(*) FROM singer_state.locks;
SELECT singer_state.holds_lock('a');
SET ROLE regress_locks_writer;
SELECT singer_state.acquire_lock('a');
SELECT singer_state.break_lock('a');
SELECT singer_state.release_lock('a');
RESET ROLE;
-- row security that hides a state keeps it from being locked
ALTER TABLE singer_state.state ENABLE ROW LEVEL SECURITY;
CREATE POLICY regress_locks ON singer_state.state TO regress_locks_writer
	USING (state_id LIKE 'mine%') WITH CHECK (state_id LIKE 'mine%');
SET ROLE regress_locks_writer;
SELECT singer_state.acquire_lock('foreign');
SELECT singer_state.try_acquire_lock('foreign');
SELECT singer_state.acquire_lease('foreign');
SELECT singer_state.try_acquire_lock('mine'), singer_state.release_lock('mine');
SELECT singer_state.get('mine') IS NULL AS not_made;
RESET ROLE;
DROP POLICY regress_locks ON singer_state.state;
ALTER TABLE singer_state.state DISABLE ROW LEVEL SECURITY;
\set VERBOSITY default
SELECT * FROM locks_held();
SELECT singer_state.revoke_access('regress_locks_reader');
SELECT singer_state.revoke_access('regress_locks_writer');
DROP FUNCTION locks_held();
DROP ROLE regress_locks_reader, regress_locks_writer, regress_locks_nobody;

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
RESET singer_state.lock_timeout;
