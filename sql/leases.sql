-- Leases, as one session sees them.
SET singer_state.namespace = 'regress_leases';
SET singer_state.lock_timeout = 0;

-- What an error or a call leaves in the lock table: nothing.
CREATE FUNCTION leases_held() RETURNS bigint LANGUAGE sql AS $$
	SELECT count(*) FROM pg_locks l
	WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() $$;

-- From acquire to release.
SELECT lock_id, token, expires_at FROM singer_state.acquire_lease('a') \gset
SELECT leases_held();
SELECT :'expires_at'::timestamptz BETWEEN clock_timestamp() + interval '200 s'
	AND clock_timestamp() + interval '300 s' AS standard_ttl;
SELECT state_id, kind, pid, holder_user = current_user AS by_me,
	application_name = current_setting('application_name') AS by_this,
	since <= clock_timestamp() AS since, expires_at = :'expires_at' AS until,
	token = :token AS token, waiters
FROM singer_state.locks;
SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 1}}}', token => :token);
SELECT singer_state.merge('a', '{"bookmarks": {"users": {"id": 2}}}', token => :token);
SELECT singer_state.update('a', '{"bookmarks": {"users": {"id": 3}}}', token => :token);
SELECT singer_state.promote('a', token => :token);
SELECT singer_state.renew_lease('a', :'lock_id') >= :'expires_at'::timestamptz AS prolonged;
SELECT singer_state.renew_lease('a', :'lock_id', '1 hour') > clock_timestamp() + interval '50 min' AS prolonged;
SELECT singer_state.renew_lease('a', :'lock_id', '1 s') < clock_timestamp() + interval '50 min' AS shortened;
SELECT singer_state.renew_lease('a', :'lock_id', '1 day') IS NOT NULL AS renewed;

-- Everybody else is kept out, this session too if it does not say who it is.
\set VERBOSITY sqlstate
SELECT singer_state.merge('a', '{"b": 1}');
SELECT singer_state.clear('a');
SELECT singer_state.acquire_lock('a');
SELECT singer_state.acquire_lease('a');
SELECT singer_state.acquire_lease('a', timeout => '10 ms');
SELECT singer_state.try_acquire_lock('a');
-- a token that is not the newest
SELECT singer_state.merge('a', '{"b": 1}', token => :token - 1);
SELECT singer_state.merge('a', '{"b": 1}', token => :token + 1);
SELECT singer_state.merge('b', '{"b": 1}', token => :token);
SELECT singer_state.clear('a', token => :token - 1);
SELECT singer_state.renew_lease('a', gen_random_uuid());
SELECT singer_state.release_lease('a', gen_random_uuid());
SELECT singer_state.renew_lease('b', :'lock_id');
SELECT singer_state.release_lease('b', :'lock_id');
\set VERBOSITY default
SELECT leases_held();
SELECT singer_state.merge('a', '{"b": 1}', token => 0);
SELECT singer_state.renew_lease('a', '00000000-0000-0000-0000-000000000000');
SELECT singer_state.release_lease('a', '00000000-0000-0000-0000-000000000000');
-- force asks nobody
SELECT singer_state.clear('a', force => true);
SELECT operation FROM singer_state.history('a') LIMIT 1;
SELECT singer_state.release_lease('a', :'lock_id');
\set VERBOSITY sqlstate
SELECT singer_state.release_lease('a', :'lock_id');
SELECT singer_state.merge('a', '{"b": 1}', token => :token);
\set VERBOSITY default

-- Tokens only ever grow.
SELECT token AS before FROM singer_state.acquire_lease('a') \gset
SELECT singer_state.break_lock('a');
SELECT singer_state.break_lock('a');
SELECT token > :before AS grows FROM singer_state.acquire_lease('b');
SELECT singer_state.break_lock('b');

-- Expired and taken over: the old holder's write, renewal and release fail and
-- change nothing.
SELECT lock_id AS old_id, token AS old_token FROM singer_state.acquire_lease('a') \gset
UPDATE singer_state.state_lock SET expires_at = '2000-01-01' WHERE namespace = 'regress_leases';
SELECT count(*) FROM singer_state.locks;
-- until somebody takes it, it is still the holder's
SELECT singer_state.merge('a', '{"c": 1}', token => :old_token);
SELECT lock_id, token > :old_token AS grows FROM singer_state.acquire_lease('a') \gset
SELECT :'grows' AS grows;
\set VERBOSITY sqlstate
SELECT singer_state.merge('a', '{"c": 2}', token => :old_token);
SELECT singer_state.renew_lease('a', :'old_id');
SELECT singer_state.release_lease('a', :'old_id');
\set VERBOSITY default
SELECT lock_id = :'lock_id' AS the_new_ones FROM singer_state.state_lock WHERE namespace = 'regress_leases';
SELECT singer_state.get('a');
SELECT singer_state.release_lease('a', :'lock_id');

-- the same with a run lock
SELECT lock_id AS old_id, token AS old_token FROM singer_state.acquire_lease('a') \gset
UPDATE singer_state.state_lock SET expires_at = '2000-01-01' WHERE namespace = 'regress_leases';
SELECT singer_state.try_acquire_lock('a');
\set VERBOSITY sqlstate
-- the session that holds the lock may be another client's by now
SELECT singer_state.merge('a', '{"c": 2}', token => :old_token);
SELECT singer_state.merge('a', '{"c": 2}', token => :old_token + 1);
SELECT singer_state.renew_lease('a', :'old_id');
SELECT singer_state.release_lease('a', :'old_id');
SELECT singer_state.acquire_lease('a');
SELECT singer_state.release_lock('a');
SELECT singer_state.merge('a', '{"c": 2}', token => :old_token);
SELECT singer_state.renew_lease('a', :'old_id');
\set VERBOSITY default
SELECT leases_held();

-- Rolled back, a takeover never was: there is the lease again, and no run lock
-- under which somebody could write meanwhile.
SELECT lock_id AS old_id, token AS old_token FROM singer_state.acquire_lease('a') \gset
UPDATE singer_state.state_lock SET expires_at = '2000-01-01' WHERE namespace = 'regress_leases';
BEGIN;
SELECT singer_state.try_acquire_lock('a');
ROLLBACK;
SELECT singer_state.holds_lock('a');
BEGIN;
SAVEPOINT s;
SELECT singer_state.try_acquire_lock('a');
ROLLBACK TO s;
SELECT singer_state.holds_lock('a');
COMMIT;
SELECT singer_state.merge('a', '{"c": 3}', token => :old_token);
SELECT singer_state.release_lease('a', :'old_id');
SELECT leases_held();

-- Anybody may write after an expired lease.
SELECT lock_id AS old_id, token AS old_token FROM singer_state.acquire_lease('a') \gset
UPDATE singer_state.state_lock SET expires_at = '2000-01-01' WHERE namespace = 'regress_leases';
SELECT singer_state.merge('a', '{"d": 1}');
SELECT singer_state.release_lease('a', :'old_id');

-- A lease belongs to the transaction that takes or releases it.
BEGIN;
SELECT token > 0 AS taken FROM singer_state.acquire_lease('a');
ROLLBACK;
SELECT count(*) FROM singer_state.locks;
SELECT lock_id FROM singer_state.acquire_lease('a') \gset
BEGIN;
SELECT singer_state.release_lease('a', :'lock_id');
SELECT count(*) FROM singer_state.locks;
ROLLBACK;
SELECT count(*) FROM singer_state.locks;
BEGIN;
SELECT singer_state.release_lease('a', :'lock_id');
SELECT token > 0 AS taken_again FROM singer_state.acquire_lease('a');
COMMIT;
SELECT count(*) FROM singer_state.locks;
SELECT singer_state.break_lock('a');
SELECT leases_held();

-- One that has no end.
SELECT lock_id IS NOT NULL AS taken FROM singer_state.acquire_lease('a');
UPDATE singer_state.state_lock SET locked_at = '2000-01-01 00:00+00', expires_at = 'infinity',
	holder_user = 'u', application_name = 'p', client_addr = NULL
WHERE namespace = 'regress_leases';
SELECT singer_state.merge('a', '{"b": 1}');
SELECT singer_state.break_lock('a');

-- Namespaces are independent.
SELECT lock_id FROM singer_state.acquire_lease('a') \gset
SET singer_state.namespace = 'regress_leases_2';
SELECT count(*) FROM singer_state.locks;
SELECT token > 0 AS taken FROM singer_state.acquire_lease('a');
SELECT singer_state.break_lock('a');
SET singer_state.namespace = 'regress_leases';
SELECT singer_state.release_lease('a', :'lock_id');

-- Arguments.
\set VERBOSITY sqlstate
SELECT singer_state.acquire_lease(NULL);
SELECT singer_state.acquire_lease('');
SELECT singer_state.acquire_lease('a', '0');
SELECT singer_state.acquire_lease('a', '-1 s');
SELECT singer_state.acquire_lease('a', '10000000 years');
SELECT singer_state.renew_lease(NULL, gen_random_uuid());
SELECT singer_state.renew_lease('a', NULL);
SELECT singer_state.renew_lease('a', gen_random_uuid(), '0');
SELECT singer_state.release_lease(NULL, gen_random_uuid());
SELECT singer_state.release_lease('a', NULL);
BEGIN READ ONLY;
SELECT singer_state.acquire_lease('a');
ROLLBACK;
BEGIN READ ONLY;
SELECT singer_state.renew_lease('a', gen_random_uuid());
ROLLBACK;
BEGIN READ ONLY;
SELECT singer_state.release_lease('a', gen_random_uuid());
ROLLBACK;
\set VERBOSITY default
SELECT leases_held();
SET singer_state.lease_ttl = 7;
SELECT expires_at < clock_timestamp() + interval '8 s' AS short FROM singer_state.acquire_lease('a');
SELECT singer_state.break_lock('a');
RESET singer_state.lease_ttl;

SELECT count(*) FROM singer_state.clear_all('*');
SELECT count(*) FROM singer_state.state_lock WHERE namespace LIKE 'regress_leases%';
DROP FUNCTION leases_held();
RESET singer_state.namespace;
RESET singer_state.lock_timeout;
