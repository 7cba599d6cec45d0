"""The facts that a text states: one by one, by what they are about, and whether they concern health."""
