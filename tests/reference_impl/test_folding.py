"""Token folding: what reads alike shares an id."""

from __future__ import annotations

import pytest

from reference_impl.folding import fold_vocabulary, normal_form

FORMS = {
    "Caf\u00e9": "cafe",
    "e\u0301": "e",
    "\uff57": "w",
    "\ufb01": "fi",
    "  x \t": "x",
    " ": " ",
    "\t \n": " ",
    "\u3000": " ",
    "": "",
    "\u0130": "i",
    "A\u2028": "a",
}


@pytest.mark.parametrize("text", FORMS, ids=ascii)
def test_normal_form(text: str) -> None:
    assert normal_form(text) == FORMS[text]


def test_ids_are_numbered_by_first_appearance() -> None:
    assert fold_vocabulary(["The", "x", " the", "\u0301", "X"], ["0", "1", "2", "3", "4"]) == [0, 1, 0, 2, 1]


def test_partial_characters_are_keyed_by_their_token_string() -> None:
    assert fold_vocabulary(["\ufffd", "\ufffd", "a\ufffd", "\ufffd"], ["<A>", "<B>", "<C>", "<A>"]) == [0, 1, 2, 0]


def test_lists_of_different_length() -> None:
    with pytest.raises(ValueError, match="2 texts but 1 token strings"):
        fold_vocabulary(["a", "b"], ["a"])
