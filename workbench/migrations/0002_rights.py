"""What the application role may do with the people side: receipts and previews only ever grow (S4-28).

Columns that carry identity or history (`username`, who granted, what a token is) are not updatable at all.
"""

from django.apps.registry import Apps
from django.conf import settings
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

GRANTS = (
    "SELECT, INSERT ON workbench_user",
    "UPDATE (password, last_login, display_name, language, time_zone, single_keys, is_active) ON workbench_user",
    "SELECT, INSERT ON workbench_assignment",
    "UPDATE (ended_by, ended_at) ON workbench_assignment",
    "SELECT, INSERT ON workbench_apitoken",
    "UPDATE (revoked_by, revoked_at, last_used_at) ON workbench_apitoken",
    "SELECT, INSERT ON workbench_receipt",
    "SELECT, INSERT ON workbench_preview",
    "SELECT, INSERT, UPDATE, DELETE ON django_session",
    "SELECT ON django_content_type",
    "SELECT ON auth_permission",
    "SELECT ON auth_group",
    "SELECT ON auth_group_permissions",
    "SELECT ON django_migrations",
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
    dependencies = [
        ("workbench", "0001_initial"),
        ("sessions", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    operations = [migrations.RunPython(grant, revoke)]
