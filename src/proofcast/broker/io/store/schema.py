"""The tables, the same text for SQLite and PostgreSQL; a change is one more migration at the end."""

MIGRATIONS = (
    """
    CREATE TABLE subscription (
        name TEXT PRIMARY KEY,
        terms TEXT NOT NULL,
        secrets TEXT NOT NULL,
        transport TEXT NOT NULL,
        status TEXT NOT NULL,
        reason TEXT NOT NULL,
        generation BIGINT NOT NULL,
        place TEXT NOT NULL,
        last_cursor TEXT NOT NULL,
        repeats_number BIGINT NOT NULL,
        repeats_index BIGINT NOT NULL,
        next_ordinal BIGINT NOT NULL,
        acknowledged BIGINT NOT NULL,
        failing_since DOUBLE PRECISION,
        created_at DOUBLE PRECISION NOT NULL,
        owner TEXT NOT NULL,
        fence BIGINT NOT NULL,
        held_until DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE pending (
        subscription TEXT NOT NULL REFERENCES subscription (name) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        event_id TEXT NOT NULL,
        order_key TEXT NOT NULL,
        before TEXT NOT NULL,
        cursor_text TEXT NOT NULL,
        body BYTEA NOT NULL,
        hash BYTEA NOT NULL,
        log_index BIGINT NOT NULL,
        step TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        due_at DOUBLE PRECISION NOT NULL,
        is_repeated BIGINT NOT NULL,
        PRIMARY KEY (subscription, ordinal)
    );
    CREATE TABLE given (
        subscription TEXT NOT NULL REFERENCES subscription (name) ON DELETE CASCADE,
        hash BYTEA NOT NULL,
        log_index BIGINT NOT NULL,
        number BIGINT NOT NULL,
        body BYTEA NOT NULL,
        PRIMARY KEY (subscription, hash, log_index)
    );
    CREATE INDEX given_number ON given (subscription, number);
    CREATE TABLE dead_letter (
        subscription TEXT NOT NULL REFERENCES subscription (name) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        event_id TEXT NOT NULL,
        order_key TEXT NOT NULL,
        cursor_text TEXT NOT NULL,
        body BYTEA NOT NULL,
        hash BYTEA NOT NULL,
        log_index BIGINT NOT NULL,
        step TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        reason TEXT NOT NULL,
        died_at DOUBLE PRECISION NOT NULL,
        is_undone BIGINT NOT NULL,
        PRIMARY KEY (subscription, ordinal)
    );
    CREATE TABLE attempt (
        subscription TEXT NOT NULL REFERENCES subscription (name) ON DELETE CASCADE,
        ordinal BIGINT NOT NULL,
        number BIGINT NOT NULL,
        event_id TEXT NOT NULL,
        outcome TEXT NOT NULL,
        detail TEXT NOT NULL,
        made_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (subscription, ordinal, number)
    );
    CREATE TABLE api_key (
        id TEXT PRIMARY KEY,
        digest BYTEA NOT NULL,
        label TEXT NOT NULL,
        scope TEXT NOT NULL,
        rate_per_s BIGINT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL
    );
    CREATE TABLE request (
        idempotency_key TEXT PRIMARY KEY,
        digest BYTEA NOT NULL,
        name TEXT NOT NULL,
        made_at DOUBLE PRECISION NOT NULL
    )
    """,
)
