/// The sessions of the nodes, which own batches of changes and hold uploads.
extension ClusterSQL {
    static let nodes = """
        -- The number of a new session: the milliseconds since 1970, so that later sessions have higher numbers, and 18 random
        -- bits. A sequence would repeat numbers after a failover that has lost its last changes, and in another database: then
        -- two processes would use the same session, and their objects could have the same keys.
        CREATE FUNCTION onward.new_session() RETURNS bigint LANGUAGE sql AS
        $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 18) + floor(random() * (1 << 18))::bigint $$;

        -- The sessions of the nodes. A session has ended when `alive_until` has passed, or when it has no row. Only a
        -- living session renews its row. After the clock of the database was set back, `alive_until` of a session that was
        -- not renewed since can be later than a renewal would set it now: such a session has ended, too.
        --
        -- `renewed_at` is the time of the opening or of the last renewal, and `steady_since` the time since which the session
        -- was renewed without a long pause. A long pause can mean that the database was unavailable for all nodes, or that
        -- its clock was set.
        --
        -- `process` identifies the process that has opened the session with its attempt `opening`. Only the last session
        -- of a process is alive. While an exclusive session is alive, no other one is opened.
        CREATE TABLE onward.node (
            session bigint NOT NULL PRIMARY KEY DEFAULT onward.new_session(),
            process text NOT NULL DEFAULT gen_random_uuid()::text,
            opening bigint NOT NULL DEFAULT 1,
            name text NOT NULL,
            is_exclusive boolean NOT NULL DEFAULT false,
            batch bigint NOT NULL DEFAULT 0,
            delivers_events boolean NOT NULL DEFAULT true,
            alive_until timestamptz NOT NULL,
            renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
            steady_since timestamptz NOT NULL DEFAULT clock_timestamp()
        );
        CREATE FUNCTION onward.is_alive(alive_until timestamptz) RETURNS boolean LANGUAGE sql AS
        $$ SELECT alive_until > clock_timestamp() AND alive_until <= clock_timestamp() + interval '30 seconds' $$;

        -- Whether a session was renewed within the last 7.5 seconds, half of its lifetime, and the clock was not set back
        -- since.
        CREATE FUNCTION onward.is_recent(alive_until timestamptz, renewed_at timestamptz) RETURNS boolean LANGUAGE sql AS
        $$ SELECT alive_until > clock_timestamp() + interval '7.5 seconds' AND renewed_at <= clock_timestamp() $$;

        -- Whether a session can acquire, from a session that has ended, an upload that a target resource processes. For ten
        -- seconds after an outage that it has noticed, it cannot: if the other node still runs, it opens its next session
        -- within this time, and that session adopts the upload.
        CREATE FUNCTION onward.is_steady(session_ bigint) RETURNS boolean LANGUAGE sql AS
        $$ SELECT EXISTS (SELECT FROM onward.node WHERE session = session_ AND onward.is_recent(alive_until, renewed_at)
            AND steady_since < clock_timestamp() - interval '10 seconds') $$;

        -- Opens a session, and ends the earlier sessions of the process, so that no other process waits for them. If the
        -- response to an earlier opening was lost, this also ends a session that the process does not know. An attempt that
        -- arrives late ends no later session. An exclusive session removes the rows of all ended sessions first, so that none
        -- of their transactions is running or accepted any more.
        --
        -- The session adopts the uploads `ids` that earlier sessions of the process have held with these fences, and that
        -- its target resources process. An upload that another session has acquired since has a higher fence, and is not
        -- adopted. After a failover that has lost changes, it can have the same fence; then it is not adopted if a living
        -- session of another process holds it. An upload whose row another transaction has locked is not adopted, so that
        -- the opening does not wait.
        CREATE FUNCTION onward.open_session(
            process_ text, opening_ bigint, name_ text, milliseconds bigint, delivers_events_ boolean,
            is_exclusive_ boolean, ids bytea[], fences bigint[]
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
                RAISE EXCEPTION 'another process uses the database, and one of the two processes requires exclusive use'
                    USING ERRCODE = 'ON013';
            END IF;
            IF is_exclusive_ THEN DELETE FROM onward.node; END IF;
            INSERT INTO onward.node (process, opening, name, is_exclusive, delivers_events, alive_until)
                VALUES (process_, opening_, name_, is_exclusive_, delivers_events_,
                    clock_timestamp() + milliseconds * interval '1 millisecond')
                RETURNING session INTO opened;
            UPDATE onward.upload SET holder = opened WHERE id = ANY (ARRAY(
                SELECT u.id FROM onward.upload u JOIN unnest(ids, fences) AS h (id, fence)
                    ON u.id = h.id AND u.fence = h.fence
                WHERE u.phase = 1 AND NOT EXISTS (SELECT FROM onward.node n
                    WHERE n.session = u.holder AND n.process <> process_ AND n.alive_until > '-infinity')
                FOR UPDATE OF u SKIP LOCKED));
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
}
