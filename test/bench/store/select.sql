\set id random(:first, :first + 99)
SELECT completed_state, partial_state FROM plain WHERE namespace = 'meltano' AND state_id = :id;
