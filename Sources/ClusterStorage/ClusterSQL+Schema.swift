/// The schema of the cluster's database.
///
/// Nodes with different versions use the database at the same time during an upgrade. So a migration only adds: an older
/// node must still work with the tables and functions afterwards. If that is not possible, ``Migration/oldest`` is raised,
/// and older nodes refuse to start.
extension ClusterSQL {
    struct Migration {
        /// The oldest version of the schema whose nodes can use the database after this migration.
        var oldest: Int
        var sql: String
    }

    /// The steps of the schema in order. Add new steps at the end. The parts of the first step are below, and in the files of
    /// sessions, usage, and published files.
    static let migrations = [Migration(oldest: 1, sql: nodes + uploads + events + usage + files + counting)]

    /// The SQLSTATEs that the functions raise, besides those of ``FilesError``.
    enum CatalogError {
        /// The session of the caller has ended.
        static let sessionEnded = "ON012"
        /// An exclusive session is open, or cannot be opened because another one is.
        static let inUse = "ON013"
        /// The migration was made by another node.
        static let isMigrated = "ON010"
        /// The outcome of an earlier batch of the session was unknown, and since then only later batches are accepted.
        static let batchEnded = "ON011"
    }

    /// One migration as a script, which fails with ``CatalogError/isMigrated`` if it was made before.
    static func script(_ version: Int, _ migration: Migration) -> String {
        """
        CREATE SCHEMA IF NOT EXISTS onward;
        CREATE TABLE IF NOT EXISTS onward.migration (
            version integer NOT NULL PRIMARY KEY,
            oldest integer NOT NULL,
            made_at timestamptz NOT NULL DEFAULT clock_timestamp()
        );
        DO $$ BEGIN
            IF EXISTS (SELECT FROM onward.migration WHERE version >= \(version)) THEN
                RAISE EXCEPTION 'version \(version) of the schema exists' USING ERRCODE = '\(CatalogError.isMigrated)';
            END IF;
        END $$;
        \(migration.sql)
        INSERT INTO onward.migration (version, oldest) VALUES (\(version), \(migration.oldest));
        """
    }

    private static let uploads = """
        -- Phases: 0 receiving, 1 processing, 2 complete, 3 invalid. Changes are made by the holder. Each hold of an upload
        -- has a higher fence, and epochs from (fence - 1) << 32 on, so a change contains the fence of its hold.
        CREATE TABLE onward.upload (
            id bytea NOT NULL PRIMARY KEY,
            blob text COLLATE "C" NOT NULL UNIQUE,
            principal text NOT NULL,
            creation bytea NOT NULL,
            created_at bigint NOT NULL,
            expires_at bigint,
            epoch bigint NOT NULL,
            "offset" bigint NOT NULL CHECK ("offset" >= 0),
            length bigint,
            phase bigint NOT NULL,
            response bytea,
            reason text,
            digests bytea NOT NULL,
            holder bigint,
            fence bigint NOT NULL DEFAULT 1
        ) WITH (fillfactor = 80);
        CREATE INDEX unfinished_by_phase ON onward.upload (phase, id) WHERE phase < 2;
        CREATE INDEX unfinished_by_expiry ON onward.upload (expires_at) WHERE phase < 2 AND expires_at IS NOT NULL;
        CREATE INDEX finished_by_expiry ON onward.upload (expires_at) WHERE phase >= 2;

        -- Returns the row of an upload; no row if there is none. If the upload is unfinished, and no other living session
        -- holds it, this session becomes the holder, with a higher fence, even if it was the holder before. It acquires an
        -- upload that a target resource processes from an ended session only while it is steady: see onward.is_steady. If
        -- another session holds the upload and `requests_release` is true, that session gets a notification to release it.
        CREATE FUNCTION onward.acquire(id_ bytea, session_ bigint, requests_release boolean)
        RETURNS SETOF onward.upload LANGUAGE plpgsql AS $$
        DECLARE
            found_row onward.upload;
            old onward.upload;
        BEGIN
            LOOP
                SELECT * INTO old FROM onward.upload WHERE id = id_;
                IF NOT FOUND THEN RETURN; END IF;
                IF old.phase >= 2 THEN
                    RETURN NEXT old;
                    RETURN;
                END IF;
                IF NOT onward.is_free(old.holder, session_)
                    OR old.phase = 1 AND old.holder <> session_ AND NOT onward.is_steady(session_) THEN
                    IF requests_release THEN
                        -- Nothing has changed, so the commit need not wait for the disk: see ClusterSQL.commitAtOnce.
                        PERFORM set_config('synchronous_commit', 'off', true);
                        PERFORM pg_notify(
                            'onward_' || old.holder, 'request ' || encode(id_, 'hex') || ' ' || session_);
                    END IF;
                    RETURN NEXT old;
                    RETURN;
                END IF;
                PERFORM FROM onward.node WHERE session = session_ AND alive_until > clock_timestamp() FOR KEY SHARE;
                IF NOT FOUND THEN
                    RAISE EXCEPTION 'the session % has ended', session_ USING ERRCODE = 'ON012';
                END IF;
                UPDATE onward.upload
                    SET holder = session_, fence = fence + 1, epoch = greatest(epoch, fence << 32)
                    WHERE id = id_ AND phase < 2 AND fence = old.fence AND holder IS NOT DISTINCT FROM old.holder
                    RETURNING * INTO found_row;
                IF FOUND THEN
                    RETURN NEXT found_row;
                    RETURN;
                END IF;
            END LOOP;
        END $$;

        -- The functions that change uploads return 0, or a refusal: see ClusterSQL.Refusal.
        CREATE FUNCTION onward.insert_upload(
            session_ bigint, id_ bytea, blob_ text, principal_ text, creation_ bytea, created_at_ bigint,
            expires_at_ bigint, epoch_ bigint, offset_ bigint, length_ bigint, phase_ bigint, response_ bytea,
            reason_ text, digests_ bytea, max_uploads bigint, quota bigint
        ) RETURNS integer LANGUAGE plpgsql AS $$
        DECLARE
            refusal integer;
        BEGIN
            IF phase_ < 2 THEN
                refusal := onward.admit(principal_, 1, coalesce(length_, offset_), max_uploads, quota);
            ELSE
                -- The quota is null unless the bytes become a file in this transaction.
                refusal := onward.admit(principal_, 0, offset_, NULL, quota);
            END IF;
            IF refusal > 0 THEN RETURN refusal; END IF;
            INSERT INTO onward.upload (
                id, blob, principal, creation, created_at, expires_at, epoch, "offset", length, phase, response, reason,
                digests, holder, fence
            ) VALUES (
                id_, blob_, principal_, creation_, created_at_, expires_at_, epoch_, offset_, length_, phase_, response_,
                reason_, digests_, CASE WHEN phase_ < 2 THEN session_ END, 1
            ) ON CONFLICT DO NOTHING;
            RETURN CASE WHEN FOUND THEN 0 ELSE 2 END;
        END $$;

        CREATE FUNCTION onward.advance_upload(
            session_ bigint, id_ bytea, epoch_ bigint, offset_ bigint, length_ bigint, digests_ bytea, quota bigint
        ) RETURNS integer LANGUAGE plpgsql AS $$
        DECLARE
            owner text;
            growth bigint;
            refusal integer;
        BEGIN
            IF quota IS NOT NULL THEN
                SELECT u.principal,
                        coalesce(length_, u.length, greatest(u."offset", offset_)) - coalesce(u.length, u."offset")
                    INTO owner, growth
                    FROM onward.upload u WHERE u.id = id_ AND u.holder = session_;
                IF growth > 0 THEN
                    refusal := onward.admit(owner, 0, growth, NULL, quota);
                    IF refusal > 0 THEN RETURN refusal; END IF;
                END IF;
            END IF;
            UPDATE onward.upload u
                SET epoch = epoch_, "offset" = greatest(u."offset", offset_), length = coalesce(length_, u.length),
                    digests = digests_, phase = 0
                WHERE u.id = id_ AND u.holder = session_ AND u.fence = (epoch_ >> 32) + 1 AND u.epoch <= epoch_
                    AND u.phase < 2;
            RETURN CASE WHEN FOUND THEN 0 ELSE 1 END;
        END $$;

        -- Removes rows, and records the events of those that were unfinished. Returns -1, and removes nothing, if one of
        -- them has a higher epoch, because another session has acquired it since, or if another living session holds it;
        -- otherwise 0, and the numbers of removed rows.
        CREATE FUNCTION onward.delete_uploads(
            session_ bigint, ids bytea[], epochs bigint[], times bigint[], contents bytea[],
            OUT refusal integer, OUT unfinished bigint, OUT complete bigint, OUT invalid bigint
        ) LANGUAGE plpgsql AS $$
        DECLARE
            removal record;
            old record;
        BEGIN
            refusal := 0;
            unfinished := 0;
            complete := 0;
            invalid := 0;
            PERFORM FROM onward.upload u WHERE u.id = ANY (ids) ORDER BY u.id FOR UPDATE;
            PERFORM FROM onward.upload u JOIN unnest(ids, epochs) AS r (id, epoch) ON u.id = r.id
                WHERE u.epoch > r.epoch;
            IF FOUND THEN
                refusal := -1;
                RETURN;
            END IF;
            FOR old IN SELECT DISTINCT u.holder FROM onward.upload u WHERE u.id = ANY (ids) AND u.phase < 2 LOOP
                IF NOT onward.is_free(old.holder, session_) THEN
                    refusal := -1;
                    RETURN;
                END IF;
            END LOOP;
            FOR removal IN SELECT * FROM unnest(ids, times, contents) AS r (id, "time", content) LOOP
                DELETE FROM onward.upload u WHERE u.id = removal.id RETURNING u.phase INTO old;
                CONTINUE WHEN NOT FOUND;
                IF old.phase = 2 THEN complete := complete + 1;
                ELSIF old.phase = 3 THEN invalid := invalid + 1;
                ELSE
                    unfinished := unfinished + 1;
                    IF removal.content IS NOT NULL THEN
                        PERFORM onward.record_events(ARRAY[removal."time"], ARRAY[removal.content]);
                    END IF;
                END IF;
            END LOOP;
        END $$;

        """

    private static let events = """
        -- The outbox. An event has a number that begins with the number of its transaction (xid << 20). Events are read
        -- only if all transactions with lower numbers have ended, so no event appears before one that was read.
        CREATE TABLE onward.event (
            number bigint NOT NULL PRIMARY KEY,
            "time" bigint NOT NULL,
            content bytea NOT NULL,
            state bigint NOT NULL
        );
        CREATE INDEX event_by_state ON onward.event (state, number) WHERE state > 0;

        CREATE FUNCTION onward.record_events(times bigint[], contents bytea[]) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            first bigint := pg_current_xact_id()::text::bigint << 20;
            last bigint;
        BEGIN
            SELECT coalesce(max(number), first) INTO last FROM onward.event
                WHERE number >= first AND number < first + (1 << 20);
            INSERT INTO onward.event (number, "time", content, state)
                SELECT last + e.position, e."time", e.content, 0
                FROM unnest(times, contents) WITH ORDINALITY AS e ("time", content, position);
        END $$;

        -- The lowest event number that must not be read yet.
        CREATE FUNCTION onward.end_of_events() RETURNS bigint STABLE LANGUAGE sql AS
        $$ SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20 $$;

        -- Whether a session delivers events: among the living sessions with `delivers_events`, the one with the lowest
        -- number does.
        CREATE FUNCTION onward.delivers(session_ bigint) RETURNS boolean STABLE LANGUAGE sql AS
        $$ SELECT session_ = (SELECT min(session) FROM onward.node
            WHERE delivers_events AND onward.is_alive(alive_until)) $$;

        -- If a backup was restored, the rows can contain transaction numbers that this database server has not reached
        -- yet. Gives such events new numbers, and makes searches in `usage_change` begin at its first row.
        CREATE FUNCTION onward.renumber() RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            first bigint;
        BEGIN
            UPDATE onward.usage_position p SET first = 0
                WHERE p.first > pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
            IF NOT EXISTS (
                SELECT FROM onward.event
                WHERE number >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint << 20
            ) THEN RETURN; END IF;
            LOCK TABLE onward.event IN EXCLUSIVE MODE;
            first := pg_current_xact_id()::text::bigint << 20;
            UPDATE onward.event e SET number = first + restored.position
                FROM (
                    SELECT number, row_number() OVER (ORDER BY number) AS position FROM onward.event
                    WHERE number >= first
                    ORDER BY number LIMIT 1000000
                ) AS restored
                WHERE e.number = restored.number;
        END $$;

        """
}
