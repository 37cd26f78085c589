"""Pages of the guide on a terminal."""

from __future__ import annotations

import pytest

from lmsconf.render.text.guide_page import guide_page_text
from lmsconf.support.folders import guide_topics, read_guide_page

PAGE = """\
# Fruit

Some [lists](lists.md) of fruit,
with **many** words that do not fit into one line; see [the site](https://fruit.example).
<!-- setup: true -->

![A bowl of apples.](../pictures/apples.webp)

<picture>
  <img src="../pictures/pears.webp" alt="Pears.">
</picture>

Draw [fruit trees](trees.md#fruit) as the [examples](../examples) do.

- apples, which are
  round and grow on trees
- pears

| fruit | `a \\| b` |
|---|---|
| long-name-of-a-fruit | a cell with words that has to be cut into lines |

```console
$ eat --all-that-is-there --and-more --in-one-line
# not a heading
```
"""
NARROW = """\
# Fruit

Some `lmsconf help lists` of fruit, with
many words that do not fit into one
line; see the site
(https://fruit.example).

Draw fruit trees (`lmsconf help trees`)
as the examples do.

- apples, which are round and grow on
  trees
- pears

fruit                 `a | b`
--------------------  ------------------
long-name-of-a-fruit  a cell with words
                      that has to be cut
                      into lines

    $ eat --all-that-is-there --and-more --in-one-line
    # not a heading
"""


def test_a_page_fits_its_terminal() -> None:
    """Prose and cells are wrapped at blanks, lists hang, comments, pictures and marks of Markdown are left out.

    Links to topics show their command, and code stays as it is.
    """
    assert guide_page_text(PAGE, 40) == NARROW


@pytest.mark.parametrize("topic", guide_topics())
@pytest.mark.parametrize("width", [60, 80])
def test_every_page_of_the_guide_fits(topic: str, width: int) -> None:
    """No line but of code is wider than the terminal, no mark is left over."""
    lines = guide_page_text(read_guide_page(topic), width).splitlines()
    assert [line for line in lines if len(line) > width and not line.startswith("    ")] == []
    assert [line for line in lines if line.startswith(("|", "```", "<", "!["))] == []
