import Digests
import Glibc
import HTTPSemantics
import ResumableUpload
import TestSupport
import Testing

@testable import UploadStorage

/// The processing of a complete upload by its target, with each pair of catalog and blob area.
@Suite struct UploadStoreProcessingTests {
    @Test(
        "APP-19 APP-20: a complete upload keeps its response and accepts no more content",
        arguments: StoreKind.allCases)
    func completing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        try lease.append("early")
        let response = Response(status: 400, fields: ["X": "y"], content: [1, 2, 3])
        try lease.complete(with: response)
        #expect(throws: StoreError.completed) { try lease.append("late") }
        #expect(throws: StoreError.completed) { try lease.complete(with: Response(status: 200)) }
        lease.release()
        #expect(fixture.usage(of: "alice") == Usage())
        for _ in 0..<2 {
            guard
                case .complete(let record) = try fixture.store.takeOver(
                    id, principal: "alice", waitForProcessing: .zero)
            else { return #expect(Bool(false), "not complete") }
            #expect(record.phase == .complete(response) && record.offset == 5)
            try fixture.reopen()
        }
        try fixture.store.cancel(id, principal: "alice")
        #expect(throws: StoreError.notFound) { try fixture.store.record(id) }
    }

    @Test("CON-02: an upload cannot be taken over during processing", arguments: StoreKind.allCases)
    func processing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(length: 3))
        let id = try #require(lease.id)
        try lease.append("abc")
        try lease.beginProcessing(shouldMarkDurably: true)
        #expect(lease.acknowledged == 3)
        guard
            case .processing(let record) = try fixture.store.takeOver(
                id, principal: "alice", waitForProcessing: .milliseconds(5))
        else { return #expect(Bool(false), "not processing") }
        #expect(record.phase == .processing && record.offset == 3)
        #expect(throws: StoreError.processing) { try fixture.store.cancel(id, principal: "alice") }
        #expect(lease.isCurrent)
        #expect(try lease.readAll() == Array("abc".utf8))
        lease.endProcessing()
        #expect(try fixture.store.record(id).phase == .receiving)
        let next = try fixture.store.lease(id)
        #expect(!lease.isCurrent && next.received == 3)
    }

    @Test("processing is not repeated if the process ended during it", arguments: StoreKind.allCases)
    func interruptedProcessing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let marked = try fixture.store.create(.testing())
        let unmarked = try fixture.store.create(.testing())
        let ids = [try #require(marked.id), try #require(unmarked.id)]
        try marked.append("abc")
        try unmarked.append("abc")
        try marked.beginProcessing(shouldMarkDurably: true)
        try unmarked.beginProcessing(shouldMarkDurably: false)
        try fixture.reopen { $0.interruptedResponse = Response(status: 503) }
        #expect(try fixture.sweep { try fixture.store.record(ids[0]).phase == .complete(Response(status: 503)) })
        #expect(try fixture.store.record(ids[1]).phase == .receiving)
        #expect(try fixture.blobCount() == (kind == .cluster ? 0 : 1))
        marked.release()
        unmarked.release()
    }

    @Test(
        "an upload whose lease is released during processing gets the response for an interruption",
        arguments: StoreKind.allCases)
    func releasedProcessing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        for marks in [true, false] {
            let lease = try fixture.store.create(.testing())
            let id = try #require(lease.id)
            try lease.beginProcessing(shouldMarkDurably: marks)
            lease.release()
            let phase = try fixture.store.record(id).phase
            #expect(phase == (marks ? .complete(Response(status: 500)) : .receiving))
        }
    }

    @Test(
        "an upload whose processing was interrupted is retained only with all its bytes; without them it is invalid",
        arguments: StoreKind.embedded, [nil, 2, 3] as [Int64?])
    func interruptedWithoutBytes(_ kind: StoreKind, remaining: Int64?) throws {
        let fixture = try StoreFixture(kind)
        let leases = try ([3, 0] as [Int64]).map { try fixture.store.create(.testing(length: $0)) }
        let ids = try leases.map { try #require($0.id) }
        try leases[0].append("abc")
        for lease in leases { try lease.beginProcessing(shouldMarkDurably: true) }
        let sizes = try fixture.store.area.sizes()
        #expect(sizes.values.sorted() == [0, 3])
        try fixture.reopen(
            after: {
                for (name, size) in sizes {
                    let path = fixture.root + "/uploads/" + name
                    switch (kind, size > 0 ? remaining : nil) {
                    case (.memory, let remaining?): try? fixture.area.open(name).truncate(to: remaining)
                    case (.memory, nil): try? fixture.area.remove(name)
                    case (_, let remaining?): #expect(truncate(path, Int(remaining)) == 0)
                    case (_, nil): #expect(unlink(path) == 0)
                    }
                }
            }, losingPower: false
        ) {
            $0.interruption = { _ in
                StoreConfiguration.Interruption(response: Response(status: 502), description: [1])
            }
        }
        let phase = try fixture.store.record(ids[0]).phase
        if remaining == 3 {
            #expect(phase == .complete(Response(status: 502)))
        } else {
            #expect(phase == .invalid(reason: "acknowledged bytes were lost"))
        }
        // An upload without bytes has lost none.
        #expect(try fixture.store.record(ids[1]).phase == .complete(Response(status: 502)))
        #expect(try fixture.store.area.retainedCount() == (remaining == 3 ? 2 : 1))
        for lease in leases { lease.release() }
    }

    @Test("an upload is not swept during processing", arguments: StoreKind.allCases)
    func expiryWhileProcessing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let lease = try fixture.store.create(.testing(expiresAt: 1_000_010))
        try lease.append("abc")
        try lease.beginProcessing(shouldMarkDurably: false)
        fixture.advance(20)
        #expect(fixture.store.sweep().expired == 0)
        try lease.complete(with: Response(status: 200))
    }
}
