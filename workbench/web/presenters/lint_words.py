"""What the check says of a definition, code by code, for readers of every language.

The English is that of `tools.lint.codes`, word for word (a test compares them): this table is what makes it
translatable, since the tools know no languages.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from workbench.web.presenters.words import Words


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of the check: what it is called, what could happen, what to do about it."""

    title: Words
    harm: Words
    fix: Words


RULES: dict[str, Rule] = {
    "W001": Rule(
        title=_("Unknown tool"),
        harm=_("The run would stop where the tool is needed, with earlier effects in the world."),
        fix=_("Publish its contract first, or correct the name."),
    ),
    "W002": Rule(
        title=_("Unknown version of a contract"),
        harm=_("The step would run under rules that nobody has checked it against."),
        fix=_("Name a published version."),
    ),
    "W003": Rule(
        title=_("Value from a source that there is not"),
        harm=_("The step could never be called."),
        fix=_("Use input, run, key or steps.ID.result, .args, .prior."),
    ),
    "W004": Rule(
        title=_("Step that there is not"),
        harm=_("A value or an end state would hang on a step that never runs."),
        fix=_("Correct the step's id."),
    ),
    "W005": Rule(
        title=_("Value of a step that has not run yet"),
        harm=_("The step could never be called."),
        fix=_("Bind to an earlier step outside the group, or change the order."),
    ),
    "W006": Rule(
        title=_("Pointer to where nothing is"),
        harm=_("A value, or the proof of an outcome, would be missing when it is needed."),
        fix=_("Correct the pointer, declare the property, or give a default."),
    ),
    "W007": Rule(
        title=_("Argument that the tool does not have"),
        harm=_("The tool would refuse the call, or leave out what was meant."),
        fix=_("Correct the name."),
    ),
    "W008": Rule(
        title=_("Argument left out"),
        harm=_("The tool would refuse the call."),
        fix=_("Add the argument."),
    ),
    "W009": Rule(
        title=_("Argument of the wrong form"),
        harm=_("The tool would refuse the call."),
        fix=_("Write a value that fits the contract."),
    ),
    "W010": Rule(
        title=_("Looking by a tool that writes"),
        harm=_("Asking what happened would make something happen."),
        fix=_("Name a read-only tool."),
    ),
    "W011": Rule(
        title=_("Compensation that only reads"),
        harm=_("The run would be called compensated while its effect stands."),
        fix=_("Name a tool that has an effect."),
    ),
    "W101": Rule(
        title=_("Irreversible step outside the last third"),
        harm=_(
            "A customer is told, or money leaves, and then a later step fails: what was sent cannot be taken back."
        ),
        fix=_("Move it to the end, or stage it: held = true holds it until everything else has succeeded."),
    ),
    "W102": Rule(
        title=_("No compensation for a step that may have to be made up for"),
        harm=_("A later failure compensates the run around this effect and leaves it standing."),
        fix=_("Declare a compensation, or send later failures to a person with on_rejected = handoff."),
    ),
    "W103": Rule(
        title=_("Compensation that may take effect twice"),
        harm=_("A repeat after a lost answer refunds twice, or releases what somebody else holds by now."),
        fix=_(
            "Have the tool honour a key, say how it shows that it is done (already_done), or "
            "declare idempotency.natural where the same call again changes nothing."
        ),
    ),
    "W104": Rule(
        title=_("No status query for an irreversible tool"),
        harm=_(
            "After a lost answer nobody can say whether the customer was told; a repeat might tell them twice."
        ),
        fix=_("Declare a status_query, if the system has any way to ask."),
    ),
    "W105": Rule(
        title=_("Compensation that cannot be put on record before the call"),
        harm=_("When the run fails, nobody can call the compensation: its arguments are known nowhere."),
        fix=_("Take the arguments from args, result or a declared prior_state."),
    ),
    "W106": Rule(
        title=_("One retry rule for every failure"),
        harm=_("What was refused is hammered, and what may have happened is done again."),
        fix=_("Give each error class its own rule: how long each is worth repeating differs."),
    ),
    "W107": Rule(
        title=_("Irreversible step beside a step that may turn the run back"),
        harm=_(
            "One step of the group fails while the other is out already: what was sent cannot be taken back."
        ),
        fix=_("Take it out of the group and put it behind, or send failures of the others to a person."),
    ),
    "W201": Rule(
        title=_("Irreversible step followed by a write"),
        harm=_("The customer is told, and then the rest fails: the message is true no longer."),
        fix=_("Put it last, or stage it with held = true."),
    ),
    "W202": Rule(
        title=_("No compensation; a person decides"),
        harm=_(
            "If the run has to be given up after this step, its effect stays until somebody deals with it."
        ),
        fix=_("Declare a compensation, if there is one."),
    ),
    "W203": Rule(
        title=_("One compensation tool for unlike steps"),
        harm=_("The wrong thing is called off: the run looks compensated while the effect stands."),
        fix=_("Name for each step the tool that makes up for that very step."),
    ),
    "W204": Rule(
        title=_("Fewer than 80 % of the steps can be compensated or safely repeated"),
        harm=_("A failure in the middle is more likely to end with a person."),
        fix=_("Add compensations, or have tools honour a key."),
    ),
    "W205": Rule(
        title=_("External effect that nobody confirms"),
        harm=_("An agent's mistake reaches a customer without anybody having looked."),
        fix=_("Set require_confirmation = true, or limit by policy who may start the workflow."),
    ),
    "W206": Rule(
        title=_("Not for automatic use"),
        harm=_("Nobody has thought through what happens when a call fails half way."),
        fix=_("Answer the open questions in the contract; three or more open ones are too many."),
    ),
    "W207": Rule(
        title=_("No acceptable end state"),
        harm=_("Each case has to be judged by a person, every time anew."),
        fix=_("Add end_states with conditions."),
    ),
    "W208": Rule(
        title=_("Outcome that cannot be settled"),
        harm=_("Every lost answer goes to a person."),
        fix=_("Declare a status_query, or have the tool honour a key."),
    ),
    "W209": Rule(
        title=_("Compensation that nothing reads back"),
        harm=_("A compensation that was accepted but not carried out goes unnoticed."),
        fix=_("Add compensation.verify."),
    ),
    "W210": Rule(
        title=_("Compensation known only from an answer that may be missing"),
        harm=_(
            "After a lost or short answer the compensation's arguments are known nowhere: a person has to find them."
        ),
        fix=_("Have the status query's answer or the arguments carry what the compensation needs."),
    ),
}
