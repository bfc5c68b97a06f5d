"""Who was sent away for speed asks anew, behind those who have not been out: one call cannot keep a queue to itself."""

from django.db import migrations, models

import sagas.models.clock


class Migration(migrations.Migration):
    dependencies = [
        ("sagas", "0020_the_guard_finds_its_entry_by_index"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="turn",
            name="turn_waiting",
        ),
        migrations.AddField(
            model_name="turn",
            name="asked_at",
            field=models.DateTimeField(db_default=sagas.models.clock.DatabaseNow()),
        ),
        migrations.AddField(
            model_name="turn",
            name="sent_away",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("go_at__isnull", True), ("used_at__isnull", True)),
                fields=["tool", "reserved", "flow", "asked_at"],
                name="turn_waiting",
            ),
        ),
    ]
