"""The guard asks for the entry of a change in words that let its plan use the partial index: it read the whole trail."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards


def functions(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(guards.functions())


class Migration(migrations.Migration):
    dependencies = [("sagas", "0019_the_queue_is_filtered_by_its_summary")]
    operations = [migrations.RunPython(functions, migrations.RunPython.noop)]
