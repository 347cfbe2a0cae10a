"""Describe a database by its catalogue, so that two can be compared."""

from __future__ import annotations

import psycopg

_QUERIES = [
    "SELECT 'column', table_schema, table_name, column_name, ordinal_position::text, data_type, is_nullable, "
    "coalesce(column_default, ''), coalesce(generation_expression, ''), is_identity "
    "FROM information_schema.columns WHERE table_schema = ANY (%s)",
    "SELECT 'constraint', n.nspname, r.relname, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c "
    "JOIN pg_class r ON r.oid = c.conrelid JOIN pg_namespace n ON n.oid = r.relnamespace WHERE n.nspname = ANY (%s)",
    "SELECT 'index', schemaname, tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = ANY (%s)",
    "SELECT 'option', n.nspname, r.relname, unnest(r.reloptions) FROM pg_class r "
    "JOIN pg_namespace n ON n.oid = r.relnamespace WHERE n.nspname = ANY (%s)",
    "SELECT 'view', schemaname, viewname, definition FROM pg_views WHERE schemaname = ANY (%s)",
    "SELECT 'trigger', n.nspname, r.relname, t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t "
    "JOIN pg_class r ON r.oid = t.tgrelid JOIN pg_namespace n ON n.oid = r.relnamespace "
    "WHERE NOT t.tgisinternal AND n.nspname = ANY (%s)",
    "SELECT 'function', n.nspname, p.proname, pg_get_functiondef(p.oid) FROM pg_proc p "
    "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ANY (%s)",
    "SELECT 'comment', n.nspname, r.relname, d.objsubid::text, d.description FROM pg_description d "
    "JOIN pg_class r ON r.oid = d.objoid JOIN pg_namespace n ON n.oid = r.relnamespace WHERE n.nspname = ANY (%s)",
]


def schema_objects(connection: psycopg.Connection, *schemas: str) -> list[tuple[str, ...]]:
    """Return everything in the schemas that a migration may make, in a fixed order."""
    wanted = list(schemas or ("signalbox",))
    return sorted(row for query in _QUERIES for row in connection.execute(query.encode(), (wanted,)).fetchall())
