\set id random(1, 100)
BEGIN;
SELECT partial_state FROM plain WHERE namespace = 'meltano' AND state_id = :id FOR UPDATE;
UPDATE plain SET partial_state = :document_a, version = version + 1, updated_at = clock_timestamp() WHERE namespace = 'meltano' AND state_id = :id;
COMMIT;
BEGIN;
SELECT partial_state FROM plain WHERE namespace = 'meltano' AND state_id = :id FOR UPDATE;
UPDATE plain SET partial_state = :document_b, version = version + 1, updated_at = clock_timestamp() WHERE namespace = 'meltano' AND state_id = :id;
COMMIT;
