"""Somebody else may ask whoever holds a case to hand it over."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sagas", "0021_who_is_sent_away_asks_anew")]
    operations = [
        migrations.AddField("handoff", "wanted_by", models.TextField(default="")),
        migrations.AddField("handoff", "wanted_by_name", models.TextField(default="")),
        migrations.AddField("handoff", "wanted_at", models.DateTimeField(null=True)),
    ]
