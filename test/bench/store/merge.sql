\set id random(1, 100)
SELECT singer_state.merge(:id, :patch_a);
SELECT singer_state.merge(:id, :patch_b);
