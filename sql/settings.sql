-- Settings: defaults, what is refused and what the refusal advises.
LOAD 'singer_state';

SELECT name, setting, unit, context, vartype
FROM pg_settings WHERE name LIKE 'singer\_state.%'
ORDER BY name COLLATE "C";
SHOW singer_state.namespace;
SHOW singer_state.lock_timeout;
SHOW singer_state.lease_ttl;
SHOW singer_state.history_limit;
SHOW singer_state.max_state_size;
SHOW singer_state.notify;
-- described for those who look them up
SELECT count(*) FROM pg_settings
WHERE name LIKE 'singer\_state.%'
	AND (short_desc IS NULL OR extra_desc IS NULL OR short_desc = '' OR extra_desc = '');

-- units
SET singer_state.lock_timeout = '2min';
SHOW singer_state.lock_timeout;
SET singer_state.lock_timeout = -1;
SHOW singer_state.lock_timeout;
SET singer_state.lock_timeout = 0;
SHOW singer_state.lock_timeout;
RESET singer_state.lock_timeout;
SET singer_state.lease_ttl = '10min';
SHOW singer_state.lease_ttl;
RESET singer_state.lease_ttl;
SET singer_state.max_state_size = '1MB';
SHOW singer_state.max_state_size;
RESET singer_state.max_state_size;
SET singer_state.history_limit = -1;
SET singer_state.history_limit = 0;
RESET singer_state.history_limit;

-- refused
SET singer_state.namespace = '';
SET singer_state.namespace TO DEFAULT;
SELECT set_config('singer_state.namespace', repeat('n', 256), false);
SELECT length(set_config('singer_state.namespace', repeat('n', 255), false));
RESET singer_state.namespace;
SET singer_state.lock_timeout = -2;
SET singer_state.lock_timeout = 'soon';
SET singer_state.lease_ttl = 0;
SET singer_state.lease_ttl = -1;
SET singer_state.history_limit = -2;
SET singer_state.history_limit = 'all';
SET singer_state.max_state_size = 0;
SET singer_state.max_state_size = '2GB';
SET singer_state.notify = 'perhaps';
-- nothing changed
SELECT name, setting FROM pg_settings WHERE name LIKE 'singer\_state.%'
ORDER BY name COLLATE "C";

-- Who may write states must not switch off their history or their limit.
CREATE ROLE regress_settings_user;
SET ROLE regress_settings_user;
\set VERBOSITY sqlstate
SET singer_state.history_limit = 0;
SET singer_state.max_state_size = '1MB';
\set VERBOSITY default
SET singer_state.namespace = 'mine';
SET singer_state.lock_timeout = '1s';
SET singer_state.lease_ttl = '60s';
SET singer_state.notify = on;
RESET ROLE;
RESET ALL;
DROP ROLE regress_settings_user;
