"""Who turned a run back, and when: for whoever asks for it a second time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sagas", "0012_proposals")]
    operations = [
        migrations.AddField("run", "turned_back_by", models.TextField(default="")),
        migrations.AddField("run", "turned_back_at", models.DateTimeField(null=True)),
    ]
