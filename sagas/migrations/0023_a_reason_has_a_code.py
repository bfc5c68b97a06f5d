"""Beside the reason that a person writes stands its code, in the trail and with what waits for a second person."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def let_it_be_written(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """An entry's columns are granted one by one."""
    role = schema_editor.quote_name(settings.APP_DB_ROLE)
    schema_editor.execute(f"GRANT INSERT (reason_code) ON sagas_entry TO {role}")


class Migration(migrations.Migration):
    dependencies = [("sagas", "0022_a_case_can_be_asked_for")]
    operations = [
        migrations.AddField("entry", "reason_code", models.TextField(db_default="", default="")),
        migrations.AddField("permit", "reason_code", models.TextField(db_default="", default="")),
        migrations.AddField("proposal", "reason_code", models.TextField(db_default="", default="")),
        migrations.RunPython(let_it_be_written, migrations.RunPython.noop),
    ]
