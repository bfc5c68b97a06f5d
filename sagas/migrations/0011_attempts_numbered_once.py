"""Attempts are numbered once for good: a person's order begins the budget anew, never the numbers."""

from django.db import migrations, models

RENUMBER = """
UPDATE sagas_attempt a SET number = n.number FROM (
  SELECT id, row_number() OVER (PARTITION BY action_id, compensation_id ORDER BY id) AS number FROM sagas_attempt
) n WHERE n.id = a.id AND n.number <> a.number;
UPDATE sagas_action a SET calls = n.calls FROM (
  SELECT action_id, count(*) AS calls FROM sagas_attempt WHERE compensation_id IS NULL GROUP BY action_id
) n WHERE n.action_id = a.id;
UPDATE sagas_compensation c SET calls = n.calls FROM (
  SELECT compensation_id, count(*) AS calls FROM sagas_attempt WHERE compensation_id IS NOT NULL GROUP BY 1
) n WHERE n.compensation_id = c.id;
"""


class Migration(migrations.Migration):
    dependencies = [("sagas", "0010_moves_of_people")]
    operations = [
        migrations.AddField("action", "calls", models.PositiveIntegerField(default=0)),
        migrations.AddField("compensation", "calls", models.PositiveIntegerField(default=0)),
        migrations.RunSQL(RENUMBER, migrations.RunSQL.noop),
        migrations.AddConstraint(
            "attempt",
            models.UniqueConstraint(
                fields=["action", "compensation", "number"], name="attempt_number_once", nulls_distinct=False
            ),
        ),
    ]
