"""What the application role may do with bulks: a list is frozen in the database too, only its progress is written."""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

GRANTS = (
    "SELECT, INSERT ON workbench_bulk",
    "UPDATE (state, reason, arguments, per_second, actor_role, started_at, released_at, paused_at, ended_at, "
    "stands_by, why, next_at, runner, runner_until) ON workbench_bulk",
    "SELECT, INSERT ON workbench_bulkmember",
    "UPDATE (state, code, said, first, sent_at, settled_at, queried, asked, ask_at, seen_seq) "
    "ON workbench_bulkmember",
)


def grant(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    role = schema_editor.quote_name(settings.APP_DB_ROLE)
    for rights in GRANTS:
        schema_editor.execute(f"GRANT {rights} TO {role}")


def revoke(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    role = schema_editor.quote_name(settings.APP_DB_ROLE)
    for rights in GRANTS:
        schema_editor.execute(f"REVOKE {rights} FROM {role}")


class Migration(migrations.Migration):
    dependencies = [("workbench", "0003_bulks")]
    operations = [migrations.RunPython(grant, revoke)]
