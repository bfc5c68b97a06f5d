"""Somebody keeps the next compensation from beginning; a plan may leave one out that was never tried."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards


def moves(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(guards.legal_moves())


class Migration(migrations.Migration):
    dependencies = [("sagas", "0017_a_signature_is_asked_for_out_of_recovery")]
    operations = [
        migrations.AddField("run", "paused_by", models.TextField(default="")),
        migrations.AddField("run", "paused_at", models.DateTimeField(null=True)),
        migrations.RunPython(moves, migrations.RunPython.noop),
    ]
