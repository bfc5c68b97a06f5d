"""The people side: persons and their roles, receipts, previews, tokens."""

import datetime
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import workbench.models.user
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "username",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[django.core.validators.RegexValidator("\\A[a-z][a-z0-9._-]*\\Z")],
                    ),
                ),
                ("display_name", models.CharField(max_length=80)),
                (
                    "language",
                    models.CharField(
                        choices=[("en", "English"), ("zh-hans", "简体中文")], default="en", max_length=10
                    ),
                ),
                (
                    "time_zone",
                    models.CharField(
                        default="UTC", max_length=40, validators=[workbench.models.user.existing_time_zone]
                    ),
                ),
                ("single_keys", models.BooleanField(default=True)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("username__regex", "^[a-z][a-z0-9._-]*$")),
                        name="user_name_is_plain",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Preview",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ref", models.CharField(max_length=40, unique=True)),
                ("actor_id", models.CharField(max_length=120)),
                ("verb", models.CharField(max_length=40)),
                ("step", models.CharField(blank=True, max_length=80)),
                ("handoff_ref", models.CharField(max_length=80)),
                ("run_ref", models.CharField(max_length=80)),
                ("run_version", models.BigIntegerField()),
                ("content", models.JSONField()),
                ("seen", models.JSONField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("expires_at__gt", models.F("created_at"))),
                        name="preview_lives_a_while",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("actor_id", models.CharField(max_length=120)),
                ("command_id", models.CharField(max_length=100)),
                ("verb", models.CharField(max_length=40)),
                ("target", models.CharField(blank=True, max_length=80)),
                ("digest", models.CharField(max_length=64)),
                ("status", models.CharField(max_length=20)),
                ("code", models.CharField(max_length=60)),
                ("scheduled", models.BooleanField(default=False)),
                ("run_version", models.BigIntegerField(null=True)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("actor_id", "command_id"), name="receipt_once_per_command"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("status", "accepted")), name="receipt_is_final"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("actor_id", ""), _negated=True),
                            models.Q(("command_id", ""), _negated=True),
                        ),
                        name="receipt_is_signed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ref", models.CharField(max_length=20, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("agent", "agent"), ("integration", "integration")], max_length=20
                    ),
                ),
                ("name", models.CharField(max_length=40)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("scopes", models.JSONField(default=list)),
                ("created_by", models.CharField(max_length=120)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("expires_at", models.DateTimeField()),
                ("revoked_by", models.CharField(blank=True, max_length=120)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("kind__in", ["agent", "integration"])), name="token_kind_is_known"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "expires_at__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("created_at"), "+", models.Value(datetime.timedelta(days=90))
                                ),
                            )
                        ),
                        name="token_life_is_bounded",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("revoked_at", None), ("revoked_by", "")),
                            models.Q(
                                ("revoked_at__isnull", False), models.Q(("revoked_by", ""), _negated=True)
                            ),
                            _connector="OR",
                        ),
                        name="token_revoked_who_and_when",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Assignment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("operator", "operator"),
                            ("lead", "lead"),
                            ("approver", "approver"),
                            ("auditor", "auditor"),
                            ("owner", "owner"),
                            ("admin", "admin"),
                        ],
                        max_length=20,
                    ),
                ),
                ("granted_by", models.CharField(max_length=120)),
                ("granted_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("ended_by", models.CharField(blank=True, max_length=120)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                (
                    "person",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assignments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("person", "role"),
                        name="assignment_held_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("role__in", ["operator", "lead", "approver", "auditor", "owner", "admin"])
                        ),
                        name="assignment_role_is_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("granted_by", ""), _negated=True),
                        name="assignment_granted_by_somebody",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("ended_at", None), ("ended_by", "")),
                            models.Q(("ended_at__isnull", False), models.Q(("ended_by", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="assignment_ended_who_and_when",
                    ),
                ],
            },
        ),
    ]
