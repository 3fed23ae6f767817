-- Patterns are shell globs: anchored, case-sensitive, and nothing but
-- * ? [ ] is special.
SET singer_state.namespace = 'regress_patterns';

SELECT count(singer_state.set(id, '{"a": 1}'))
FROM unnest(ARRAY['dev:a', 'dev:b', 'dev', 'Dev:a', 'prod:a', 'a_b', 'axb',
	'100%', '100x', 'a\b', 'a*b', 'a?b', 'a[b', 'a]b', 'a-b', 'a!b', 'a^b',
	'[a]', '.a', 'a.b', 'dev:z:eu', ' ']) id;

SELECT singer_state.list();
CREATE FUNCTION pg_temp.found(pattern text) RETURNS text LANGUAGE sql AS $$
	SELECT coalesce(string_agg(quote_literal(l), ' '), 'none')
	FROM singer_state.list(pattern) l $$;
SELECT pattern, pg_temp.found(pattern)
FROM unnest(ARRAY['dev', 'dev:*', 'dev:?', 'd*', '*:a', '*:*:*', 'DEV*',
	'[Dd]ev:a', '[!D]ev:a', 'a_b', 'a?b', '100%', '%', '_', 'a\b', 'a\*b',
	'a[*]b', 'a[?]b', 'a[[]b', 'a[]]b', 'a[!a-z]b', 'a[a-z]b', 'a[z-a]b',
	'a[]b', 'a[', '[', '[]', '[!]', '[!', 'a[-]b', 'a[x-]b', 'a[!]b]b', 'a[^a]b', '?',
	' ', '*', '**', '***a', '?*', '', '\*', '[[]a]', 'a.b', '*.b'])
	WITH ORDINALITY AS p (pattern, i)
ORDER BY i;

-- sorted as bytes, whatever the collation of the database
SELECT bool_and(sorted) AS sorted FROM (
	SELECT l COLLATE "C" >= lag(l) OVER (ORDER BY i) AS sorted
	FROM singer_state.list() WITH ORDINALITY AS s (l, i)) s;

-- the others take the same patterns
SELECT k FROM jsonb_object_keys(singer_state.export('dev*')) k ORDER BY k COLLATE "C";
SELECT singer_state.clear_all('dev:?', dry_run => true);
SELECT count(*) FROM singer_state.list();
SELECT singer_state.clear_all('dev:?');
SELECT singer_state.clear_all('dev:?');
SELECT count(*) FROM singer_state.list();

-- clear_all has no default
\set VERBOSITY sqlstate
SELECT singer_state.clear_all();
SELECT singer_state.list(NULL);
\set VERBOSITY default

-- many stars do not take for ever
SELECT count(singer_state.set(repeat('a', 1000), '{"a": 1}'));
SELECT count(*) FROM singer_state.list(repeat('*a', 500) || 'b');
SELECT count(*) FROM singer_state.list(repeat('*a', 500));

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
