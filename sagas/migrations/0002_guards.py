"""Guards and rights: what the database itself refuses, and what the application role may do."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards


def guard(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        for part in (guards.ENTRY_TRANSACTION, guards.legal_moves(), guards.triggers()):
            cursor.execute(part)
        cursor.execute(guards.grants(settings.APP_DB_ROLE))


class Migration(migrations.Migration):
    dependencies = [("sagas", "0001_initial")]
    operations = [migrations.RunPython(guard, migrations.RunPython.noop)]
