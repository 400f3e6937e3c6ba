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

    /// The steps of the schema in order. Add new steps at the end.
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

    private static let nodes = """
        -- The sessions of the nodes. A session has ended when `alive_until` has passed, or when it has no row. Only a
        -- living session renews its row. After the clock of the database was set back, the row of a session that has not
        -- been renewed since can have a time that no session reaches: such a session has ended, too.
        --
        -- `process` identifies the process that has opened the session with its attempt `opening`. Only the last session
        -- of a process is alive. While an exclusive session is alive, no other one is opened.
        CREATE TABLE onward.node (
            session bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            process text NOT NULL DEFAULT gen_random_uuid()::text,
            opening bigint NOT NULL DEFAULT 1,
            name text NOT NULL,
            is_exclusive boolean NOT NULL DEFAULT false,
            batch bigint NOT NULL DEFAULT 0,
            delivers_events boolean NOT NULL DEFAULT true,
            alive_until timestamptz NOT NULL
        );
        CREATE FUNCTION onward.is_alive(alive_until timestamptz) RETURNS boolean LANGUAGE sql AS
        $$ SELECT alive_until > clock_timestamp() AND alive_until <= clock_timestamp() + interval '30 seconds' $$;

        -- Opens a session, and ends the earlier ones of the process: also those of whose opening the process has got no
        -- response, so that no other process waits for them. An attempt that arrives late ends no later session. An
        -- exclusive session removes the rows of all ended sessions first, so that none of their transactions is running or
        -- accepted any more.
        CREATE FUNCTION onward.open_session(
            process_ text, opening_ bigint, name_ text, milliseconds bigint, delivers_events_ boolean,
            is_exclusive_ boolean
        ) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            opened bigint;
        BEGIN
            -- The statements after the locks see what an earlier opening has inserted.
            PERFORM pg_advisory_xact_lock(hashtextextended(process_, 9));
            IF is_exclusive_ THEN PERFORM pg_advisory_xact_lock(hashtextextended('node', 10));
            ELSE PERFORM pg_advisory_xact_lock_shared(hashtextextended('node', 10));
            END IF;
            IF EXISTS (SELECT FROM onward.node WHERE process = process_ AND opening >= opening_) THEN
                RAISE EXCEPTION 'a later session exists' USING ERRCODE = 'ON012';
            END IF;
            -- A renewal that is not committed yet has locked its row, so this waits for it, and a later one fails.
            UPDATE onward.node SET alive_until = '-infinity' WHERE alive_until > '-infinity'
                AND (process = process_ OR (is_exclusive OR is_exclusive_) AND NOT onward.is_alive(alive_until));
            -- A session that this update has not ended counts as alive, even if its time has passed since.
            IF EXISTS (SELECT FROM onward.node
                WHERE (is_exclusive OR is_exclusive_) AND alive_until > '-infinity') THEN
                RAISE EXCEPTION 'another process uses the database exclusively, or would not have it exclusively'
                    USING ERRCODE = 'ON013';
            END IF;
            IF is_exclusive_ THEN DELETE FROM onward.node; END IF;
            INSERT INTO onward.node (process, opening, name, is_exclusive, delivers_events, alive_until)
                VALUES (process_, opening_, name_, is_exclusive_, delivers_events_,
                    clock_timestamp() + milliseconds * interval '1 millisecond')
                RETURNING session INTO opened;
            RETURN opened;
        END $$;

        -- Begins a batch of changes, and keeps the row of the session until the end of the transaction. A collector removes
        -- the row of an ended session before it removes objects of that session. `application_name` contains the
        -- session, so that other nodes can find and end the transaction when the session has ended.
        CREATE FUNCTION onward.begin_batch(session_ bigint, batch_ bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            current bigint;
        BEGIN
            SELECT batch INTO current FROM onward.node WHERE session = session_ FOR KEY SHARE;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the session % has ended', session_ USING ERRCODE = 'ON012';
            ELSIF current <> batch_ THEN
                RAISE EXCEPTION 'batches before % are no longer accepted', current USING ERRCODE = 'ON011';
            END IF;
            PERFORM set_config('application_name', 'onward ' || session_, true);
        END $$;

        -- Waits for the end of all running batches of a session, and rejects those that arrive later with the same
        -- number. Afterwards the rows contain the outcome of every batch. Returns the number for later batches.
        CREATE FUNCTION onward.resolve_batches(session_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE
            next_batch bigint;
        BEGIN
            PERFORM FROM onward.node WHERE session = session_ FOR UPDATE;
            UPDATE onward.node SET batch = batch + 1 WHERE session = session_ RETURNING batch INTO next_batch;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the session % has ended', session_ USING ERRCODE = 'ON012';
            END IF;
            RETURN next_batch;
        END $$;

        -- Returns whether `session_` can become the holder of an upload whose holder is `holder_`: NULL, this session
        -- itself, or a session that has ended. The row of an ended session is marked with '-infinity' first. From then on its
        -- node cannot renew it, even if a renewal has been sent already.
        CREATE FUNCTION onward.is_free(holder_ bigint, session_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
            IF holder_ IS NULL OR holder_ = session_ THEN RETURN true; END IF;
            UPDATE onward.node SET alive_until = '-infinity'
                WHERE session = holder_ AND alive_until > '-infinity' AND NOT onward.is_alive(alive_until);
            RETURN NOT EXISTS (SELECT FROM onward.node WHERE session = holder_ AND alive_until > '-infinity');
        END $$;

        """

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
        -- holds it, this session becomes the holder, with a higher fence, even if it was the holder before. If another
        -- session holds it and `requests_release` is true, that session gets a notification to release the upload.
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
                IF NOT onward.is_free(old.holder, session_) THEN
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

    private static let usage = """
        -- The usage of each principal is its row in `usage` and all its rows in `usage_change` together. Changes insert
        -- rows, so that transactions of the same principal do not wait for each other.
        --
        -- Rows of `usage_change` are deleted when they have been added to `usage`. As long as another transaction, such as a
        -- dump, could still see them, they stay in the table and its indexes, and a search there reads all of
        -- them. So every search begins with the transaction `first`: no row of an earlier transaction is left, and none
        -- will come, because all these transactions have ended.
        CREATE TABLE onward.usage (
            principal text NOT NULL PRIMARY KEY,
            uploads bigint NOT NULL,
            reserved bigint NOT NULL,
            published bigint NOT NULL
        );
        CREATE TABLE onward.usage_change (
            xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
            principal text NOT NULL,
            uploads bigint NOT NULL,
            reserved bigint NOT NULL,
            published bigint NOT NULL
        );
        CREATE INDEX usage_change_by_transaction ON onward.usage_change (xid);
        CREATE INDEX usage_change_by_principal ON onward.usage_change (principal, xid);
        CREATE TABLE onward.usage_position (first bigint NOT NULL);
        INSERT INTO onward.usage_position VALUES (0);

        CREATE FUNCTION onward.current_usage(principal_ text)
        RETURNS TABLE (principal text, uploads numeric, reserved numeric, published numeric) STABLE LANGUAGE sql AS $$
            SELECT u.principal, sum(u.uploads), sum(u.reserved), sum(u.published)
            FROM (
                SELECT a.principal, a.uploads, a.reserved, a.published FROM onward.usage a
                WHERE principal_ IS NULL OR a.principal = principal_
                UNION ALL
                SELECT b.principal, b.uploads, b.reserved, b.published FROM onward.usage_change b
                WHERE (principal_ IS NULL OR b.principal = principal_)
                    AND b.xid >= (SELECT first FROM onward.usage_position)
            ) AS u GROUP BY u.principal
        $$;

        CREATE FUNCTION onward.lock_principals(principals text[]) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE
            key bigint;
        BEGIN
            FOR key IN SELECT DISTINCT hashtextextended(p, 7) FROM unnest(principals) AS p ORDER BY 1 LOOP
                PERFORM pg_advisory_xact_lock(key);
            END LOOP;
        END $$;

        -- Checks limits. Transactions that are checked for the same principal run one after the other, except those that
        -- add at most 256 KiB while 256 MiB of the quota are free: 1000 of them at the same time cannot exceed it. They
        -- share the lock, so that no other transaction uses the free bytes meanwhile.
        CREATE FUNCTION onward.admit(
            principal_ text, uploads_ bigint, bytes bigint, max_uploads bigint, quota bigint
        ) RETURNS integer LANGUAGE plpgsql AS $$
        DECLARE
            margin bigint := 256 << 20;
            used record;
            is_far boolean := false;
        BEGIN
            IF max_uploads IS NULL AND quota IS NULL THEN RETURN 0; END IF;
            IF uploads_ = 0 AND bytes <= 256 << 10 THEN
                is_far := quota - margin >= (
                    SELECT coalesce(sum(u.reserved + u.published), 0) FROM onward.current_usage(principal_) u);
            END IF;
            IF is_far THEN
                PERFORM pg_advisory_xact_lock_shared(hashtextextended(principal_, 7));
            ELSE
                PERFORM onward.lock_principals(ARRAY[principal_]);
            END IF;
            SELECT coalesce(sum(u.uploads), 0) AS uploads, coalesce(sum(u.reserved + u.published), 0) AS bytes
                INTO used FROM onward.current_usage(principal_) u;
            IF is_far AND used.bytes > quota - margin THEN
                -- The transaction is repeated, with the other lock.
                RAISE EXCEPTION 'the quota is nearly reached' USING ERRCODE = 'serialization_failure';
            END IF;
            IF uploads_ > 0 AND used.uploads + uploads_ > max_uploads THEN RETURN 3; END IF;
            IF bytes > 0 AND used.bytes + bytes > quota THEN RETURN 4; END IF;
            RETURN 0;
        END $$;

        -- Adds at most 5000 changes to the rows in `usage` if there are at least `minimum`. Returns their number.
        CREATE FUNCTION onward.add_usage_changes(minimum integer) RETURNS bigint LANGUAGE plpgsql
        SET enable_seqscan = off AS $$
        DECLARE
            first_ bigint := (SELECT first FROM onward.usage_position);
            -- All earlier transactions have ended.
            running bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
            waiting integer := (
                SELECT count(*) FROM (
                    SELECT FROM onward.usage_change WHERE xid >= first_ ORDER BY xid LIMIT minimum) AS c);
            added bigint;
        BEGIN
            IF waiting < minimum THEN RETURN 0; END IF;
            IF NOT pg_try_advisory_xact_lock(hashtextextended('usage', 8)) THEN RETURN 0; END IF;
            WITH old AS (
                DELETE FROM onward.usage_change
                WHERE ctid = ANY (ARRAY(
                    SELECT ctid FROM onward.usage_change WHERE xid >= first_ ORDER BY xid LIMIT 5000))
                RETURNING principal, uploads, reserved, published
            ), totals AS (
                INSERT INTO onward.usage AS u (principal, uploads, reserved, published)
                    SELECT principal, sum(uploads), sum(reserved), sum(published) FROM old GROUP BY principal
                    ORDER BY principal
                    ON CONFLICT (principal) DO UPDATE SET uploads = u.uploads + excluded.uploads,
                        reserved = u.reserved + excluded.reserved, published = u.published + excluded.published
            )
            SELECT count(*) INTO added FROM old;
            UPDATE onward.usage_position SET first = least(
                running, (SELECT min(xid) FROM onward.usage_change WHERE xid >= first_));
            RETURN added;
        END $$;

        """

    private static let counting = """

        -- Count every change of an upload or a file in its transaction, whatever statement makes it.
        CREATE FUNCTION onward.count_upload() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
            was_unfinished boolean := TG_OP <> 'INSERT' AND OLD.phase < 2;
            is_unfinished boolean := TG_OP <> 'DELETE' AND NEW.phase < 2;
            reserved bigint := 0;
        BEGIN
            -- Announced lengths are limited, so that sums of many do not overflow.
            IF is_unfinished THEN reserved := least(coalesce(NEW.length, NEW."offset"), 1::bigint << 50); END IF;
            IF was_unfinished THEN
                reserved := reserved - least(coalesce(OLD.length, OLD."offset"), 1::bigint << 50);
            END IF;
            IF is_unfinished <> was_unfinished OR reserved <> 0 THEN
                INSERT INTO onward.usage_change (principal, uploads, reserved, published)
                    VALUES (CASE WHEN TG_OP = 'DELETE' THEN OLD.principal ELSE NEW.principal END,
                        is_unfinished::integer - was_unfinished::integer, reserved, 0);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER count_inserted AFTER INSERT OR DELETE ON onward.upload
            FOR EACH ROW EXECUTE FUNCTION onward.count_upload();
        CREATE TRIGGER count_changed AFTER UPDATE ON onward.upload FOR EACH ROW
            WHEN (OLD.phase <> NEW.phase OR coalesce(OLD.length, OLD."offset") <> coalesce(NEW.length, NEW."offset"))
            EXECUTE FUNCTION onward.count_upload();

        CREATE FUNCTION onward.count_file() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP <> 'INSERT' AND OLD.principal IS NOT NULL THEN
                INSERT INTO onward.usage_change (principal, uploads, reserved, published)
                    VALUES (OLD.principal, 0, 0, -OLD.size);
            END IF;
            IF TG_OP <> 'DELETE' AND NEW.principal IS NOT NULL THEN
                INSERT INTO onward.usage_change (principal, uploads, reserved, published)
                    VALUES (NEW.principal, 0, 0, NEW.size);
            END IF;
            RETURN NULL;
        END $$;
        CREATE TRIGGER count_file AFTER INSERT OR DELETE OR UPDATE OF principal, size ON onward.name
            FOR EACH ROW EXECUTE FUNCTION onward.count_file();

        """
}
