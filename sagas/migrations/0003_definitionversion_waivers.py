"""Errors of the check that were let pass when a version was published, with reason and author."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sagas", "0002_guards")]
    operations = [
        migrations.AddField(model_name="definitionversion", name="waivers", field=models.JSONField(default=list))
    ]
