"""The house rules hold in every file, and each of them notices what it forbids."""

from __future__ import annotations

import pytest

from tests.house import rules
from tests.house.rules import PRODUCT_RULES, Rule
from tests.house.source import Source, sources

PLANTED: tuple[tuple[Rule, str, str], ...] = (
    (rules.only_the_ledger_writes, "sagas/sweep.py", "run.state = 'completed'"),
    (rules.only_the_ledger_writes, "sagas/queries.py", "Run.objects.filter(pk=1).update(due_at=None)"),
    (rules.only_the_ledger_writes, "sagas/looks.py", "Attempt.objects.create(run=run)"),
    (rules.only_the_ledger_writes, "sagas/api.py", "handoff.save()"),
    (
        rules.only_the_ledger_writes,
        "workbench/commands/retry.py",
        "cursor.execute('UPDATE sagas_run SET owner = 1')",
    ),
    (rules.doors_and_queries_only_read, "workbench/queries/people.py", "person.save()"),
    (
        rules.doors_and_queries_only_read,
        "workbench/web/views/account.py",
        "User.objects.create(username='x')",
    ),
    (rules.doors_know_no_tables, "workbench/web/views/queue.py", "from sagas.models import Run"),
    (
        rules.doors_know_no_tables,
        "workbench/api/views.py",
        "from workbench import models\nimport workbench.models",
    ),
    (rules.no_signals, "workbench/apps.py", "from django.db.models.signals import post_save"),
    (rules.no_signals, "workbench/models/user.py", "from django.dispatch import receiver"),
    (rules.no_signals, "sagas/tasks.py", "from celery.signals import task_failure"),
    (rules.only_the_bell_sends_messages, "workbench/commands/retry.py", "drain.delay()"),
    (rules.only_the_bell_sends_messages, "sagas/sweep.py", "current_app.send_task('sagas.drain')"),
    (rules.celery_neither_waits_nor_retries, "sagas/relay.py", "drain.apply_async(countdown=2)"),
    (rules.celery_neither_waits_nor_retries, "sagas/relay.py", "current_app.send_task(BELL, retry=True)"),
    (
        rules.celery_neither_waits_nor_retries,
        "sagas/tasks.py",
        "@shared_task(autoretry_for=(OSError,))\ndef f(): pass",
    ),
    (rules.tasks_are_bells, "sagas/tasks.py", "@shared_task\ndef run_action(action_id): pass"),
    (rules.tasks_are_bells, "sagas/tasks.py", "@shared_task\ndef f():\n" + "    step()\n" * 6),
    (rules.no_on_commit, "workbench/commands/_dispatch.py", "transaction.on_commit(notify)"),
    (rules.nothing_prints, "sagas/executor.py", "print('here')"),
    (rules.modules_say_what_they_own, "sagas/executor.py", "import json"),
    (rules.public_names_are_described, "sagas/executor.py", "def perform(): pass"),
    (rules.modules_are_nouns_of_the_product, "sagas/utils.py", ""),
    (rules.the_simulated_world_stands_alone, "tools/simulator/bank.py", "from tools.keys import forward_key"),
    (rules.the_simulated_world_stands_alone, "tools/simulator/bank.py", "import httpx2"),
)


@pytest.mark.parametrize("rule", PRODUCT_RULES, ids=lambda rule: rule.__name__)
def test_the_rule_holds_everywhere(rule: Rule) -> None:
    broken = [f"{source.name}:{fault}" for source in sources() for fault in rule(source)]

    assert broken == [], "\n".join([rule.__doc__ or "", *broken])


@pytest.mark.parametrize(
    ("rule", "name", "text"), PLANTED, ids=[f"{rule.__name__}-{n}" for n, (rule, _, _) in enumerate(PLANTED)]
)
def test_the_rule_notices_what_it_forbids(rule: Rule, name: str, text: str) -> None:
    assert list(rule(Source(name=name, text=text)))


def test_every_rule_is_tried_with_something_it_forbids() -> None:
    assert {rule for rule, _, _ in PLANTED} == {*PRODUCT_RULES}


def test_tests_say_what_they_are_about() -> None:
    silent = [source.name for source in sources("tests") if list(rules.modules_say_what_they_own(source))]

    assert silent == []
