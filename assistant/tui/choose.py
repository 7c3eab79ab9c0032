"""Asking the user to pick one of several things."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option


class Choose(ModalScreen[int | None]):
    """A list over the conversation; gives the number of what was picked, None after Escape."""

    BINDINGS = [("escape", "cancel", "Back")]

    def __init__(self, title: str, options: Sequence[str], chosen: int = 0) -> None:
        super().__init__()
        self._title = title
        self._options = options
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """See Textual."""
        with Vertical(id="choose"):
            yield Label(self._title)
            # As plain text: a device called "[Monitor]" is no markup.
            yield OptionList(*(Option(option.replace("[", r"\[")) for option in self._options))

    def on_mount(self) -> None:
        """See Textual."""
        options = self.query_one(OptionList)
        options.highlighted = self._chosen if self._options else None
        options.focus()

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        """Enter or a click."""
        self.dismiss(message.option_index)

    def action_cancel(self) -> None:
        """Escape."""
        self.dismiss(None)
