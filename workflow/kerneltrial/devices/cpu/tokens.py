"""A cursor over tokens."""

from kerneltrial.devices.cpu.lexer import Token
from kerneltrial.devices.cpu.refusals import unreadable


class Cursor:
    """Where a reader stands in a list of tokens that ends with one of kind `end`."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self.position = 0

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self.position + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        token = self._tokens[self.position]
        if token.kind == "end":
            raise unreadable("the PTX text ends too early")
        self.position += 1
        return token

    def accept(self, text: str) -> bool:
        """Step over a token if it is `text`."""
        if self._tokens[self.position].text == text:
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        token = self.next()
        if token.text != text:
            raise unreadable(f"expected {text!r}, found {token.text!r} in line {token.line} of the PTX text")

    def skip_braces(self) -> None:
        """Step over a balanced pair of braces and what is between."""
        self.expect("{")
        depth = 1
        while depth:
            text = self.next().text
            depth += (text == "{") - (text == "}")
