-- Export and import: inverse of each other, all or nothing.
SET singer_state.namespace = 'regress_export';

SELECT singer_state.export();
SELECT singer_state.set('a', '{"bookmarks": {"users": {"id": 1}}}');
SELECT singer_state.set('b', '{"singer_state": {"bookmarks": {}}}', '{"singer_state": {"bookmarks": {"x": {"y": 1}}}}');
SELECT singer_state.set('dev:c', '{}');
SELECT singer_state.merge('dev:d', '{"flat": 1}');
SELECT singer_state.set('e', '[1, 2]', validate => false);
SELECT jsonb_pretty(singer_state.export());
SELECT singer_state.export('dev:*');
SELECT singer_state.export('nothing*');

-- there and back
SELECT singer_state.export() AS file \gset
SELECT count(*) FROM singer_state.clear_all('*');
SELECT singer_state.import(:'file');
SELECT singer_state.export() = :'file' AS same;
-- into another namespace
SET singer_state.namespace = 'regress_export_2';
SELECT singer_state.import(:'file');
SELECT singer_state.export() = :'file' AS same;
SELECT count(*) FROM singer_state.clear_all('*');
SET singer_state.namespace = 'regress_export';

-- existing ids
SELECT singer_state.import('{"new": {"completed": {"n": 1}}, "b": {"completed": {"n": 2}}}');
SELECT singer_state.get('new') IS NULL AS all_or_nothing;
\set VERBOSITY sqlstate
SELECT singer_state.import('{"new": {"completed": {"n": 1}}, "b": {"completed": {"n": 2}}}', on_conflict => 'error');
SELECT singer_state.import('{}', on_conflict => 'sometimes');
SELECT singer_state.import('{}', on_conflict => NULL);
\set VERBOSITY default
SELECT singer_state.import('{"new": {"completed": {"n": 1}}, "b": {"completed": {"n": 2}}}', on_conflict => 'skip');
SELECT singer_state.get('new'), singer_state.get('b');
SELECT singer_state.import('{"new": {"completed": {"n": 3}}, "b": {"completed": {"n": 4}, "partial": {"m": 1}}}', on_conflict => 'overwrite');
SELECT singer_state.get('new'), singer_state.get('b');
SELECT version, operation FROM singer_state.history('b');

-- parts that are missing or null are empty, as in files that Meltano wrote
SELECT singer_state.import('{"i1": {}, "i2": {"completed": null, "partial": {"a": 1}}, "i3": {"partial": null, "completed": {"a": 1}}}');
SELECT singer_state.export('i?');
SELECT singer_state.import('{}');

-- what is no export file
\set VERBOSITY sqlstate
SELECT singer_state.import('[]');
SELECT singer_state.import('1');
SELECT singer_state.import('{"j": 1}');
SELECT singer_state.import('{"j": []}');
SELECT singer_state.import('{"j": null}');
SELECT singer_state.import('{"j": {"completed": 1}}');
SELECT singer_state.import('{"j": {"completed": {}, "unknown": {}}}');
SELECT singer_state.import('{"j": {"bookmarks": {"users": {"id": 1}}}}');
\set VERBOSITY default
-- whose entry it is, is said
SELECT singer_state.import('{"good": {"completed": {"a": 1}}, "bad one": {"completed": "x"}}');
SELECT singer_state.list('[jg]*');

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
