"""A bulk that ended keeps a line on its author's queue until they dismiss it."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

RIGHT = "UPDATE (dismissed_at) ON workbench_bulk"


def grant(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"GRANT {RIGHT} TO {schema_editor.quote_name(settings.APP_DB_ROLE)}")


def revoke(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"REVOKE {RIGHT} FROM {schema_editor.quote_name(settings.APP_DB_ROLE)}")


class Migration(migrations.Migration):

    dependencies = [
        ('workbench', '0005_saved_views_and_presence'),
    ]

    operations = [
        migrations.AddField(
            model_name='bulk',
            name='dismissed_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name='bulk',
            index=models.Index(condition=models.Q(('dismissed_at', None), ('started_at__isnull', False)), fields=['actor_id', '-id'], name='bulk_not_dismissed'),
        ),
        migrations.RunPython(grant, revoke),
    ]
