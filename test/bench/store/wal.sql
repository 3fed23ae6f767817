-- WAL bytes and HOT share of one write, for one number of partitions.
--
-- Variables: partitions, rounds, and changed: whether each write changes the
-- state, or repeats what is there.  Prints one row: bytes with history off,
-- with history on, and of the client; then the same three HOT shares.
\set ON_ERROR_STOP on
SET client_min_messages = warning;

CREATE TEMPORARY TABLE figures (way text, bytes numeric, hot numeric);

-- Run a statement several times, each in a transaction of its own, with the
-- documents in turn.  The first time does not count: it creates the state.
CREATE PROCEDURE pg_temp.measure(way text, target regclass, statement text,
	documents jsonb[], rounds int)
LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	bytes numeric := 0;
	updated bigint := 0;
	hot bigint := 0;
BEGIN
	FOR i IN 0 .. rounds LOOP
		IF i > 0 THEN
			updated := updated - pg_stat_get_xact_tuples_updated(target);
			hot := hot - pg_stat_get_xact_tuples_hot_updated(target);
		END IF;
		EXECUTE 'EXPLAIN (ANALYZE, WAL, FORMAT JSON) ' || statement
			INTO plan USING documents[1 + i % cardinality(documents)];
		IF i > 0 THEN
			updated := updated + pg_stat_get_xact_tuples_updated(target);
			hot := hot + pg_stat_get_xact_tuples_hot_updated(target);
			bytes := bytes + (plan #>> '{0, Plan, WAL Bytes}')::numeric;
		END IF;
		COMMIT;
	END LOOP;
	INSERT INTO pg_temp.figures
		VALUES (way, bytes / rounds, 100.0 * hot / nullif(updated, 0));
END
$$;

SELECT CASE WHEN :'changed' THEN
	array[partitions(:partitions, 'a'), partitions(:partitions, 'b')]
	ELSE array[partitions(:partitions, 'a')] END AS documents \gset

SET singer_state.history_limit = 0;
CALL pg_temp.measure('off', 'singer_state.state',
	$$SELECT singer_state.set('wal off', $1)$$, :'documents', :rounds);
SET singer_state.history_limit = 10;
CALL pg_temp.measure('on', 'singer_state.state',
	$$SELECT singer_state.set('wal on', $1)$$, :'documents', :rounds);
CALL pg_temp.measure('client', 'plain',
	$$INSERT INTO plain (namespace, state_id, completed_state)
	VALUES ('meltano', 'wal', $1)
	ON CONFLICT (namespace, state_id) DO UPDATE
	SET completed_state = excluded.completed_state,
		version = plain.version + 1, updated_at = clock_timestamp()$$,
	:'documents', :rounds);

SELECT string_agg(round(bytes)::text, ' ' ORDER BY position),
	string_agg(coalesce(round(hot)::text, '-'), ' ' ORDER BY position)
FROM (VALUES ('off', 1), ('on', 2), ('client', 3)) w (way, position)
	JOIN figures USING (way);
