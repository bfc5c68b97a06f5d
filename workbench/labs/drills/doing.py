"""What goes wrong in a drill, done to the processes, the broker, the database and the systems outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from signal import Signals
from typing import Any

from django.db import connections
from psycopg import sql

from sagas import api
from sagas.facts import Actor
from tools.contract import Json
from tools.drills.drill import concerns
from tools.drills.translate import about
from workbench.commands import people
from workbench.labs.drills import inside
from workbench.labs.drills.asking import Asker
from workbench.labs.drills.casting import CASTING, person_of
from workbench.labs.drills.cue import Part, Score
from workbench.labs.drills.ground import Ground
from workbench.labs.drills.publishing import Publisher
from workbench.models import User
from workbench.roles import Role

_TABLES = {
    "entry": "sagas_entry",
    "outbox": "sagas_outbox",
    "receipt": "workbench_receipt",
    "attempt": "sagas_attempt",
}


class NotPlayable(Exception):
    """The product has nothing that this word of a drill could be played with."""


class Mischief:
    """Does the faults of one drill, and undoes of them what would reach the next one."""

    def __init__(self, score: Score, ground: Ground, asker: Asker, publisher: Publisher) -> None:
        self._score, self._ground, self._asker, self._publisher = score, ground, asker, publisher
        self._arena = ground.arena
        self._later: list[tuple[float, Callable[[], None]]] = []
        self._triggers: list[tuple[str, str]] = []

    def do(self, fault: Mapping[str, Json], part: Part | None) -> None:
        """Do one fault. Raises `NotPlayable`."""
        what = str(fault["what"])
        doing: Callable[[Mapping[str, Json], Part | None], None] | None = getattr(self, f"_{what}", None)
        if doing is None:
            raise NotPlayable(what)
        doing(fault, part)

    def tend(self) -> None:
        """Do what was put off until now."""
        for at, act in list(self._later):
            if time.monotonic() >= at:
                self._later.remove((at, act))
                act()

    @property
    def busy(self) -> bool:
        """Whether something is still to be done after a while of the wall clock."""
        return bool(self._later)

    def clear(self) -> None:
        """Take away what was put into the database."""
        with self._ground.owner() as connection:
            for table, name in self._triggers:
                names = (sql.Identifier(name), sql.Identifier(table))
                connection.execute(sql.SQL("DROP TRIGGER IF EXISTS {} ON {}").format(*names))
                connection.execute(sql.SQL("DROP FUNCTION IF EXISTS {}()").format(sql.Identifier(name)))
        self._triggers.clear()

    # --- Processes ----------------------------------------------------------------------------------------------------

    def _named(self, fault: Mapping[str, Json], part: Part | None) -> list[str]:
        match fault["process"]:
            case "owner":
                pulses = inside.pulses([part.ref]) if part is not None else []
                name = self._ground.name_of_owner(pulses[0].held_by) if pulses and pulses[0].held_by else ""
                if not name:
                    raise NotPlayable("owner: nobody holds the run at this moment")
                return [name]
            case "database":
                return ["database"]
            case "all_workers":
                return self._arena.names("worker")
            case kind:
                names = self._arena.names(str(kind))
                return names if fault.get("together") else names[:1]

    def _kill(self, fault: Mapping[str, Json], part: Part | None) -> None:
        for name in self._named(fault, part):
            if name == "database":
                self._arena.kill_database()
                self._arena.start_database()
                continue
            self._arena.kill(name, group=True)
            if fault.get("then") == "start":
                self._arena.start(name)

    def _pause(self, fault: Mapping[str, Json], part: Part | None) -> None:
        for name in self._named(fault, part):
            self._arena.pause(name)
            if "for_s" in fault:
                self._later.append(
                    (time.monotonic() + float(fault["for_s"]), partial(self._arena.wake, name))
                )

    def _wake(self, fault: Mapping[str, Json], part: Part | None) -> None:
        if fault["process"] == "owner":
            for name in self._arena.names():
                self._arena.wake(name)
            return
        for name in self._named(fault, part):
            self._arena.wake(name)

    def _stop(self, fault: Mapping[str, Json], part: Part | None) -> None:
        for name in self._named(fault, part):
            self._arena.supervisor.signal(name, Signals.SIGTERM)
            if "for_s" in fault:
                end = partial(self._arena.kill, name, group=True)
                self._later.append((time.monotonic() + float(fault["for_s"]), end))

    def _start(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        kind = "worker" if fault["process"] in ("owner", "all_workers") else str(fault["process"])
        for _ in range(int(fault.get("times", 1))):
            down = [name for name in self._arena.names(kind) if not self._runs(name)]
            if down:
                self._arena.start(down[0])
            else:
                self._ground.one_more(kind)

    def _runs(self, name: str) -> bool:
        try:
            return bool(self._arena.pid(name))
        except KeyError:
            return False

    def _restart(self, fault: Mapping[str, Json], part: Part | None) -> None:
        for variable, value in fault.get("environment", {}).items():
            self._arena.environment[variable] = str(value)
        for name in self._named(fault, part):
            self._arena.stop(name)
            self._arena.start(name)

    # --- Messages -----------------------------------------------------------------------------------------------------

    def _broker_emptied(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part
        self._arena.empty_broker()

    def _broker_down(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part
        self._arena.kill_broker()

    def _broker_up(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part
        self._arena.start_broker()

    def _broker_restart(self, fault: Mapping[str, Json], part: Part | None) -> None:
        self._broker_down(fault, part)
        self._broker_up(fault, part)

    def _bell(self, fault: Mapping[str, Json], part: Part | None) -> None:
        refs = [part.ref] if part is not None else [one.ref for one in self._score.parts]
        for ref in refs:
            for _ in range(int(fault.get("times", 1))):
                api.ring(ref)

    def _sweeps(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        for _ in range(int(fault["times"])):
            self._ground.one_more("sweep")

    # --- The store ----------------------------------------------------------------------------------------------------

    def _store_refuses(self, fault: Mapping[str, Json], part: Part | None) -> None:
        self._trigger(fault, part, "RAISE EXCEPTION 'the store refuses, as a drill wants it'", deferred=False)

    def _commit_delayed(self, fault: Mapping[str, Json], part: Part | None) -> None:
        self._trigger(fault, part, f"PERFORM pg_sleep({float(fault['seconds'])})", deferred=True)
        if fault.get("bells"):
            threading.Thread(target=_keep_ringing, args=(float(fault["seconds"]) * 3,), daemon=True).start()

    def _trigger(self, fault: Mapping[str, Json], part: Part | None, act: str, *, deferred: bool) -> None:
        table = _TABLES[str(fault["of"])]
        name = f"drill_{len(self._triggers)}_{self._score.names.prefix}"
        whose = "true" if part is None else self._of_run(table, part)
        kind = "CONSTRAINT TRIGGER" if deferred else "TRIGGER"
        when = "DEFERRABLE INITIALLY DEFERRED" if deferred else ""
        timing = "AFTER" if deferred else "BEFORE"
        function = (
            f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {whose} THEN {act}; END IF; RETURN NEW; END $$"
        )
        trigger = (
            f"CREATE {kind} {name} {timing} INSERT ON {table} {when} FOR EACH ROW EXECUTE FUNCTION {name}()"
        )
        with self._ground.owner() as connection:
            connection.execute(function.encode())
            connection.execute(trigger.encode())
        self._triggers.append((table, name))

    @staticmethod
    def _of_run(table: str, part: Part) -> str:
        if table == "sagas_entry":  # of somebody's command: the engine's own commits are left alone
            return f"NEW.run_ref = '{part.ref}' AND NEW.command_id <> ''"
        if table == "workbench_receipt":
            return "true"
        return f"NEW.run_id = (SELECT id FROM sagas_run WHERE ref = '{part.ref}')"  # noqa: S608  our own words

    def _clock_forward(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        self._ground.hours.jump(float(fault["seconds"]))

    # --- Definitions, tools, people -------------------------------------------------------------------------------------

    def _publish_definition(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        self._publisher.next(fault["change"], CASTING)

    def _publish_contract(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        self._publisher.contract(str(fault["step"]), fault["change"], CASTING)

    def _withdraw_tool(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        self._publisher.withdraw(str(fault["tool"]), CASTING)

    def _restore_tool(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        self._publisher.restore(str(fault["tool"]), CASTING)

    def _change_roles(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        change_roles(self._person(str(fault["actor"])), fault["roles"], CASTING)

    def _disable_person(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del part
        people.switch_off(
            actor=CASTING, person=self._person(str(fault["actor"])), reason="as a drill wants it"
        )

    def _person(self, name: str) -> User:
        person = person_of(self._score, name)
        if person is None:
            raise NotPlayable(f"{name} is no person")
        return person

    # --- Outside --------------------------------------------------------------------------------------------------------

    def _callback(self, fault: Mapping[str, Json], part: Part | None) -> None:
        if part is None:
            raise NotPlayable("a callback is about one run")
        times = int(fault.get("times", 1))
        send = self._asker.callback(part, dict(fault["args"]), str(fault["step"]))

        def once() -> None:
            send()
            connections.close_all()

        threads = [threading.Thread(target=once) for _ in range(times)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)

    def _third_party(self, fault: Mapping[str, Json], part: Part | None) -> None:
        for one in [part] if part is not None else self._score.parts:
            place = about(one.case, str(fault["step"]), str(fault.get("item", "")))
            self._arena.outside.settle(place, str(fault["becomes"]))

    def _system_down(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part
        self._arena.outside.take_down()

    def _system_up(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part
        self._arena.outside.bring_up()

    def _heal(self, fault: Mapping[str, Json], part: Part | None) -> None:
        step, _, direction = str(fault["of"]).partition(".")
        tool = self._score.names.call(self._score.drill.step(step), direction)
        for one in self._score.parts:
            if (part is None or one is part) and concerns(fault, one.id):
                self._arena.outside.heal(tool, match=about(one.case, step))

    def _answer(self, fault: Mapping[str, Json], part: Part | None) -> None:
        step, _, direction = str(fault["of"]).partition(".")
        tool = self._score.names.call(self._score.drill.step(step), direction)
        for one in [part] if part is not None else self._score.parts:
            told = {"mode": "ok", "told": {"answer": dict(fault["answer"])}}
            self._arena.outside.plan({"tool": tool, "match": about(one.case, step), **told})

    def _note(self, fault: Mapping[str, Json], part: Part | None) -> None:
        del fault, part


def _keep_ringing(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        api.ring("")
        time.sleep(0.2)


def change_roles(person: User, roles: list[str], by: Actor) -> None:
    """Give a person these roles and no others."""
    wanted = frozenset(Role(role) for role in roles)
    for role in person.current_roles() - wanted:
        people.take_role(actor=by, person=person, role=role, reason="as a drill wants it")
    people.give_roles(actor=by, person=person, roles=wanted, reason="as a drill wants it")


def plans_of(score: Score, folder: str) -> list[tuple[Mapping[str, Json], Part, dict[str, Any]]]:
    """The faults that happen at a named point: what the processes are armed with, for each run that they concern."""
    found: list[tuple[Mapping[str, Json], Part, dict[str, Any]]] = []
    doings = {"kill": "kill", "pause": "stop", "store_refuses": "raise"}
    for number, fault in enumerate(score.drill.faults):
        moment = fault.get("at", {})
        if "point" not in moment:
            continue
        for part in score.parts:
            if concerns(fault, part.id) and moment.get("run", part.id) == part.id:
                lost = str(moment["point"]).endswith(".commit_lost")
                plan = {
                    "point": moment["point"],
                    "do": "lose" if lost else doings.get(str(fault["what"]), "kill"),
                    "run": part.ref,
                    "nth": moment.get("nth", 1),
                    "once_file": f"{folder}/point-{score.names.prefix}-{number}-{part.case}",
                }
                if "of" in moment:
                    step, _, direction = moment["of"].partition(".")
                    plan["tool"] = score.names.call(score.drill.step(step), direction)
                found.append((fault, part, plan))
    return found
