-- Messages: what a line is, what is counted, what is stored.

CREATE SCHEMA regress_messages;

-- What process_message makes of a line: its type, or the error
CREATE FUNCTION regress_messages.try(line text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
	RETURN coalesce(
		singer_state.process_message(singer_state.current_run(), line),
		'nothing');
EXCEPTION WHEN OTHERS THEN
	RETURN sqlstate || ' ' || sqlerrm;
END
$$;

-- Counts and state of the current run; what a transaction has counted is in
-- its row when it has committed
CREATE VIEW regress_messages.seen AS
	SELECT messages_processed, states_processed, lines_skipped,
		message_counts, stream_counts, last_state
	FROM singer_state.runs WHERE run_id = singer_state.current_run();

SELECT singer_state.begin_run('lines', lock => false) IS NOT NULL AS begun;

-- Each type, in any order of keys, with white space
SELECT replace(line, U&'\FEFF', '(BOM)') AS line, regress_messages.try(line) FROM (VALUES
	(1, '{"type": "SCHEMA", "stream": "users", "schema": {"properties": {"type": {"type": "string"}}}, "key_properties": ["id"]}'),
	(2, '{"type":"RECORD","stream":"users","record":{"id":1}}'),
	(3, '{"record": {"type": "STATE", "value": {"type": "SCHEMA"}}, "time_extracted": "2026-01-01T00:00:00Z", "stream": "users", "type": "RECORD"}'),
	(4, E'\t{ "type" :\t"RECORD" , "stream" : "orders" , "record" : { "a" : [ 1 , { } , [ ] , { "type" : "BATCH" } ] } } \r'),
	(5, '{"type":"ACTIVATE_VERSION","stream":"users","version":1764403200000}'),
	(6, '{"type":"BATCH","stream":"users","encoding":{"format":"jsonl","compression":"gzip"},"manifest":["file:///a.jsonl.gz"]}'),
	(7, '{"type":"STATE","value":{"bookmarks":{"users":{"id":1}}}}'),
	(8, '{"value":{"bookmarks":{"users":{"id":2}}},"type":"STATE"}'),
	(9, '{"\u0074ype":"REC\u004FRD","stream":"us\u0065rs","record":{}}'),
	(10, '{"type":"SCHEMA","type":"RECORD","stream":"x","stream":"users","record":1,"record":{}}'),
	(11, U&'\FEFF{"type":"RECORD","stream":"users","record":{}}'),
	(12, ''),
	(13, E' \t\r')
) AS s (number, line) ORDER BY number;
SELECT * FROM regress_messages.seen;

-- Bare states, as targets print them: a tap state, a payload, one that has a
-- type beside its bookmarks; then flat states, one with a stream called "type"
SELECT regress_messages.try('{"bookmarks": {"users": {"id": 3}}, "currently_syncing": "users"}');
SELECT singer_state.get('lines');
SELECT regress_messages.try('{"singer_state": {"bookmarks": {"users": {"id": 4}}}}');
SELECT singer_state.get('lines');
SELECT regress_messages.try('{"bookmarks": {"users": {"id": 5}}, "type": "anything"}');
SELECT singer_state.get('lines');
SELECT singer_state.begin_run('flat', lock => false) IS NOT NULL AS begun;
SELECT regress_messages.try('{"users": 5}');
SELECT singer_state.get('flat');
SELECT regress_messages.try('{"type": {"id": 6}, "users": 5}');
SELECT singer_state.get('flat');
SELECT regress_messages.try('{"type": 7, "stream": 8, "value": 9}');
SELECT singer_state.get('flat');

-- What records may hold that jsonb may not
SELECT left(line, 90) AS line, regress_messages.try(line) FROM (VALUES
	(1, '{"type":"RECORD","stream":"odd","record":{"a":"\u0000","\u0000":1}}'),
	(2, '{"type":"RECORD","stream":"odd","record":{"a":"\ud800","b":"\udc00\ud800"}}'),
	(3, '{"type":"RECORD","stream":"odd","record":{"a":1e400,"b":-1E+400,"c":0.0e-999999999}}'),
	(4, '{"type":"RECORD","stream":"odd","record":{"a":NaN,"b":Infinity,"c":[-Infinity]}}'),
	(5, '{"type":"RECORD","stream":"odd","record":' || repeat('{"a":[', 20000) || repeat(']}', 20000) || '}')
) AS s (number, line) ORDER BY number;

-- Names of streams: what an escape means, and what no text can hold
SELECT line, regress_messages.try(line) FROM (VALUES
	(1, '{"type":"RECORD","stream":"a\"b\\c\/d\te\u00e9\ud835\udd38","record":{}}'),
	(2, '{"type":"RECORD","stream":"","record":{}}'),
	(3, '{"type":"RECORD","stream":"nul\u0000","record":{}}'),
	(4, '{"type":"RECORD","stream":"half\ud83d","record":{}}')
) AS s (number, line) ORDER BY number;
SELECT stream_counts FROM regress_messages.seen;

-- No messages
SELECT line, regress_messages.try(line) FROM (VALUES
	(1, 'INFO tap: starting'),
	(2, '{"type":"RECORD","stream":"users","record":{"a":1}'),
	(3, '{"type":"RECORD","stream":"users","record":{"a":1]}'),
	(4, '{"type":"RECORD","stream":"users","record":{}}}'),
	(5, '{"type":"RECORD","stream":"users","record":{}}{"type":"RECORD","stream":"users","record":{}}'),
	(6, '{"type":"RECORD","stream":"users","record":{},}'),
	(7, '{"type":"RECORD","stream":"users","record":{"a":01}}'),
	(8, '{"type":"RECORD","stream":"users","record":{"a":.5}}'),
	(9, '{"type":"RECORD","stream":"users","record":{"a":truth}}'),
	(10, '{"type":"RECORD","stream":"users","record":{"a":"\x41"}}'),
	(11, E'{"type":"RECORD","stream":"users","record":{"a":"\t"}}'),
	(12, '{"type":"RECORD","stream":"users","record":{"a":"open}}'),
	(13, '{"type":"RECORD","record":{}}'),
	(14, '{"type":"RECORD","stream":1,"record":{}}'),
	(15, '{"type":"RECORD","stream":"users"}'),
	(16, '{"type":"SCHEMA","stream":"users"}'),
	(17, '{"type":"STATE"}'),
	(18, '{"type":"ACTIVATE_VERSION","stream":"users","version":"1"}'),
	(19, '{"type":"ACTIVATE_VERSION","stream":"users","version":1.5}'),
	(20, '{"type":"BATCH","stream":"users","manifest":[]}'),
	(21, '{"type":"LOG","message":"a log line is no state"}'),
	(22, '{"stream":"users","record":{}}'),
	(23, '[]'),
	(24, 'null'),
	(25, '"{}"'),
	(26, E'{"type":"RECORD","stream":"users","record":{}}\n{}')
) AS s (number, line) ORDER BY number;

-- States that no state can be, each with the store's own error
SELECT line, regress_messages.try(line) FROM (VALUES
	(1, '{"type":"STATE","value":null}'),
	(2, '{"type":"STATE","value":[]}'),
	(3, '{"type":"STATE","value":"{\"bookmarks\":{}}"}'),
	(4, '{"type":"STATE","value":{"type":"STATE","value":{}}}'),
	(5, '{"type":"STATE","value":{"singer_state":null}}'),
	(6, '{"type":"STATE","value":{"bookmarks":{"users":"\u0000"}}}'),
	(7, '{"type":"STATE","value":{"bookmarks":{"users":NaN}}}'),
	(8, '{"type":"STATE","value":{"bookmarks":{"users":"\ud800"}}}')
) AS s (number, line) ORDER BY number;
SELECT last_state FROM regress_messages.seen;

-- Many lines: CRLF, empty lines, a BOM, no newline at the end
SELECT singer_state.begin_run('many', lock => false) AS run \gset
SELECT singer_state.process_messages(:'run', U&'\FEFF' ||
	E'{"type":"SCHEMA","stream":"a","schema":{}}\r\n\r\n'
	'{"type":"RECORD","stream":"a","record":{"x":"\\r\\n"}}\r\n\n'
	'{"type":"RECORD","stream":"b","record":{}}\n'
	'{"type":"STATE","value":{"bookmarks":{"a":1}}}\n'
	'{"bookmarks":{"a":2}}');
SELECT * FROM regress_messages.seen;
SELECT singer_state.process_messages(:'run', '');
SELECT singer_state.process_messages(:'run', E'\n\n');

-- A line that is none stops all, or is counted
\set SHOW_CONTEXT never
SELECT singer_state.process_messages(:'run', E'{"bookmarks":{"a":3}}\n\n\nDEBUG a line\n{"bookmarks":{"a":4}}');
SELECT singer_state.process_messages(:'run', E'{"bookmarks":{"a":3}}\n\n\nDEBUG a line\n{"bookmarks":{"a":4}}', on_error => 'skip');
SELECT * FROM regress_messages.seen;

-- A state that cannot be stored stops all in either case
SELECT singer_state.process_messages(:'run', E'{"bookmarks":{"a":5}}\n{"bookmarks":{"a":"\\u0000"}}', on_error => 'skip');
\set SHOW_CONTEXT errors
SELECT singer_state.process_messages(:'run', E'{"bookmarks":{"a":5}}\n\n{"type":"STATE","value":3}');
SELECT * FROM regress_messages.seen;

-- Identical states: counted, written once
SELECT version FROM singer_state.states WHERE state_id = 'many';
SELECT singer_state.process_messages(:'run', repeat(E'{"type":"STATE","value":{"bookmarks":{"a":6}}}\n', 100));
SELECT singer_state.process_messages(:'run', repeat(E'{"type":"STATE","value":{"bookmarks" : {"a":6}}}\n', 100));
SELECT singer_state.process_message(:'run', '{"bookmarks":{"a":6}}');
SELECT version FROM singer_state.states WHERE state_id = 'many';
SELECT * FROM regress_messages.seen;

-- A state without bookmarks is counted, and takes nothing away
SELECT singer_state.process_messages(:'run', E'{}\n{"bookmarks":{}}\n{"type":"STATE","value":{"bookmarks":{},"currently_syncing":null}}');
SELECT version FROM singer_state.states WHERE state_id = 'many';
SELECT * FROM regress_messages.seen;

-- COPY, with all that JSON can hold
COPY singer_state.messages FROM STDIN WITH (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01');
{"type":"RECORD","stream":"a","record":{"a":"tab\tquote\"back\\slash,comma;\u0000","b":"\\N","c":"\\."}}

{"type":"STATE","value":{"bookmarks":{"a":"tab\t\"quoted\", back\\slash \\N \\. \\u0041"}}}
\.
SELECT * FROM regress_messages.seen;
SELECT last_state #>> '{bookmarks,a}' AS value FROM regress_messages.seen;
COPY singer_state.messages (message) FROM STDIN WITH (FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01');
{"type":"STATE","value":{"bookmarks":{"a":8}}}

not json
\.
SELECT last_state FROM regress_messages.seen;

-- INSERT
INSERT INTO singer_state.messages VALUES
	('{"type":"RECORD","stream":"a","record":{}}'),
	(NULL),
	(E'{"bookmarks":{"a":9}}\n{"bookmarks":{"a":10}}')
	RETURNING message;
INSERT INTO singer_state.messages
	SELECT '{"bookmarks":{"a":' || n || '}}' FROM generate_series(11, 1000) n;
SELECT version, partial_state FROM singer_state.states WHERE state_id = 'many';
SELECT * FROM singer_state.messages;

-- Arguments
SELECT singer_state.process_message(NULL, '{}');
SELECT singer_state.process_message(:'run', NULL);
SELECT singer_state.process_messages(:'run', NULL);
SELECT singer_state.process_messages(:'run', '', NULL);
SELECT singer_state.process_messages(:'run', '', 'ignore');
SELECT singer_state.process_message('00000000-0000-0000-0000-000000000000', '{}');
SELECT status FROM singer_state.finish_run(:'run');
INSERT INTO singer_state.messages VALUES ('{"bookmarks":{"a":9}}');

-- Other views cannot have the triggers: their first column may be anything.
CREATE VIEW regress_messages.other AS SELECT 1 AS message WHERE false;
CREATE TRIGGER messages_insert INSTEAD OF INSERT ON regress_messages.other
	FOR EACH ROW EXECUTE FUNCTION singer_state.messages_insert();
CREATE TABLE regress_messages.messages (message integer);
CREATE TRIGGER messages_end AFTER INSERT ON regress_messages.messages
	FOR EACH STATEMENT EXECUTE FUNCTION singer_state.messages_end();
SELECT singer_state.begin_run('others') IS NOT NULL AS begun;
INSERT INTO regress_messages.other VALUES (12345);
INSERT INTO regress_messages.messages VALUES (12345);
SELECT status FROM singer_state.finish_run(singer_state.current_run());

\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP SCHEMA regress_messages CASCADE;
DELETE FROM singer_state.run;
DELETE FROM singer_state.state;
DELETE FROM singer_state.state_history;
