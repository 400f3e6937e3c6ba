import ResumableUpload
import SystemCalls
import TestSupport
import Testing

@testable import UploadStorage

/// Publications whose outcome is settled later: by another attempt, by the sweep, or after a start.
@Suite struct UnsettledPublicationTests {
    /// Begins the publication of "abc" as `x`, which cannot be renamed until the plan changes.
    private func publishWithFailure(in fixture: StoreFixture) throws {
        let lease = try fixture.store.create(.testing())
        try lease.append("abc")
        fixture.plan.fail(.rename, with: .crossDevice)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        lease.release()
    }

    @Test("a publication that cannot be completed does not prevent the start of the store, and is retried")
    func stuckPublication() throws {
        let fixture = try StoreFixture(.memory)
        try publishWithFailure(in: fixture)
        try fixture.reopen()
        #expect(!fixture.store.sweepPart().failures.isEmpty)
        // The publication that was recorded first must be completed first.
        let other = try fixture.store.create(.testing())
        try other.append("other")
        #expect(throws: StoreError.self) { try other.publish(.testing(name("x"))) }
        fixture.plan.fail(.rename, with: nil)
        #expect(fixture.store.sweep().settled == 1)
        #expect(try fixture.store.publishedFile(name("x")).readAll() == Array("abc".utf8))
        _ = try other.publish(.testing(name("x")))
        #expect(try fixture.store.publishedFile(name("x")).readAll() == Array("other".utf8))
        other.release()
    }

    @Test("an interrupted publication that fails again is repeated after a pause")
    func stuckPublicationPauses() async throws {
        let fixture = try StoreFixture(.memory)
        try publishWithFailure(in: fixture)
        func attempts() -> Int { fixture.plan.history.count { $0 == .rename } }
        let before = attempts()
        var failures = 0
        for _ in 0..<50 { failures += fixture.store.sweepPart().failures.count }
        #expect(attempts() - before <= 2 && failures <= 2)
        fixture.plan.fail(.rename, with: nil)
        #expect(try await happens { fixture.store.sweepPart().settled == 1 })
    }

    struct LostPublication: Sendable, CustomTestStringConvertible {
        var operation: FaultPlan.Operation
        var replaces: Bool
        var isPlain: Bool

        var testDescription: String {
            "\(operation), \(replaces ? "replacing" : "new"), \(isPlain ? "plain" : "resumable")"
        }

        static let all = [FaultPlan.Operation.synchronize, .synchronizeNames].flatMap { operation in
            [false, true].flatMap { replaces in
                [false, true].map { LostPublication(operation: operation, replaces: replaces, isPlain: $0) }
            }
        }
    }

    @Test(
        "OFF-18: a publication that could not be synchronized fails permanently, and the old file is kept",
        arguments: LostPublication.all)
    func failedPublication(_ lost: LostPublication) throws {
        let fixture = try StoreFixture(.memory)
        if lost.replaces {
            let old = try fixture.store.create(.testing())
            try old.append("old")
            _ = try old.publish(.testing(name("x")))
            old.release()
        }
        let lease =
            lost.isPlain
            ? try fixture.store.createTransient(principal: "alice", length: 3) : try fixture.store.create(.testing())
        try lease.append("new")
        _ = try lease.acknowledge()
        fixture.plan.fail(lost.operation, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        fixture.plan.fail(lost.operation, with: nil)
        func check() throws {
            if lost.replaces {
                #expect(try fixture.store.publishedFile(name("x")).readAll() == Array("old".utf8))
            } else {
                #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(name("x")) }
            }
        }
        func checkEnd() throws {
            try check()
            if let id = lease.id {
                #expect(throws: StoreError.gone(reason: "its file could not be made durable")) {
                    try fixture.store.lease(id)
                }
            }
            #expect(try fixture.blobCount() == 0)
            #expect(fixture.store.usage(of: "alice") == Usage(publishedBytes: lost.replaces ? 3 : 0))
        }
        try check()
        lease.release()
        let report = fixture.store.sweep()
        #expect(report.settled == 0)
        if lost.operation == .synchronizeNames {
            // The restored names could not be made durable either. A later success in this process does not prove that
            // they are durable.
            #expect(report.failures.isEmpty == (lost.isPlain && !lost.replaces))
            try check()
        } else {
            #expect(report.failures.isEmpty)
            try checkEnd()
        }
        try fixture.reopen()
        _ = fixture.store.sweep()
        try checkEnd()
        // A later upload can be published.
        let next = try fixture.store.create(.testing())
        try next.append("next")
        _ = try next.publish(.testing(name("x")))
        next.release()
        #expect(try fixture.store.publishedFile(name("x")).readAll() == Array("next".utf8))
    }

    @Test("OFF-18: after a failed synchronization of an empty upload, only another lease can publish it")
    func failedEmptyUpload() throws {
        let fixture = try StoreFixture(.memory)
        let lease = try fixture.store.create(.testing())
        let id = try #require(lease.id)
        fixture.plan.fail(.synchronize, with: .inputOutput)
        #expect(throws: StoreError.self) { try lease.publish(.testing(name("x"))) }
        fixture.plan.fail(.synchronize, with: nil)
        #expect(throws: StoreError.superseded) { try lease.publish(.testing(name("x"))) }
        lease.release()
        let next = try fixture.store.lease(id)
        _ = try next.publish(.testing(name("x")))
        next.release()
        #expect(try fixture.store.publishedFile(name("x")).readAll() == [])
    }

    @Test("OFF-18: an upload whose blob has no durable name gets a new blob, which survives a crash")
    func failedName() throws {
        for _ in 0..<20 {
            let fixture = try StoreFixture(.memory)
            let lease = try fixture.store.create(.testing())
            let id = try #require(lease.id)
            try lease.append("abc")
            fixture.plan.fail(.synchronizeNames, with: .inputOutput)
            #expect(throws: StoreError.self) { try lease.acknowledge() }
            fixture.plan.fail(.synchronizeNames, with: nil)
            lease.release()
            let next = try fixture.store.lease(id)
            #expect(next.received == 0)
            try next.append("def")
            #expect(try next.acknowledge() == 3)
            next.release()
            try fixture.reopen()
            #expect(try fixture.store.lease(id).readAll() == Array("def".utf8))
        }
    }

    @Test("OFF-18: a failed synchronization of names fails every upload whose name is not durable yet")
    func failedNameOfAnother() throws {
        for seed in 0..<12 as Range<UInt64> {
            let fixture = try StoreFixture(.memory)
            let leases = try (0..<2).map { _ in try fixture.store.create(.testing()) }
            for lease in leases { try lease.append("abc") }
            fixture.plan.fail(.synchronizeNames, with: .inputOutput)
            #expect(throws: StoreError.self) { try leases[0].acknowledge() }
            fixture.plan.fail(.synchronizeNames, with: nil)
            #expect(throws: StoreError.self) { try leases[1].acknowledge() }
            for lease in leases {
                lease.release()
                let next = try fixture.store.lease(#require(lease.id))
                try next.append("def")
                #expect(try next.acknowledge() == 3)
                next.release()
            }
            try fixture.reopen(seed: seed)
            for lease in leases {
                #expect(try fixture.store.lease(#require(lease.id)).readAll() == Array("def".utf8), "seed \(seed)")
            }
        }
    }

    @Test("OFF-18: a directory that could not be made durable is created again before a publication in it")
    func failedDirectory() throws {
        for seed in 0..<12 as Range<UInt64> {
            let fixture = try StoreFixture(.memory)
            func publish(_ path: String) throws {
                let lease = try fixture.store.create(.testing())
                defer { lease.release() }
                try lease.append(path)
                _ = try lease.acknowledge()
                _ = try lease.publish(.testing(name(path)))
            }
            fixture.plan.fail([.synchronizeNames, .removeDirectory], after: .setTime, with: .inputOutput)
            #expect(throws: StoreError.self) { try publish("d/e/x") }
            fixture.plan.fail(.synchronizeNames, with: nil)
            // The directory still exists, and a later synchronization that succeeds does not prove that it is durable.
            #expect(throws: StoreError.self) { try publish("d/y") }
            fixture.plan.fail(.removeDirectory, with: nil)
            try publish("d/z")
            try fixture.reopen(seed: seed)
            let file = try? fixture.store.publishedFile(name("d/z"))
            #expect(try file?.readAll() == Array("d/z".utf8), "seed \(seed)")
        }
    }
}
