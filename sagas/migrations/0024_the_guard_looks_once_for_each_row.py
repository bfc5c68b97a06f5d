"""The guard of moves asks its two questions in one look, and for each row by the index, however it was planned."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards


def functions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(guards.functions())


class Migration(migrations.Migration):
    dependencies = [("sagas", "0023_a_reason_has_a_code")]
    operations = [migrations.RunPython(functions, migrations.RunPython.noop)]
