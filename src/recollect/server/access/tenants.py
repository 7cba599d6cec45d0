"""Who has rows in a table."""

from ...sql.description import Table

# From one tenant to the next by the index, however many rows each has.
_TENANTS = """SELECT tenant FROM (
  WITH RECURSIVE found (tenant) AS (
    SELECT min(tenant) FROM {table}
    UNION ALL
    SELECT (SELECT min(tenant) FROM {table} WHERE tenant > found.tenant)
    FROM found WHERE found.tenant IS NOT NULL
  ) SELECT tenant FROM found
) AS tenants WHERE tenant IS NOT NULL"""


def tenants_in(table: Table) -> str:
    """The query for all tenants that have rows in a table, which must have an index that begins with them."""
    return _TENANTS.format(table=table.name)
