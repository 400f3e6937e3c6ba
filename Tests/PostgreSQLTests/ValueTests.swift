import PostgreSQL
import TestSupport
import Testing

@Suite("Values and statements", .enabled(if: PostgreSQLCluster.isInstalled, "\(PostgreSQLCluster.requirement)"))
struct ValueTests {
    @Test("Values of every type return from the server as they were sent")
    func roundTrip() async throws {
        let database = try await TestDatabase.start()
        var generator = SeededGenerator(seed: 20)
        let mebibyte = (0..<1 << 20).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let values: [(String, DatabaseValue)] = [
            ("bigint", .integer(0)), ("bigint", .integer(.min)), ("bigint", .integer(.max)), ("bigint", .null),
            ("text", .text("")), ("text", .text("a'b\"c\\ \u{1F600} \u{301}\n")), ("text", .null),
            ("bytea", .bytes([])), ("bytea", .bytes([0, 1, 0, 255])), ("bytea", .bytes(mebibyte)), ("bytea", .null),
            ("boolean", .boolean(true)), ("boolean", .boolean(false)),
            ("bigint[]", .integers([])), ("bigint[]", .integers([1, nil, -1, .max])), ("bigint[]", .null),
            ("text[]", .texts([])), ("text[]", .texts(["", nil, "NULL", "{a,\"b\"}"])),
            ("bytea[]", .byteArrays([])), ("bytea[]", .byteArrays([[], nil, [0, 0], mebibyte])),
        ]
        let results = try await onThread {
            try database.pool.transaction(
                values.map { type, value in DatabaseStatement("SELECT $1::\(type), 'x'", [value]) })
        }
        #expect(results.count == values.count)
        for ((type, value), rows) in zip(values, results) {
            #expect(rows.count == 1)
            #expect(rows[0, 0] == value, "\(type)")
            #expect(rows.text(0, 1) == "x")
        }
    }

    @Test("Results of other integer types and of functions without a result are read")
    func otherTypes() async throws {
        let database = try await TestDatabase.start()
        let rows = try await onThread {
            try database.pool.run(
                DatabaseStatement(
                    """
                    SELECT 7::smallint, (-7)::integer, 4294967295::oid, '12'::xid8, 'n'::name, '{1,NULL}'::integer[],
                    pg_notify('channel', '')
                    """))
        }
        let expected: [DatabaseValue] = [
            .integer(7), .integer(-7), .integer(4_294_967_295), .integer(12), .text("n"), .integers([1, nil]), .null,
        ]
        #expect((0..<expected.count).map { rows[0, $0] } == expected)
    }

    @Test("A result of a type that is not supported is an error that names the column")
    func unsupportedType() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let error = #expect(throws: DatabaseError.self) {
                try database.pool.run(DatabaseStatement("SELECT 1, now()"))
            }
            #expect("\(error as Any)".contains("column 2"))
            // The connection works afterwards.
            _ = try database.pool.run(DatabaseStatement("SELECT 1"))
        }
    }

    @Test("A statement reports how many rows it has changed, and rows of arrays are inserted with unnest")
    func changedRows() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let pool = database.pool
            try pool.runScript("CREATE SCHEMA s; CREATE TABLE s.t (id bytea PRIMARY KEY, epoch bigint)")
            let insert = DatabaseStatement(
                "INSERT INTO s.t SELECT * FROM unnest($1::bytea[], $2::bigint[]) RETURNING epoch",
                [.byteArrays([[1], [2], [0]]), .integers([1, 2, nil])])
            let inserted = try pool.run(insert)
            #expect(inserted.affected == 3 && inserted.count == 3)
            #expect(inserted.integer(1, 0) == 2 && inserted[2, 0] == .null)
            func update(_ epoch: Int64) throws -> Int {
                try pool.run(
                    DatabaseStatement(
                        "UPDATE s.t SET epoch = $2 + 1 WHERE id = $1 AND epoch = $2", [.bytes([1]), .integer(epoch)])
                ).affected
            }
            #expect(try update(1) == 1)
            #expect(try update(1) == 0)
            #expect(try update(2) == 1)
        }
    }

    @Test("A transaction needs one round trip")
    func roundTrips() async throws {
        let database = try await TestDatabase.start()
        try await onThread {
            let pool = database.pool
            try pool.runScript("CREATE TABLE t (n bigint)")
            let statements = (0..<20).map { DatabaseStatement("INSERT INTO t VALUES ($1)", [.integer($0)]) }
            _ = try pool.transaction(statements)
            let before = database.proxy.roundTrips
            _ = try pool.transaction(statements)
            #expect(database.proxy.roundTrips - before == 1)
        }
    }
}
