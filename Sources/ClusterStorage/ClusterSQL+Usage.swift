/// The uploads and bytes of each principal, and their limits.
extension ClusterSQL {
    static let usage = """
        -- The usage of each principal is its row in `usage` and all its rows in `usage_change` together. Changes insert
        -- rows, so that transactions of the same principal do not wait for each other.
        --
        -- Rows of `usage_change` are deleted when they have been added to `usage`. As long as another transaction, such as a
        -- dump, could still see them, they stay in the table and its indexes, and a search there reads all of
        -- them. So every search begins with the transaction `first`: no row of an earlier transaction is left, and none
        -- will come, because all these transactions have ended. No other plan must be possible: when the statistics
        -- are collected, the table is often empty, and then a search through an entire index seems to cost nothing.
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
        -- The index has an expression, so that no search for `xid` alone uses it.
        CREATE INDEX usage_change_by_principal ON onward.usage_change (principal, (xid + 0));
        CREATE TABLE onward.usage_position (first bigint NOT NULL);
        INSERT INTO onward.usage_position VALUES (0);

        CREATE FUNCTION onward.current_usage(principal_ text)
        RETURNS TABLE (principal text, uploads numeric, reserved numeric, published numeric) STABLE LANGUAGE sql AS $$
            SELECT u.principal, sum(u.uploads), sum(u.reserved), sum(u.published)
            FROM (
                SELECT a.principal, a.uploads, a.reserved, a.published FROM onward.usage a
                WHERE a.principal = principal_
                UNION ALL
                SELECT b.principal, b.uploads, b.reserved, b.published FROM onward.usage_change b
                WHERE b.principal = principal_ AND b.xid + 0 >= (SELECT first FROM onward.usage_position)
                UNION ALL
                SELECT a.principal, a.uploads, a.reserved, a.published FROM onward.usage a WHERE principal_ IS NULL
                UNION ALL
                SELECT b.principal, b.uploads, b.reserved, b.published FROM onward.usage_change b
                WHERE principal_ IS NULL AND b.xid >= (SELECT first FROM onward.usage_position)
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

    static let counting = """

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
