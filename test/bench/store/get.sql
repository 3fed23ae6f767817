\set id random(:first, :first + 99)
SELECT singer_state.get(:id);
