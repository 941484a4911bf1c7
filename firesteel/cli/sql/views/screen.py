"""Shows a view on the whole terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firesteel.cli.sql.views.result_view import ResultView

__all__ = ["show_on_screen"]

_POLL_S = 0.05
_NAMES = {"c-m": "enter", "c-h": "backspace", "c-i": "tab"}


def show_on_screen(view: ResultView, **terminal: Any) -> None:
    """Returns when the view is closed. ``terminal`` is the input and the output, if not those of the process."""
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from prompt_toolkit.keys import Keys
    from prompt_toolkit.layout import FormattedTextControl, Layout, Window

    def screen() -> StyleAndTextTuples:
        size = application.output.get_size()
        parts: StyleAndTextTuples = []
        for number, line in enumerate(view.lines(size.columns, size.rows)):
            parts += ([("", "\n")] if number else []) + list(line)
        return parts

    def tick(_: Any) -> None:
        view.tick()
        leave_if_closed()

    def leave_if_closed() -> None:
        if view.is_closed and application.is_running and not application.is_done:
            application.exit()

    bindings = KeyBindings()

    @bindings.add(Keys.Any)
    @bindings.add("escape", eager=True)
    @bindings.add("c-c")
    def _(event: KeyPressEvent) -> None:
        key = event.key_sequence[0].key
        name = key.value if isinstance(key, Keys) else str(key)
        view.press(_NAMES.get(name, name))
        leave_if_closed()

    application: Application[None] = Application(
        Layout(Window(FormattedTextControl(screen, show_cursor=False), wrap_lines=False)),
        key_bindings=bindings,
        full_screen=True,
        refresh_interval=_POLL_S,
        before_render=tick,
        **terminal,
    )
    application.ttimeoutlen = 0.05
    application.run()
