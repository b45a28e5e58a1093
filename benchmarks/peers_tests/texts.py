# Part of Bastile, under the MIT License. See LICENSE.
"""The tokens that Liger's tests of convergence train on, where a checkout lacks them.

Liger keeps them as a large file, which an archive of the repository may be without, and
the text beside it. A byte of the text is a token here: a model is trained with and
without the kernels on the same tokens, whichever they are.
"""

import pathlib

_LENGTH = 128
#: The first tokens of a vocabulary are no text; the last of these ends one.
_SPECIAL = 3


def are_there(checkout: pathlib.Path) -> bool:
    folder = checkout / "test/resources/tiny_shakespeare_tokenized"
    return any(folder.glob("*.arrow"))


def write(checkout: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes rows of tokens as the tests load them, one of each line of the text."""
    import datasets

    text = (checkout / "test/resources/tiny_shakespeare.txt").read_bytes()
    rows: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": []}
    for line in text.splitlines()[:4000]:
        tokens = [byte + _SPECIAL for byte in line[:_LENGTH]]
        rest = _LENGTH - len(tokens)
        rows["input_ids"].append(tokens + [_SPECIAL - 1] * rest)
        rows["attention_mask"].append([1] * len(tokens) + [0] * rest)
    datasets.Dataset.from_dict(rows).save_to_disk(folder)
