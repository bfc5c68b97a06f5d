"""What the queue is filtered and grouped by is generated from the lean row, so that the two cannot differ."""

import django.db.models.fields.json
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sagas', '0018_a_compensation_can_be_paused'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='handoff',
            name='fingerprint',
        ),
        migrations.AddField(
            model_name='handoff',
            name='level',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('level', 'summary'), output_field=models.TextField(null=True)),
        ),
        migrations.AddField(
            model_name='handoff',
            name='signoff',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('signoff', 'summary'), models.BooleanField()), output_field=models.BooleanField(null=True)),
        ),
        migrations.AddField(
            model_name='handoff',
            name='similar',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('similar', 'summary'), output_field=models.TextField(null=True)),
        ),
        migrations.AddField(
            model_name='handoff',
            name='touches_customer',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('touches_customer', 'summary'), models.BooleanField()), output_field=models.BooleanField(null=True)),
        ),
        migrations.AddField(
            model_name='handoff',
            name='touches_money',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Cast(django.db.models.fields.json.KeyTextTransform('touches_money', 'summary'), models.BooleanField()), output_field=models.BooleanField(null=True)),
        ),
        migrations.AddField(
            model_name='handoff',
            name='workflow',
            field=models.GeneratedField(db_persist=True, expression=django.db.models.fields.json.KeyTextTransform('workflow', 'summary'), output_field=models.TextField(null=True)),
        ),
    ]
