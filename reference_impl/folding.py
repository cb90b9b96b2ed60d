"""Token folding: ids whose texts read alike (case, accents, white space) share one compressed id (report 2.4.2)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)  # Unicode's White_Space property; str.strip() would also take the separators U+001C to U+001F
LONE_SPACE = "\ue000"  # private use: stands in for a text that is one space, so that stripping leaves it
REPLACEMENT = "\ufffd"  # in a decoded text: the token is part of a character only


def normal_form(text: str) -> str:
    """NFKC, NFD, no accents, lower case, runs of space, tab, line ends as one space, stripped unless a lone space."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    text = "".join(char for char in text if unicodedata.category(char) != "Mn")
    text = "".join(char.lower() for char in text)  # letter by letter: no rule looks at its neighbours
    text = re.sub("[ \t\r\n]+", " ", text)
    text = LONE_SPACE if text == " " else text
    return text.strip(WHITE_SPACE).replace(LONE_SPACE, " ")


def fold_vocabulary(decoded: Sequence[str], raw: Sequence[str]) -> list[int]:
    """-> the compressed id of each token id, numbered by first appearance.

    `decoded` is the text of each id; `raw` its token string, which is the key where the text is not valid by itself.
    An empty normal form falls back to the text. ValueError when the two lists differ in length.
    """
    if len(decoded) != len(raw):
        raise ValueError(f"token folding: {len(decoded)} texts but {len(raw)} token strings")
    compressed: dict[str, int] = {}
    ids = []
    for text, token in zip(decoded, raw, strict=True):
        key = token if REPLACEMENT in text else normal_form(text) or text
        ids.append(compressed.setdefault(key, len(compressed)))
    return ids
