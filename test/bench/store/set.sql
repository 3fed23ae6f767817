\set id random(101, 200)
SELECT singer_state.set(:id, :document_a);
SELECT singer_state.set(:id, :document_b);
