"""Every error a person can cause or meet, in one tree.

    LoupeError                 has a message that says what is wrong, the value, and the way out
    ├── InvalidSettings        a sampling, stop or engine setting is out of range (also a ValueError)
    ├── PromptError
    │   ├── EmptyPrompt        no token to run on
    │   └── PromptTooLong      more tokens or bytes than the model, or what was asked of this program, reads
    ├── ModelError
    │   ├── ModelNotFound      no such folder, file or name
    │   ├── ModelUnreachable   the Hub or the package index did not answer
    │   ├── ModelTooLarge      the weights do not fit in memory
    │   ├── UnsupportedModel   the architecture does not let its attention be seen
    │   ├── InvalidConfig      a config lacks a field, or one cannot be (also a ValueError)
    │   ├── CorruptModel       files are truncated, unreadable, or not what they should be
    │   └── ImportFailed       the one-time import could not be finished (a full disk, say)
    ├── EngineFault            a step failed inside the model; `detail` is for the log and for whoever owns the machine
    └── SessionError
        ├── NotPrefilled       a step was asked for before there is a prompt
        ├── SessionFinished    a stop rule has fired; nothing is left to decode
        ├── UnknownStep        a step that this session does not have
        ├── UnknownToken       a token id that this model does not have, or that cannot stand where it was asked for
        ├── UnknownLayer       a layer that this model does not have
        ├── UnknownHead        an attention head that this model does not have
        ├── NumericalFailure   the model returned NaN or no finite score
        ├── EngineFull         every place for a session is taken
        ├── EngineBusy         somebody's work is under way, and this must run alone
        └── EngineStopped      the thread that owns the model is gone

A broken promise between our own files is an assert, never one of these.
"""


class LoupeError(Exception):
    """Something a person can act on."""


class InvalidSettings(LoupeError, ValueError):
    """A setting is out of range."""


class PromptError(LoupeError):
    """The prompt cannot be run."""


class EmptyPrompt(PromptError):
    """The prompt has no token."""


class PromptTooLong(PromptError):
    """The prompt does not fit the model's context, or this program's limit."""


class ModelError(LoupeError):
    """A model cannot be had."""


class ModelNotFound(ModelError):
    """No such folder, file or name."""


class ModelUnreachable(ModelError):
    """The network did not answer."""


class ModelTooLarge(ModelError):
    """The weights do not fit in memory."""


class UnsupportedModel(ModelError):
    """The architecture cannot be inspected."""


class InvalidConfig(ModelError, ValueError):
    """A config from which no decoder's shape can be read: the message names the field and the fix."""


class CorruptModel(ModelError):
    """The files are damaged or not what they claim to be."""


class ImportFailed(ModelError):
    """The one-time import did not finish; nothing half-written is left in use."""


class EngineFault(LoupeError):
    """Something failed that no person did wrong. The message is for everybody; `detail` names what failed."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class SessionError(LoupeError):
    """A session cannot do what was asked; it stays as it was."""


class NotPrefilled(SessionError):
    """There is no prompt in the cache yet."""


class SessionFinished(SessionError):
    """A stop rule has fired."""


class UnknownStep(SessionError):
    """No such step."""


class UnknownToken(SessionError):
    """No such token."""


class UnknownLayer(SessionError):
    """No such layer."""


class UnknownHead(SessionError):
    """No such attention head."""


class NumericalFailure(SessionError):
    """The scores are not numbers."""


class EngineFull(SessionError):
    """There is no place for one more session."""


class EngineBusy(SessionError):
    """Somebody's work is waiting or under way, and what was asked must run with nothing beside it."""


class EngineStopped(SessionError):
    """The engine thread has ended."""
