import PostgreSQL

/// The SQL of bytes and published files.
///
/// Each function is called in the transaction of its caller, or alone. An error with an SQLSTATE of ``FilesError``
/// rolls that transaction back.
extension ClusterSQL {
    /// The SQLSTATEs of the errors that the functions raise.
    enum FilesError {
        /// The session that has stored an object has ended.
        static let sessionEnded = "ON001"
        /// The pieces would not follow each other, do not have the size of the file, or do not reach the offset.
        static let gap = "ON002"
        /// An object was replaced or removed before, so it may be deleted at any time.
        static let garbage = "ON003"
        /// The name belongs to another file than expected, or to no file.
        static let occupied = "ON004"
        /// A directory has the name.
        static let isDirectory = "ON005"
        /// A part of the path of the directory is a file.
        static let parentIsFile = "ON006"
        static let directoryMissing = "ON007"
        /// Bytes of a request that is to be retained are missing.
        static let bytesMissing = "ON008"
    }

    /// The maximum number of pieces that one transaction drops: those of 400 GiB, if they have 8 MiB each.
    static let maxDropped = 50_000
    /// A transaction drops no more pieces as soon as the rows of the dropped pieces had this number of bytes.
    static let maxDroppedData = 32 << 20

    /// A condition for blobs whose pieces nothing needs.
    static func isUnneeded(_ blob: String) -> String {
        """
        NOT EXISTS (SELECT FROM onward.upload u WHERE u.blob = \(blob) AND u.phase < 2)
            AND NOT EXISTS (SELECT FROM onward.name n WHERE n.blob = \(blob))
            AND NOT EXISTS (SELECT FROM onward.retained r WHERE r.blob = \(blob))
        """
    }

    /// The tables and functions. They use the tables `node` and `upload`.
    static let files = """
        -- The bytes of a blob: consecutive pieces from byte 0 on. A piece is the first `size` bytes of an object, or of
        -- `data`.
        CREATE TABLE onward.piece (
            blob text COLLATE "C" NOT NULL,
            start bigint NOT NULL CHECK (start >= 0),
            size bigint NOT NULL CHECK (size > 0),
            object text COLLATE "C",
            data bytea CHECK (octet_length(data) = size),
            PRIMARY KEY (blob, start),
            CHECK ((object IS NULL) <> (data IS NULL))
        );
        ALTER TABLE onward.piece ALTER data SET STORAGE EXTERNAL;
        CREATE INDEX piece_by_object ON onward.piece (object) WHERE object IS NOT NULL;

        -- Published files and their directories. The root, '', has no row. A directory is never removed. The columns
        -- `principal` and `fields` are null for directories, and for files that were copied from a data directory without
        -- a record.
        CREATE TABLE onward.name (
            parent text COLLATE "C" NOT NULL,
            name text COLLATE "C" NOT NULL,
            is_directory boolean NOT NULL,
            blob text COLLATE "C" UNIQUE,
            size bigint NOT NULL,
            modified bigint NOT NULL,
            tag text COLLATE "C",
            principal text,
            fields bytea,
            PRIMARY KEY (parent, name),
            CHECK (is_directory = (blob IS NULL)),
            CHECK (is_directory = (tag IS NULL))
        );

        -- Objects that no piece names any more. They are deleted some time after `since`.
        CREATE TABLE onward.garbage (
            object text COLLATE "C" NOT NULL PRIMARY KEY,
            since timestamptz NOT NULL DEFAULT clock_timestamp(),
            claimed_until timestamptz
        );
        CREATE INDEX garbage_by_age ON onward.garbage (since);

        -- Blobs that are kept for the operator after the end of their upload.
        CREATE TABLE onward.retained (
            key text COLLATE "C" NOT NULL PRIMARY KEY,
            blob text COLLATE "C" NOT NULL,
            description bytea NOT NULL
        );
        CREATE INDEX retained_by_blob ON onward.retained (blob);

        -- The searches of the collectors, with the position of the next page and the earliest time for it. A retained
        -- request that a command is sending also has a row, with the name and the end of the claim.
        CREATE TABLE onward.collection (
            task text NOT NULL PRIMARY KEY,
            position text COLLATE "C" NOT NULL DEFAULT '',
            due timestamptz NOT NULL DEFAULT '-infinity'
        );
        INSERT INTO onward.collection (task) VALUES ('objects'), ('pieces');

        -- Identifies the database in its object storage.
        CREATE TABLE onward.identity (identity text NOT NULL PRIMARY KEY);
        INSERT INTO onward.identity VALUES (gen_random_uuid()::text);

        -- The last marks of the database, one of which is in its object storage: see MarkRenewal.
        CREATE TABLE onward.mark (
            number bigint NOT NULL PRIMARY KEY,
            mark text COLLATE "C" NOT NULL UNIQUE DEFAULT gen_random_uuid()::text
        );
        INSERT INTO onward.mark (number) VALUES (1);

        -- The session that has stored an object; null if the name is not that of an object of a blob.
        CREATE FUNCTION onward.session_of(object text) RETURNS bigint IMMUTABLE LANGUAGE sql AS
        $$ SELECT substring(object from '^data/[^/]+/([0-9]{1,18})-[0-9]+$')::bigint $$;

        -- Replaces all pieces of a blob from the byte `from_` on by the given pieces, the first of which begins at
        -- `from_`. Objects that are replaced become garbage, unless a new piece is a part of the same object. Returns
        -- the end of the last piece.
        --
        -- The rows of the sessions that have stored new objects are locked until the end of the transaction, so that a
        -- collector cannot remove them before the names of the objects are visible to it.
        CREATE FUNCTION onward.put_pieces(
            blob text, from_ bigint, starts bigint[], sizes bigint[], objects text[], data bytea[]
        ) RETURNS bigint LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        DECLARE
            new_objects text[] := ARRAY(
                SELECT o.object FROM unnest(objects) AS o (object)
                WHERE o.object IS NOT NULL AND NOT EXISTS (
                    SELECT FROM onward.piece p WHERE p.object = o.object AND p.blob = put_pieces.blob));
            sessions bigint[];
            covered bigint;
        BEGIN
            IF cardinality(new_objects) > 0 THEN
                sessions := ARRAY(SELECT DISTINCT onward.session_of(o) FROM unnest(new_objects) AS o);
                PERFORM FROM onward.node n WHERE n.session = ANY (sessions) FOR KEY SHARE;
                IF (SELECT count(*) FROM onward.node n WHERE n.session = ANY (sessions)) < cardinality(sessions) THEN
                    RAISE EXCEPTION 'a session that stored an object has ended' USING ERRCODE = 'ON001';
                END IF;
                IF EXISTS (SELECT FROM onward.garbage g WHERE g.object = ANY (new_objects)) THEN
                    RAISE EXCEPTION 'an object is garbage' USING ERRCODE = 'ON003';
                END IF;
            END IF;

            WITH replaced AS (
                DELETE FROM onward.piece p WHERE p.blob = put_pieces.blob AND p.start >= from_ RETURNING p.object
            )
            INSERT INTO onward.garbage (object)
                SELECT r.object FROM replaced r
                WHERE r.object IS NOT NULL AND NOT EXISTS (SELECT FROM unnest(objects) AS o WHERE o = r.object);

            covered := onward.end_of_pieces(put_pieces.blob);
            IF covered <> from_ THEN
                RAISE EXCEPTION 'pieces from % on cannot follow byte %', from_, covered USING ERRCODE = 'ON002';
            END IF;
            INSERT INTO onward.piece (blob, start, size, object, data)
                SELECT put_pieces.blob, u.start, u.size, u.object, u.data
                FROM unnest(starts, sizes, objects, put_pieces.data) AS u (start, size, object, data);
            FOR index IN 1 .. cardinality(starts) LOOP
                IF starts[index] <> covered THEN
                    RAISE EXCEPTION 'a piece at % cannot follow byte %', starts[index], covered USING ERRCODE = 'ON002';
                END IF;
                covered := covered + sizes[index];
            END LOOP;
            RETURN covered;
        END $$;

        -- The number of bytes in the pieces of a blob.
        CREATE FUNCTION onward.end_of_pieces(blob text) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        BEGIN
            RETURN coalesce(
                (SELECT p.start + p.size FROM onward.piece p WHERE p.blob = end_of_pieces.blob
                 ORDER BY p.start DESC LIMIT 1), 0);
        END $$;

        -- An unfinished upload has the bytes before its offset, whatever has changed it. This is verified at the end of the
        -- transaction, because the pieces are recorded after the offset.
        CREATE FUNCTION onward.require_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF EXISTS (SELECT FROM onward.upload u
                WHERE u.id = NEW.id AND u.phase < 2 AND u."offset" > onward.end_of_pieces(u.blob)) THEN
                RAISE EXCEPTION 'the pieces do not reach the offset' USING ERRCODE = 'ON002';
            END IF;
            RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER require_bytes AFTER INSERT OR UPDATE OF "offset" ON onward.upload
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.phase < 2 AND NEW."offset" > 0)
            EXECUTE FUNCTION onward.require_bytes();

        -- Raises an error with the SQLSTATE `state` if the pieces of a blob do not have `size` bytes.
        CREATE FUNCTION onward.require_size(blob text, size bigint, state text) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN
            IF onward.end_of_pieces(blob) <> size THEN
                RAISE EXCEPTION 'the pieces do not have % bytes', size USING ERRCODE = state;
            END IF;
        END $$;

        -- Removes the last pieces of a blob, unless an unfinished upload, a published file or a retained request needs them.
        -- Their objects become garbage. One call removes \(maxDropped) pieces at most, and those whose rows have about
        -- \(maxDroppedData >> 20) MiB of bytes, so that it ends in time; a collector removes the others. Returns whether
        -- there are others.
        CREATE FUNCTION onward.drop_pieces(blob text) RETURNS boolean LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        DECLARE
            removed bigint;
        BEGIN
            WITH last AS (
                SELECT l.start, CASE WHEN l.object IS NULL THEN l.size ELSE 0 END AS data
                FROM onward.piece l WHERE l.blob = drop_pieces.blob ORDER BY l.start DESC LIMIT \(maxDropped)
            ), part AS (
                SELECT l.start, sum(l.data) OVER (ORDER BY l.start DESC) - l.data AS later FROM last l
            ), dropped AS (
                DELETE FROM onward.piece p
                WHERE p.blob = drop_pieces.blob AND \(isUnneeded("drop_pieces.blob"))
                    AND p.start >= (SELECT min(f.start) FROM part f WHERE f.later < \(maxDroppedData))
                RETURNING p.object
            ), recorded AS (
                INSERT INTO onward.garbage (object) SELECT d.object FROM dropped d WHERE d.object IS NOT NULL
            )
            SELECT count(*) INTO removed FROM dropped;
            RETURN removed > 0 AND EXISTS (SELECT FROM onward.piece p WHERE p.blob = drop_pieces.blob);
        END $$;

        -- Returns 'directory' if all these names are directories, 'file' if one is a file, otherwise 'missing'.
        CREATE FUNCTION onward.kind_of_path(parents text[], names text[]) RETURNS text STABLE LANGUAGE plpgsql AS $$
        DECLARE
            directories bigint;
            files bigint;
        BEGIN
            SELECT count(*) FILTER (WHERE n.is_directory), count(*) FILTER (WHERE NOT n.is_directory)
                INTO directories, files
                FROM unnest(parents, names) AS path (parent, name)
                JOIN onward.name n ON n.parent = path.parent AND n.name = path.name;
            RETURN CASE
                WHEN directories = cardinality(parents) THEN 'directory'
                WHEN files > 0 THEN 'file'
                ELSE 'missing' END;
        END $$;

        -- Makes the missing directories of a path, from the root on. Returns 'directory', or 'file' if a part of the
        -- path is a file.
        CREATE FUNCTION onward.make_directories(parents text[], names text[]) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            is_directory boolean;
        BEGIN
            FOR index IN 1 .. cardinality(parents) LOOP
                INSERT INTO onward.name (parent, name, is_directory, size, modified)
                    VALUES (parents[index], names[index], true, 0,
                        (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint)
                    ON CONFLICT DO NOTHING;
                IF NOT FOUND THEN
                    is_directory := (SELECT n.is_directory FROM onward.name n
                        WHERE n.parent = parents[index] AND n.name = names[index]);
                    -- A file with this name may have been removed since.
                    IF is_directory IS DISTINCT FROM true THEN RETURN 'file'; END IF;
                END IF;
            END LOOP;
            RETURN 'directory';
        END $$;

        -- Gives a blob a name in a directory that exists. The pieces of the blob must already be recorded. `replacing`
        -- is the tag of the file that is replaced. If it is null, no file may have the name. Raises an error if this is
        -- not possible.
        CREATE FUNCTION onward.publish(
            blob text, parents text[], names text[], parent text, name text, size bigint, modified bigint, tag text,
            replacing text, principal text, fields bytea
        ) RETURNS void LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        DECLARE
            kind text;
            old onward.name;
        BEGIN
            kind := onward.kind_of_path(parents, names);
            IF kind = 'file' THEN
                RAISE EXCEPTION 'a part of the path is a file' USING ERRCODE = 'ON006';
            ELSIF kind = 'missing' THEN
                RAISE EXCEPTION 'the directory is missing' USING ERRCODE = 'ON007';
            END IF;
            LOOP
                SELECT n.* INTO old FROM onward.name n
                    WHERE n.parent = publish.parent AND n.name = publish.name FOR UPDATE;
                IF FOUND THEN
                    IF old.is_directory THEN
                        RAISE EXCEPTION 'a directory has the name' USING ERRCODE = 'ON005';
                    END IF;
                    IF old.tag IS DISTINCT FROM publish.replacing THEN
                        RAISE EXCEPTION 'another file has the name' USING ERRCODE = 'ON004';
                    END IF;
                    UPDATE onward.name n
                        SET blob = publish.blob, size = publish.size, modified = publish.modified, tag = publish.tag,
                            principal = publish.principal, fields = publish.fields
                        WHERE n.parent = publish.parent AND n.name = publish.name;
                    PERFORM onward.drop_pieces(old.blob);
                    EXIT;
                END IF;
                IF publish.replacing IS NOT NULL THEN
                    RAISE EXCEPTION 'the file was removed' USING ERRCODE = 'ON004';
                END IF;
                INSERT INTO onward.name (
                    parent, name, is_directory, blob, size, modified, tag, principal, fields
                ) VALUES (
                    publish.parent, publish.name, false, publish.blob, publish.size, publish.modified, publish.tag,
                    publish.principal, publish.fields
                ) ON CONFLICT (parent, name) DO NOTHING;
                EXIT WHEN FOUND;
            END LOOP;
            PERFORM onward.require_size(publish.blob, publish.size, 'ON002');
        END $$;

        -- Keeps a blob for the operator. Raises an error if its pieces do not have `size` bytes.
        CREATE FUNCTION onward.retain(key text, blob text, description bytea, size bigint)
        RETURNS void LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        BEGIN
            PERFORM onward.require_size(retain.blob, retain.size, 'ON008');
            INSERT INTO onward.retained (key, blob, description)
                VALUES (retain.key, retain.blob, retain.description) ON CONFLICT (key) DO NOTHING;
        END $$;

        -- Removes the name of the file with the tag `tag`. Its bytes remain as long as a retained request needs them.
        -- Returns 'removed'; 'occupied' if another file has the name; 'directory' if a directory has it; 'file' if a
        -- part of the path of the directory is a file; otherwise 'missing'.
        CREATE FUNCTION onward.remove_name(
            parents text[], names text[], parent text, name text, tag text
        ) RETURNS text LANGUAGE plpgsql AS $$
        #variable_conflict use_column
        DECLARE
            old onward.name;
        BEGIN
            SELECT n.* INTO old FROM onward.name n
                WHERE n.parent = remove_name.parent AND n.name = remove_name.name FOR UPDATE;
            IF NOT FOUND THEN
                RETURN CASE WHEN onward.kind_of_path(parents, names) = 'file' THEN 'file' ELSE 'missing' END;
            END IF;
            IF old.is_directory THEN RETURN 'directory'; END IF;
            IF old.tag <> remove_name.tag THEN RETURN 'occupied'; END IF;
            DELETE FROM onward.name n WHERE n.parent = old.parent AND n.name = old.name;
            PERFORM onward.drop_pieces(old.blob);
            RETURN 'removed';
        END $$;
        """

    // MARK: Bytes

    /// A list of the pieces that meet a condition. It ends with the piece number `count`, or with the piece whose `data`
    /// make the sum of `data` reach the limit.
    /// - Parameters:
    ///   - order: `ASC` for the first pieces, `DESC` for the last ones. The list is ordered by `start` in both cases.
    ///   - limits: the numbers of the parameters with the number of pieces, and with the limit for the sum.
    private static func list(
        _ condition: String, _ order: String = "ASC", limits: (count: String, data: String)
    ) -> String {
        """
        SELECT l.start, l.size, l.object, l.data FROM (
            SELECT f.*, sum(octet_length(f.data)) OVER (
                ORDER BY f.start \(order) ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
            FROM (
                SELECT p.start, p.size, p.object, p.data FROM onward.piece p WHERE \(condition)
                ORDER BY p.start \(order) LIMIT \(limits.count)
            ) AS f
        ) AS l
        WHERE coalesce(l.before, 0) < \(limits.data) ORDER BY l.start
        """
    }
    /// The pieces of the blob $1 from the one with the byte at $2 on.
    static let piecesFrom = list(
        "p.blob = $1 AND p.start >= (SELECT max(start) FROM onward.piece WHERE blob = $1 AND start <= $2)",
        limits: ("$3", "$4"))
    /// The last pieces of the blob $1 that begin before the byte $2.
    static let piecesBefore = list("p.blob = $1 AND p.start < $2", "DESC", limits: ("$3", "$4"))
    static let hasUpload = "SELECT EXISTS (SELECT FROM onward.upload WHERE blob = $1)"
    static let sizeOfBlob = """
        SELECT CASE WHEN EXISTS (SELECT FROM onward.piece WHERE blob = $1)
                OR EXISTS (SELECT FROM onward.upload WHERE blob = $1)
            THEN onward.end_of_pieces($1) END
        """
    static let dropPieces = "SELECT onward.drop_pieces($1)"
    static let countRetained = "SELECT count(*) FROM onward.retained"

    // MARK: Published files

    static let kindOfPath = "SELECT onward.kind_of_path($1, $2)"
    static let makeDirectories = "SELECT onward.make_directories($1, $2)"
    static let removeName = "SELECT onward.remove_name($1, $2, $3, $4, $5)"
    /// The file, and its first pieces: one row for each. The first row has the fields of the file.
    static let openFile = """
        SELECT n.is_directory, n.blob, n.size, n.modified, n.tag, CASE WHEN coalesce(p.start, 0) = 0 THEN n.fields END,
            p.start, p.size, p.object, p.data
        FROM onward.name n LEFT JOIN LATERAL (\(list("p.blob = n.blob", limits: ("$3", "$4")))) AS p ON true
        WHERE n.parent = $1 AND n.name = $2 ORDER BY p.start
        """
    static let isDirectory = "SELECT is_directory FROM onward.name WHERE parent = $1 AND name = $2"
    static let entries = """
        SELECT name, is_directory, size, modified FROM onward.name WHERE parent = $1 AND name >= $2 ORDER BY name LIMIT $3
        """

    // MARK: Collection

    /// The identity of the database, the number of the mark $1, and the number and the text of the last mark.
    static let marks = """
        SELECT i.identity, (SELECT number FROM onward.mark WHERE mark = $1), m.number, m.mark
        FROM onward.identity i, onward.mark m ORDER BY m.number DESC LIMIT 1
        """
    /// Adds a mark with the number $1 unless there is one, and keeps the last thousand.
    static let addMark = """
        WITH removed AS (DELETE FROM onward.mark WHERE number <= $1 - 1000)
        INSERT INTO onward.mark (number) VALUES ($1) ON CONFLICT DO NOTHING
        """
    /// The names of objects of a hundred blobs, which begin with a random one; no row if no piece names an object. Reads some
    /// pieces of each blob: several objects can be those of one file, which was removed later.
    static let someObjects = """
        WITH RECURSIVE start (blob) AS (SELECT gen_random_uuid()::text),
        found (blob, count, wraps) AS (
            SELECT (SELECT min(p.blob) FROM onward.piece p WHERE p.blob > s.blob), 1, false FROM start s
            UNION ALL
            SELECT CASE WHEN f.blob IS NULL THEN (SELECT min(p.blob) FROM onward.piece p)
                ELSE (SELECT min(p.blob) FROM onward.piece p WHERE p.blob > f.blob) END,
                f.count + 1, f.wraps OR f.blob IS NULL
            FROM found f WHERE f.count < 200 AND NOT (f.wraps AND f.blob IS NULL)
        )
        SELECT DISTINCT o.object FROM found f,
            LATERAL (SELECT p.object FROM onward.piece p WHERE p.blob = f.blob AND p.object IS NOT NULL LIMIT 1) o
        LIMIT 100
        """

    /// Claims objects that are garbage since $1 (microseconds since 1970) or longer, $2 at most, so that other nodes do not
    /// delete them at the same time.
    static let claimGarbage = """
        UPDATE onward.garbage SET claimed_until = clock_timestamp() + interval '5 minutes'
        WHERE object = ANY (ARRAY(
            SELECT object FROM onward.garbage
            WHERE since <= timestamptz 'epoch' + $1 * interval '1 microsecond'
                AND (claimed_until IS NULL OR claimed_until <= clock_timestamp())
            ORDER BY since LIMIT $2 FOR UPDATE SKIP LOCKED))
        RETURNING object
        """
    /// Records as garbage the objects in $1 that no piece names. No other transaction may name one of these objects now
    /// or later.
    static let addUnneeded = """
        INSERT INTO onward.garbage (object) SELECT o.object FROM unnest($1::text[]) AS o (object)
        WHERE NOT EXISTS (SELECT FROM onward.piece p WHERE p.object = o.object) ORDER BY 1 ON CONFLICT DO NOTHING
        """
    static let removeGarbage = "DELETE FROM onward.garbage WHERE object = ANY ($1)"
    /// Claims the next page of a search. Parameters: the search, and the milliseconds until another node can repeat the
    /// page.
    static let claimPage = """
        UPDATE onward.collection SET due = clock_timestamp() + $2 * interval '1 millisecond'
        WHERE task = (
            SELECT task FROM onward.collection WHERE task = $1 AND due <= clock_timestamp() FOR UPDATE SKIP LOCKED)
        RETURNING position
        """
    /// Parameters: the search, the position of the next page, and the milliseconds until it is due.
    static let endPage = """
        UPDATE onward.collection SET position = $2, due = clock_timestamp() + $3 * interval '1 millisecond' WHERE task = $1
        """
    /// The objects in $1 that nothing needs or can need: see ``PieceCollector``.
    static let orphans = """
        SELECT o.object FROM unnest($1) AS o (object)
        WHERE onward.session_of(o.object) IS NOT NULL
            AND NOT EXISTS (SELECT FROM onward.node n WHERE n.session = onward.session_of(o.object))
            AND NOT EXISTS (SELECT FROM onward.piece p WHERE p.object = o.object)
            AND NOT EXISTS (SELECT FROM onward.garbage g WHERE g.object = o.object)
        """
    /// The next blobs after $1, $2 at most, and whether nothing needs them. Reads one piece of each blob: `DISTINCT` would
    /// read all of them.
    static let blobs = """
        WITH RECURSIVE found (blob) AS (
            SELECT (SELECT min(blob) FROM onward.piece WHERE blob > $1)
            UNION ALL
            SELECT (SELECT min(p.blob) FROM onward.piece p WHERE p.blob > f.blob) FROM found f WHERE f.blob IS NOT NULL
        )
        SELECT f.blob, \(isUnneeded("f.blob")) FROM found f WHERE f.blob IS NOT NULL LIMIT $2
        """
}
