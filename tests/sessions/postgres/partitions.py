"""Tables that are divided by session, made as the documentation says."""

import re
from pathlib import Path

from .database import new_tables, sql

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "run-at-scale.md"


def make_partitioned(url: str) -> dict[str, str]:
    """Run the DDL of the page, under names that nobody has used."""
    tables = new_tables()
    _, _, section = PAGE.read_text().partition("## Partition by session\n")
    ddl = re.findall(r"^```sql\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[0]
    for name, used in (("agent_sessions", "sessions_table"), ("agent_messages", "messages_table")):
        assert name in ddl
        ddl = ddl.replace(name, tables[used])
    sql(url, ddl)
    return tables
