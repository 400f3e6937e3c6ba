import ObjectStorage
import PostgreSQL
import SystemCalls
import Testing

@testable import ClusterStorage

/// Tests which changes of pieces transactions get, and which objects are deleted because no transaction can name them.
@Suite struct PieceLedgerTests {
    private let ledger: PieceLedger
    private let blob: ObjectBlob
    private let storage: PieceStorage

    init() throws {
        let ledger = PieceLedger()
        self.ledger = ledger
        storage = try PieceStorage(
            objects: MemoryObjectStore(), database: Database(DatabaseURI(parsing: "postgresql://localhost")),
            ledger: ledger, limits: PieceLimits(), writers: 1, session: { 1 })
        blob = ObjectBlob("b", isNew: false, in: storage)
    }

    private func piece(_ start: Int64, _ size: Int, _ key: String) -> Piece {
        Piece(start: start, size: size, storage: .object(key))
    }

    /// Registers pieces. `new` contains the new objects; by default, the objects of all pieces.
    private func register(_ pieces: [Piece], from: Int64? = nil, new: Set<String>? = nil) -> Set<String> {
        Set(
            ledger.register(
                "b", of: ObjectIdentifier(blob), from: from ?? pieces[0].start, pieces,
                new: new ?? Set(pieces.compactMap(\.object))))
    }

    @Test("a change contains all pieces since the last one that was recorded")
    func accumulation() throws {
        #expect(ledger.change(of: "b") == nil)
        #expect(register([piece(0, 10, "1")]) == [])
        #expect(register([piece(10, 5, "2")]) == [])
        let first = try #require(ledger.change(of: "b"))
        #expect(first.from == 0)
        #expect(first.pieces == [piece(0, 10, "1"), piece(10, 5, "2")])
        ledger.recorded(first)
        #expect(ledger.change(of: "b") == nil)
        _ = register([piece(15, 1, "3")])
        #expect(try #require(ledger.change(of: "b")).pieces == [piece(15, 1, "3")])
    }

    @Test("pieces that were registered during a transaction remain for the next one")
    func concurrency() throws {
        _ = register([piece(0, 10, "1"), piece(10, 5, "2")])
        let first = try #require(ledger.change(of: "b"))
        // The second piece is replaced by a longer one. The running transaction may record it, so it is not deleted.
        #expect(register([piece(10, 8, "3")]) == [])
        ledger.recorded(first)
        let second = try #require(ledger.change(of: "b"))
        #expect(second.from == 10)
        #expect(second.pieces == [piece(10, 8, "3")])
    }

    @Test("an object that is replaced before a transaction has got it is deleted, and any other is not")
    func replacement() throws {
        _ = register([piece(0, 10, "1")])
        #expect(register([piece(0, 12, "2")], from: 0) == ["1"])
        let sent = try #require(ledger.change(of: "b"))
        #expect(register([piece(0, 14, "3")], from: 0) == [])
        ledger.rejected(sent)
        #expect(register([piece(0, 15, "4")], from: 0) == ["3"])
        ledger.recorded(try #require(ledger.change(of: "b")))
        // The database contains a longer piece of the same object.
        #expect(register([piece(0, 7, "4")], from: 0, new: []) == [])
        #expect(register([piece(0, 9, "5")], from: 0) == [])
    }

    @Test("after a rejected transaction its objects are deleted if no other transaction may have recorded them")
    func rejection() throws {
        _ = register([piece(0, 10, "1")])
        let unknown = try #require(ledger.change(of: "b"))
        let rejected = try #require(ledger.change(of: "b"))
        ledger.rejected(rejected)
        #expect(unknown.pieces == rejected.pieces)
        #expect(register([piece(0, 11, "2")], from: 0) == [])
        let other = try #require(ledger.change(of: "b"))
        ledger.rejected(other)
        #expect(register([piece(0, 12, "3")], from: 0) == ["2"])
    }

    @Test("an object is unneeded when no blob needs it, and all transactions that may have recorded it have ended")
    func unneeded() throws {
        _ = register([piece(0, 10, "1")])
        let (first, second) = (try #require(ledger.change(of: "b")), try #require(ledger.change(of: "b")))
        #expect(register([piece(0, 12, "2")], from: 0) == [])
        ledger.rejected(first)
        #expect(ledger.takeUnneeded() == [])
        ledger.rejected(second)
        #expect(ledger.takeUnneeded() == ["1"])
        // The outcome can become unknown before the blob drops the object, or after that.
        ledger.outcomeBecameUnknown(of: try #require(ledger.change(of: "b")))
        #expect(ledger.takeUnneeded() == [])
        #expect(register([piece(0, 14, "3")], from: 0) == [])
        #expect(ledger.takeUnneeded() == ["2"])
        let third = try #require(ledger.change(of: "b"))
        #expect(register([piece(0, 15, "4")], from: 0) == [])
        ledger.outcomeBecameUnknown(of: third)
        #expect(ledger.takeUnneeded() == ["3"])
        // The row of a recorded object is removed by a transaction, which makes the object garbage.
        let fourth = try #require(ledger.change(of: "b"))
        #expect(register([piece(0, 16, "5")], from: 0) == [])
        let fifth = try #require(ledger.change(of: "b"))
        #expect(register([piece(0, 17, "6")], from: 0) == [])
        ledger.recorded(fourth)
        ledger.rejected(fifth)
        #expect(ledger.takeUnneeded() == ["5"])
        let sixth = try #require(ledger.change(of: "b"))
        let another = ObjectBlob("b", isNew: false, in: storage)
        ledger.rejected(sixth)
        #expect(ledger.takeUnneeded() == ["6"])
        withExtendedLifetime(another) {}
    }

    @Test("a blob that is opened again drops the changes of the previous object")
    func reopening() throws {
        _ = register([piece(0, 10, "1"), piece(10, 5, "2")])
        let sent = try #require(ledger.change(of: "b"))
        _ = register([piece(15, 5, "3")])
        let second = ObjectBlob("b", isNew: false, in: storage)
        #expect(ledger.change(of: "b") == nil)
        ledger.recorded(sent)
        #expect(register([piece(20, 5, "4")]) == ["4"])
        #expect(ledger.takeUnneeded() == [])
        #expect(ledger.change(of: "b") == nil)
        withExtendedLifetime(second) {}
    }
}
