"""Bulks: frozen lists of cases and what became of each."""


import django.db.models.deletion
import workbench.models.bulk
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('workbench', '0002_rights'),
    ]

    operations = [
        migrations.CreateModel(
            name='Bulk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ref', models.CharField(max_length=40, unique=True)),
                ('verb', models.CharField(max_length=40)),
                ('state', models.CharField(default=workbench.models.bulk.BulkState['FROZEN'], max_length=20)),
                ('actor_id', models.CharField(max_length=120)),
                ('actor_name', models.CharField(max_length=120)),
                ('actor_role', models.CharField(max_length=40)),
                ('arguments', models.JSONField(default=dict)),
                ('reason', models.TextField(blank=True)),
                ('canary', models.PositiveSmallIntegerField()),
                ('typed', models.PositiveIntegerField(null=True)),
                ('per_second', models.FloatField(default=0)),
                ('possible', models.JSONField(default=dict)),
                ('likenesses', models.JSONField(default=list)),
                ('digest', models.CharField(max_length=64)),
                ('frozen_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(null=True)),
                ('released_at', models.DateTimeField(null=True)),
                ('paused_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('stands_by', models.CharField(blank=True, max_length=120)),
                ('why', models.JSONField(default=dict)),
                ('next_at', models.DateTimeField(null=True)),
                ('runner', models.CharField(blank=True, max_length=40)),
                ('runner_until', models.DateTimeField(null=True)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state__in', ['running', 'paused'])), fields=['id'], name='bulk_going_on'), models.Index(condition=models.Q(('started_at__isnull', False)), fields=['-id'], name='bulk_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['frozen', 'running', 'paused', 'stopped', 'finished'])), name='bulk_state_is_known'), models.CheckConstraint(condition=models.Q(models.Q(('started_at', None), ('state', 'frozen')), models.Q(('started_at__isnull', False), models.Q(('reason', ''), _negated=True)), _connector='OR'), name='bulk_runs_for_a_reason'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', False), ('state__in', ['stopped', 'finished'])), models.Q(models.Q(('state__in', ['stopped', 'finished']), _negated=True), ('ended_at', None)), _connector='OR'), name='bulk_end_has_a_time')],
            },
        ),
        migrations.CreateModel(
            name='BulkMember',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('handoff_ref', models.CharField(max_length=100)),
                ('run_ref', models.CharField(blank=True, max_length=100)),
                ('version', models.PositiveIntegerField()),
                ('step', models.CharField(blank=True, max_length=80)),
                ('tool', models.CharField(blank=True, max_length=200)),
                ('title', models.TextField(blank=True)),
                ('business_ref', models.TextField(blank=True)),
                ('calls', models.JSONField(default=list)),
                ('stays', models.JSONField(default=list)),
                ('queried', models.PositiveIntegerField(default=0)),
                ('state', models.CharField(max_length=20)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('said', models.JSONField(default=dict)),
                ('first', models.BooleanField(default=False)),
                ('sent_at', models.DateTimeField(null=True)),
                ('settled_at', models.DateTimeField(null=True)),
                ('asked', models.PositiveSmallIntegerField(default=0)),
                ('ask_at', models.DateTimeField(null=True)),
                ('seen_seq', models.BigIntegerField(default=-1)),
                ('bulk', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='members', to='workbench.bulk')),
            ],
            options={
                'indexes': [models.Index(fields=['bulk', 'state', 'position'], name='bulk_member_state')],
                'constraints': [models.UniqueConstraint(fields=('bulk', 'position'), name='bulk_member_has_a_place'), models.UniqueConstraint(fields=('bulk', 'handoff_ref'), name='bulk_member_once'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'sent', 'verified', 'failed', 'no_answer', 'refused', 'left_out', 'untouched'])), name='bulk_member_state_is_known')],
            },
        ),
    ]
