"""`manage.py people add|give|take|off|list|load-demo`: accounts and roles from the command line."""

from __future__ import annotations

import getpass
import os
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from workbench.commands import people
from workbench.queries.people import COMMAND_LINE, Person, person_named
from workbench.queries.people import people as everybody
from workbench.roles import Role

# Reached by name: nothing may depend on the proving ground, and a deployment may leave it out.
LOAD_DEMO = "workbench.labs.cast.load"


class Command(BaseCommand):
    """The first admin of an installation comes from here; passwords are asked for or read from a variable."""

    help = "Add people, give and take roles, list them, or load the demo's cast."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        roles = [str(role) for role in Role]
        add = actions.add_parser("add")
        add.add_argument("username")
        add.add_argument("--name", required=True, help="the name that others see")
        add.add_argument("--roles", nargs="*", choices=roles, default=[])
        add.add_argument("--password-env", help="name of the variable that holds the password")
        for verb in ("give", "take"):
            change = actions.add_parser(verb)
            change.add_argument("username")
            change.add_argument("role", choices=roles)
            change.add_argument("--reason", required=True)
        off = actions.add_parser("off")
        off.add_argument("username")
        off.add_argument("--reason", required=True)
        actions.add_parser("list")
        actions.add_parser("load-demo")

    def handle(self, *args: Any, **options: Any) -> None:
        match options["action"]:
            case "add":
                self._add(options)
            case "give":
                reason, role = options["reason"], Role(options["role"])
                people.give_roles(
                    actor=COMMAND_LINE, person=self._person(options), roles=[role], reason=reason
                )
            case "take":
                reason, role = options["reason"], Role(options["role"])
                people.take_role(actor=COMMAND_LINE, person=self._person(options), role=role, reason=reason)
            case "off":
                people.switch_off(actor=COMMAND_LINE, person=self._person(options), reason=options["reason"])
            case "list":
                for person, roles in everybody():
                    self.stdout.write(f"{person.username}\t{person.display_name}\t{', '.join(roles)}")
            case _:
                self._load_demo()

    def _add(self, options: dict[str, Any]) -> None:
        variable = options["password_env"]
        password = os.environ.get(variable, "") if variable else getpass.getpass("Password: ")
        try:
            person = people.add_person(
                actor=COMMAND_LINE,
                username=options["username"],
                display_name=options["name"],
                password=password,
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        people.give_roles(actor=COMMAND_LINE, person=person, roles=[Role(role) for role in options["roles"]])
        self.stdout.write(f"{person.username} is added.")

    def _load_demo(self) -> None:
        try:
            cast = import_string(LOAD_DEMO)()
        except RuntimeError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(cast)} people are there: {', '.join(person.username for person in cast)}")

    def _person(self, options: dict[str, Any]) -> Person:
        person = person_named(options["username"])
        if person is None:
            raise CommandError(f"There is no person {options['username']!r}.")
        return person
