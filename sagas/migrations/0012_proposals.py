"""One person's verdict that waits for a second person, with its guards and rights."""

import django.db.models.deletion
import sagas.models.clock
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards
from sagas.states import Machine


def guard(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    role = schema_editor.quote_name(settings.APP_DB_ROLE)
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(guards.legal_moves())
        cursor.execute(guards.triggers_of(Machine.PROPOSAL))
        cursor.execute(f"GRANT SELECT, INSERT, UPDATE ON sagas_proposal TO {role}")
        cursor.execute(f"GRANT USAGE ON SEQUENCE sagas_proposal_id_seq TO {role}")


class Migration(migrations.Migration):
    dependencies = [("sagas", "0011_attempts_numbered_once")]
    operations = [
        migrations.CreateModel(
            name="Proposal",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ref", models.TextField(unique=True)),
                ("state", models.TextField(default="open")),
                ("version", models.PositiveIntegerField(default=1)),
                ("verb", models.TextField()),
                ("step", models.TextField(default="")),
                ("arguments", models.JSONField(default=dict)),
                ("basis", models.TextField()),
                ("shapers", models.JSONField(default=list)),
                ("proposed_by", models.TextField()),
                ("proposed_by_name", models.TextField()),
                ("reason", models.TextField(default="")),
                ("proposed_at", models.DateTimeField(db_default=sagas.models.clock.DatabaseNow())),
                ("expires_at", models.DateTimeField()),
                ("decided_by", models.TextField(default="")),
                ("decided_by_name", models.TextField(default="")),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "handoff",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="sagas.handoff",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="proposals",
                        to="sagas.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["handoff"], name="proposal_one_open", condition=models.Q(state="open")
                    )
                ],
                "indexes": [
                    models.Index(fields=["run", "id"], name="proposal_run"),
                    models.Index(
                        fields=["proposed_by"], name="proposal_open_by", condition=models.Q(state="open")
                    ),
                ],
            },
        ),
        migrations.RunPython(guard, migrations.RunPython.noop),
    ]
