"""The engine's errors: one base, a stable code each, the docstring as default message."""

from __future__ import annotations

from sagas.facts import Need, Obstacle


class EngineError(Exception):
    """The engine could not do what was asked."""

    code = "engine_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").strip())


class NotFound(EngineError):
    """Nothing is stored under this reference."""

    code = "not_found"

    def __init__(self, what: str, ref: str) -> None:
        super().__init__(f"No {what} is stored under {ref!r}.")
        self.what = what
        self.ref = ref


class NotAllowed(EngineError):
    """The engine does not allow this verb now."""

    code = "not_allowed"

    def __init__(self, obstacle: Obstacle) -> None:
        super().__init__(obstacle.sentence)
        self.obstacle = obstacle
        self.code = obstacle.code


class StartKeyConflict(EngineError):
    """This start key was used before with other content; nothing was started."""

    code = "start_key_conflict"


class InvalidInput(EngineError):
    """The input does not fit the definition; nothing was started."""

    code = "invalid_input"

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{pointer or '/'}: {message}" for pointer, message in problems))
        self.problems = problems


class InvalidSteps(InvalidInput):
    """The steps are not fit to run; nothing was started. Pointers begin at the list of steps."""

    code = "invalid_steps"


class AlreadyPublished(EngineError):
    """This version is published with other content; a published version never changes. Raise the version."""

    code = "already_published"


class ErrorsFound(EngineError):
    """The check found errors that nobody waived; nothing was published."""

    code = "errors_found"


class BadWaiver(EngineError):
    """A waiver does not name an error that was found here and may be waived; nothing was published."""

    code = "bad_waiver"


class Retired(EngineError):
    """This version is out of use; nothing new may begin with it."""

    code = "retired"


class StillNeeded(EngineError):
    """Live runs need this version; it stays in use until none does."""

    code = "still_needed"

    def __init__(self, what: str, needs: tuple[Need, ...]) -> None:
        super().__init__(f"{len(needs)} live runs need {what}: wait until none does, or withdraw it.")
        self.needs = needs


class CannotStep(EngineError):
    """A run's next step broke for a reason of its own; nothing of it was written."""

    code = "cannot_step"

    def __init__(self, ref: str, run_id: int) -> None:
        super().__init__(f"The next step of {ref} cannot be taken.")
        self.ref = ref
        self.run_id = run_id


class ClaimLost(EngineError):
    """Another worker owns the run now; what was seen is kept as evidence, nothing was advanced."""

    code = "claim_lost"


class IllegalMove(EngineError):
    """The state tables do not allow this move."""

    code = "illegal_move"
