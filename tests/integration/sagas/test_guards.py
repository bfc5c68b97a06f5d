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
