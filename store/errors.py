"""Every error a user can meet, in one tree.

    FilmroomError
    +-- SettingsError            filmroom.toml or a FILMROOM_* variable is wrong
    +-- StoreError
    |   +-- StoreMissing         there is no store yet
    |   +-- StoreUnreachable     the database does not answer
    |   +-- StoreForeign         the database is another program's
    |   +-- StoreTooNew          written by a newer filmroom
    |   +-- StoreOutdated        written by an older filmroom, not migrated yet
    |   +-- StoreInUse           another process holds the lease
    |   +-- LeaseLost            this process held the lease too long without a sign of life
    |   +-- LiveMoved            another process moved the live pointer first
    |   +-- WriterBusy           more arrives than can be written
    +-- InputError
    |   +-- SourceMissing        no such file
    |   +-- SourceEmpty          the file holds nothing
    |   +-- SourceUnreachable    a system that is pulled from does not answer, or refuses the key
    |   +-- UnknownFormat        no reader recognises it, or several do
    |   +-- MappingError         a column mapping that does not fit the file
    +-- NotFound                 no such id
    +-- NotAllowed               this cannot be done to it now
    +-- Refused                  a named gate refuses
    +-- ModelRefused             a model file that is not loaded
    +-- EngineAway               the fits cannot be run where `[engine]` says

The docstring of a class is its default message. A message says what happened, to which thing, and what to do next.
"""

import inspect


class FilmroomError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.getdoc(type(self)))


class SettingsError(FilmroomError):
    """The settings cannot be read."""


class StoreError(FilmroomError):
    """The store cannot be used."""


class StoreMissing(StoreError):
    """There is no store here yet: run `filmroom init`."""


class StoreUnreachable(StoreError):
    """The store's database does not answer: check `[store] url`."""


class StoreForeign(StoreError):
    """The database holds tables of another program: name another one as `[store] url`."""


class StoreTooNew(StoreError):
    """The store was written by a newer filmroom: upgrade filmroom."""


class StoreOutdated(StoreError):
    """The store was written by an older filmroom: run `filmroom init` to migrate it."""


class StoreInUse(StoreError):
    """Another process is at work on this store: wait for it to end."""


class LeaseLost(StoreError):
    """This process gave no sign of life for too long, and another took over: run the command again."""


class LiveMoved(StoreError):
    """Another process changed the live release first: run the command again."""


class WriterBusy(StoreError):
    """More arrives than can be written: send it again in a moment."""


class InputError(FilmroomError):
    """The input cannot be read."""


class SourceMissing(InputError):
    """There is no such file."""


class SourceEmpty(InputError):
    """The file is empty."""


class SourceUnreachable(InputError):
    """The system does not answer: check `pull` in the settings, and that it runs."""


class UnknownFormat(InputError):
    """The format is not recognised: name it with --format."""


class MappingError(InputError):
    """The column mapping does not fit the file."""


class NotFound(FilmroomError):
    """There is nothing with this id."""


class NotAllowed(FilmroomError):
    """This cannot be done to it in its present state."""


class Refused(FilmroomError):
    """A gate refuses."""


class ModelRefused(FilmroomError):
    """The model file is refused."""


class EngineAway(FilmroomError):
    """The fits cannot be run: check `[engine]` in the settings, and that its cluster runs."""
