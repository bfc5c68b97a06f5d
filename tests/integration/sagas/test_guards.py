"""The database refuses what goes round the ledger."""

import pytest
from django.db import connection

from sagas.states import legal_pairs

pytestmark = pytest.mark.usefixtures("db_clean")


@pytest.mark.requirement("S4-28")
def test_the_guard_in_the_database_holds_the_very_moves_of_the_state_tables() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT machine, source, target FROM sagas_legal_move")
        stored = frozenset(cursor.fetchall())

    assert stored == legal_pairs()


@pytest.mark.requirement("S4-28")
def test_the_guard_looks_up_one_entry_for_each_row_even_if_it_was_planned_on_an_empty_trail() -> None:
    """A plan lasts as long as its connection: one that reads the whole trail is a step that costs more every day."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'sagas_guard_move'")
        body = cursor.fetchone()[0]
        look = body[body.index("SELECT") : body.index("LIMIT 1")]
        for word, stands_for in {
            "INTO wrong": "",
            "TG_ARGV[0]": "'action'",
            "old_rows": "sagas_action",
            "new_rows": "sagas_action",
        }.items():
            look = look.replace(word, stands_for)
        cursor.execute(f"EXPLAIN {look} LIMIT 1")
        plan = [line for (line,) in cursor.fetchall()]

    at = next(number for number, line in enumerate(plan) if "sagas_entry e" in line)
    assert "entry_per_change" in plan[at]
    assert "object_id = n.id" in plan[at + 1]
    assert "object_version = n.version" in plan[at + 1]
