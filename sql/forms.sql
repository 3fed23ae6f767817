-- The three forms of a document, tap state, payload and flat, and how one is
-- merged into another.
SET singer_state.namespace = 'regress_forms';

-- each stays as it was given
SELECT singer_state.set('tap', '{"bookmarks": {"users": {"id": 1}}, "currently_syncing": null}');
SELECT singer_state.set('payload', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}');
SELECT singer_state.set('flat', '{"users": {"last_id": 3}}');
SELECT singer_state.get(state_id) FROM singer_state.states
ORDER BY state_id COLLATE "C";

-- like into like
SELECT singer_state.merge('tap', '{"bookmarks": {"orders": {"id": 2}}}');
SELECT singer_state.merge('payload', '{"singer_state": {"bookmarks": {"orders": {"id": 2}}}}');
SELECT singer_state.merge('flat', '{"orders": {"last_id": 4}}');
SELECT singer_state.get(state_id) FROM singer_state.states
ORDER BY state_id COLLATE "C";

-- A bare tap state merged into a payload is wrapped as the stored one is: a
-- bookmark beside singer_state would be lost to every reader.
SELECT singer_state.merge('payload', '{"bookmarks": {"items": {"id": 3}}}');
SELECT singer_state.get('payload');
SELECT partial_state ? 'bookmarks' AS beside FROM singer_state.get_state('payload');
-- with validate => false a document is taken as it is
SELECT singer_state.merge('payload', '{"bookmarks": {"items": {"id": 4}}}', validate => false);
SELECT singer_state.get('payload');

-- both parts follow when a completed one decides
SELECT singer_state.set('p2', '{"singer_state": {"bookmarks": {"users": {"id": 1}}}}');
SELECT singer_state.update('p2', '{"bookmarks": {"users": {"id": 2}}}');
SELECT singer_state.get('p2');
SELECT singer_state.promote('p2');
SELECT completed_state FROM singer_state.get_state('p2');

SELECT count(*) FROM singer_state.clear_all('*');
RESET singer_state.namespace;
