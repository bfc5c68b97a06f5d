"""Published definitions and contracts: immutable documents with their digests."""

from django.db import models

from sagas.models.clock import DatabaseNow


class ContractVersion(models.Model):
    """One published version of a tool's contract. The document is the truth; columns are for finding it."""

    tool = models.TextField()
    version = models.PositiveIntegerField()
    digest = models.TextField()
    document = models.JSONField()
    published_at = models.DateTimeField(db_default=DatabaseNow())
    published_by = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tool", "version"], name="contract_version_once")]

    def __str__(self) -> str:
        return f"{self.tool} v{self.version}"


class DefinitionVersion(models.Model):
    """One published version of a workflow; `name` is null for an ad-hoc list of steps.

    `pins` names the contract version and digest of every tool that the definition needs; `waivers` the errors
    of the check that were let pass, each with code, steps, reason and who waived it.
    """

    name = models.TextField(null=True)  # noqa: DJ001  null, so that unnamed versions do not collide
    version = models.PositiveIntegerField()
    title = models.TextField()
    digest = models.TextField()
    document = models.JSONField()
    pins = models.JSONField()
    waivers = models.JSONField(default=list)
    published_at = models.DateTimeField(db_default=DatabaseNow())
    published_by = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="definition_version_once")]

    def __str__(self) -> str:
        return f"{self.name or 'ad hoc'} v{self.version}"
