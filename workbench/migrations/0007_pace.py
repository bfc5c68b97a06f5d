"""How often somebody did something lately: what a limit is held against."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

RIGHT = "SELECT, INSERT, UPDATE ON workbench_pace"


def grant(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    schema_editor.execute(f"GRANT {RIGHT} TO {schema_editor.quote_name(settings.APP_DB_ROLE)}")


class Migration(migrations.Migration):

    dependencies = [
        ('workbench', '0006_lines_of_bulks'),
    ]

    operations = [
        migrations.CreateModel(
            name='Pace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('who', models.CharField(max_length=120)),
                ('what', models.CharField(max_length=20)),
                ('since', models.DateTimeField()),
                ('count', models.PositiveIntegerField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('who', 'what'), name='pace_once_for_who_and_what')],
            },
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
