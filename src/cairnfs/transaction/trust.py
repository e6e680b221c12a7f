"""Whether to try calls from memory: not for a while after a taken name was thought free."""

from __future__ import annotations

PAUSE_MIN = 64  # calls
PAUSE_MAX = 4096


class Trust:
    """Pauses that grow while guesses are wrong, and shrink while they are right."""

    def __init__(self) -> None:
        self._paused_for = 0  # calls
        self.next_pause = PAUSE_MIN

    def allows(self, calls: int) -> bool:
        """Whether so many calls may be tried; if not, they count towards the pause."""
        if not self._paused_for:
            return True
        self._paused_for = max(0, self._paused_for - calls)
        return False

    def was_wrong(self) -> None:
        self._paused_for = self.next_pause
        self.next_pause = min(PAUSE_MAX, 2 * self.next_pause)

    def was_right(self) -> None:
        if not self._paused_for:
            self.next_pause = max(PAUSE_MIN, self.next_pause // 2)
