"""Saved views of the queue, and who has a case open. Nothing of either is ever deleted by the application."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

GRANTS = (
    "SELECT, INSERT ON workbench_savedview",
    "UPDATE (deleted_by, deleted_at) ON workbench_savedview",
    "SELECT, INSERT, UPDATE ON workbench_presence",
)


def grant(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    role = schema_editor.quote_name(settings.APP_DB_ROLE)
    for rights in GRANTS:
        schema_editor.execute(f"GRANT {rights} TO {role}")


class Migration(migrations.Migration):

    dependencies = [
        ('workbench', '0004_rights_of_bulks'),
    ]

    operations = [
        migrations.CreateModel(
            name='Presence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('handoff_ref', models.CharField(db_index=True, max_length=80)),
                ('seen_at', models.DateTimeField()),
                ('person', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='presence', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=40)),
                ('query', models.CharField(max_length=600)),
                ('shared', models.BooleanField(default=False)),
                ('saved_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('deleted_by', models.CharField(blank=True, max_length=120)),
                ('deleted_at', models.DateTimeField(blank=True, null=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='views', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('shared', False)), fields=('person', 'name'), name='view_named_once_by_a_person'), models.UniqueConstraint(condition=models.Q(('deleted_at', None), ('shared', True)), fields=('name',), name='view_named_once_for_all'), models.CheckConstraint(condition=models.Q(('name', ''), _negated=True), name='view_has_a_name'), models.CheckConstraint(condition=models.Q(models.Q(('deleted_at', None), ('deleted_by', '')), models.Q(('deleted_at__isnull', False), models.Q(('deleted_by', ''), _negated=True)), _connector='OR'), name='view_deleted_who_and_when')],
            },
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
