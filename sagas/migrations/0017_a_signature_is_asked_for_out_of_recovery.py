"""A run may ask for a signature in the commit that settles what was unknown: the guard's table is written anew."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from sagas import guards


def moves(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(guards.legal_moves())


class Migration(migrations.Migration):
    dependencies = [("sagas", "0016_two_people_lift")]
    operations = [migrations.RunPython(moves, migrations.RunPython.noop)]
