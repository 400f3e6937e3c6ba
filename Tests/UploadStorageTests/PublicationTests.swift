import Foundation
import HTTPSemantics
import ResumableUpload
import SystemCalls
import Testing

@testable import UploadStorage

@Suite struct PublicationTests {
    private func lease(_ fixture: StoreFixture, _ text: String) throws -> UploadLease {
        let lease = try fixture.store.create(.testing(length: Int64(text.utf8.count)))
        try lease.append(text)
        return lease
    }

    @Test(
        "the first publication creates a file, the next one replaces it, and both answers are kept",
        arguments: StoreKind.allCases)
    func publishing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let target = try name("dir/sub/file.txt")
        let first = try lease(fixture, "one")
        let created = try first.publish(.testing(target))
        #expect(created.status == 201)
        let file = try fixture.store.publishedFile(target)
        #expect(created.fields["ETag"] == file.attributes.entityTag.serialized)
        #expect(try file.readAll() == Array("one".utf8))
        let second = try lease(fixture, "two, longer")
        let replaced = try second.publish(.testing(target))
        #expect(replaced.status == 200 && replaced.fields["ETag"] != created.fields["ETag"])
        // The file that was opened before still has the old bytes.
        #expect(try file.readAll() == Array("one".utf8))
        #expect(try fixture.store.publishedFile(target).readAll() == Array("two, longer".utf8))
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 11))
        #expect(try fixture.blobCount() == 0)
        let id = try #require(first.id)
        try fixture.reopen()
        #expect(try fixture.store.record(id).phase == .complete(created))
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 11))
        #expect(try fixture.store.publishedFile(target).attributes.entityTag.serialized == replaced.fields["ETag"])
        let listed = try fixture.store.entries(in: .root)
        #expect(listed.map(\.name) == ["dir"] && listed[0].isDirectory)
        let directory = try #require(PublishedName.Directory(segments: ["dir", "sub"]))
        #expect(try fixture.store.entries(in: directory).map(\.size) == [11])
    }

    @Test(
        "an upload whose condition fails gets the final response, and its bytes are deleted",
        arguments: StoreKind.allCases)
    func refusing(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let target = try name("file")
        _ = try lease(fixture, "one").publish(.testing(target))
        let seen = Monitor<[PublishedFile.Attributes?]>([])
        var publication = Publication.testing(target)
        publication.condition = { attributes in
            seen.withLock { $0.append(attributes) }
            return Response(status: 412)
        }
        let second = try lease(fixture, "two")
        #expect(try second.publish(publication) == Response(status: 412))
        #expect(seen.withLock { $0.map { $0?.size } } == [3])
        #expect(try fixture.store.record(#require(second.id)).phase == .complete(Response(status: 412)))
        #expect(try fixture.store.publishedFile(target).readAll() == Array("one".utf8))
        #expect(try fixture.blobCount() == 0)
        let transient = try fixture.store.createTransient(principal: "alice", length: nil)
        try transient.append("three")
        #expect(try transient.publish(publication).status == 412)
        #expect(try fixture.blobCount() == 0)
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 3))
    }

    @Test("if a name is in use, the next alternative is used", arguments: StoreKind.allCases)
    func alternatives(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        _ = try lease(fixture, "x").publish(.testing(name("file")))
        _ = try lease(fixture, "x").publish(.testing(name("file-1/inner")))
        let third = try name("file-2")
        let alternatives: @Sendable (Int) -> PublishedName? = { n in
            n < 3 ? PublishedName(segments: ["file-\(n)"]) : nil
        }
        var publication = Publication.testing(try name("file"))
        publication.canReplace = false
        publication.alternatives = alternatives
        publication.response = { created, name in
            Response(status: created ? 201 : 200, fields: ["Location": name.path])
        }
        let response = try lease(fixture, "new").publish(publication)
        #expect(response.fields["Location"] == "file-2")
        #expect(try fixture.store.publishedFile(third).readAll() == Array("new".utf8))
        let late = try lease(fixture, "late")
        #expect(throws: StoreError.noFreeName) { try late.publish(publication) }
        // No publication was recorded, so the caller may send any answer.
        try late.complete(with: Response(status: 409))
    }

    @Test(
        "a directory at the target and a file above it cause separate errors, and the caller completes the upload",
        arguments: StoreKind.allCases)
    func obstacles(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        _ = try lease(fixture, "x").publish(.testing(name("dir/file")))
        let upload = try lease(fixture, "y")
        #expect(throws: StoreError.targetIsDirectory) { try upload.publish(.testing(name("dir"))) }
        #expect(throws: StoreError.parentIsFile) { try upload.publish(.testing(name("dir/file/below"))) }
        try upload.complete(with: Response(status: 409))
        #expect(throws: StoreError.targetIsDirectory) { try fixture.store.publishedFile(name("dir")) }
        #expect(throws: StoreError.parentIsFile) { try fixture.store.publishedFile(name("dir/file/below")) }
        #expect(throws: StoreError.notFound) { try fixture.store.publishedFile(name("nothing")) }
        #expect(throws: StoreError.targetIsDirectory) { try fixture.store.remove(name("dir")) }
        #expect(throws: StoreError.notFound) { try fixture.store.remove(name("nothing")) }
        #expect(throws: StoreError.preconditionFailed) { try fixture.store.remove(name("dir/file")) { _ in false } }
        try fixture.store.remove(name("dir/file")) { $0.size == 1 }
        #expect(fixture.usage(of: "alice") == Usage())
    }

    @Test("an empty upload becomes an empty file", arguments: StoreKind.allCases)
    func emptyFile(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        let upload = try fixture.store.create(.testing(length: 0))
        #expect(try upload.publish(.testing(name("empty"))).status == 201)
        #expect(try fixture.store.publishedFile(name("empty")).attributes.size == 0)
    }

    @Test("exactly one of many conditional creations of a name succeeds", arguments: StoreKind.allCases)
    func racingCreations(_ kind: StoreKind) async throws {
        let fixture = try StoreFixture(kind)
        let target = try name("race")
        let leases = try (0..<8).map { try lease(fixture, "content \($0)") }
        let statuses = await withTaskGroup(of: Status?.self) { group in
            for lease in leases {
                group.addTask {
                    var publication = Publication.testing(target)
                    publication.condition = { $0 == nil ? nil : Response(status: 412) }
                    return try? lease.publish(publication).status
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.filter { $0 == 201 }.count == 1)
        #expect(statuses.filter { $0 == 412 }.count == 7)
        #expect(fixture.usage(of: "alice").publishedBytes == 9)
    }

    @Test(
        "a publication that failed after it was recorded is completed by the next sweep",
        arguments: [FaultPlan.Operation.rename, .setTime])
    func unsettled(_ operation: FaultPlan.Operation) throws {
        let fixture = try StoreFixture(.memory)
        let upload = try lease(fixture, "content")
        let id = try #require(upload.id)
        try upload.beginProcessing(shouldMarkDurably: false)
        fixture.plan.fail(operation, with: .inputOutput)
        #expect(throws: StoreError.self) { try upload.publish(.testing(name("file"))) }
        #expect(throws: StoreError.superseded) { try upload.append("x") }
        upload.release()
        #expect(try fixture.store.record(id).phase == .processing)
        #expect(throws: StoreError.self) {
            try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero)
        }
        fixture.plan.fail(operation, with: nil)
        #expect(fixture.store.sweep().settled == 1)
        guard
            case .complete(let record) = try fixture.store.takeOver(
                id, principal: "alice", waitForProcessing: .zero), case .complete(let response) = record.phase
        else { return #expect(Bool(false), "not complete") }
        #expect(response.status == 201)
        #expect(try fixture.store.publishedFile(name("file")).readAll() == Array("content".utf8))
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 7))
    }

    @Test("publications of a name are completed in the order in which they were recorded, even after an error")
    func decidedFirst() throws {
        let fixture = try StoreFixture(.memory)
        let upload = try lease(fixture, "content")
        let id = try #require(upload.id)
        fixture.plan.fail(.rename, with: .inputOutput)
        #expect(throws: StoreError.self) { try upload.publish(.testing(name("file"))) }
        let other = try lease(fixture, "other")
        #expect(throws: StoreError.self) { try other.publish(.testing(name("file"))) }
        #expect(throws: StoreError.self) { try fixture.store.remove(name("file")) }
        fixture.plan.fail(.rename, with: nil)
        upload.release()
        #expect(try other.publish(.testing(name("file"))).status == 200)
        #expect(try fixture.store.publishedFile(name("file")).readAll() == Array("other".utf8))
        guard case .complete(let record) = try fixture.store.takeOver(id, principal: "alice", waitForProcessing: .zero),
            case .complete(let response) = record.phase
        else { return #expect(Bool(false), "not complete") }
        #expect(response.status == 201)
        #expect(fixture.usage(of: "alice") == Usage(publishedBytes: 5))
    }

    @Test("a publication is refused if another program has created a file with its name in the meantime")
    func occupiedMeanwhile() throws {
        let fixture = try StoreFixture(.files)
        let upload = try lease(fixture, "content")
        let id = try #require(upload.id)
        try upload.beginProcessing(shouldMarkDurably: false)
        let row = try #require(try fixture.store.catalog.row(id))
        let identity = try fixture.store.area.open(row.blob).identity()
        let intent = PublicationIntent(
            name: try name("file"), replaced: nil, identity: identity, response: Response(status: 201),
            refused: Response(status: 409))
        try fixture.store.catalog.commit(.recordIntent(id, epoch: 1, intent))
        try Data("outside".utf8).write(to: URL(fileURLWithPath: fixture.root + "/files/file"))
        try fixture.reopen()
        #expect(try fixture.store.record(id).phase == .complete(Response(status: 409)))
        #expect(try fixture.store.publishedFile(name("file")).readAll() == Array("outside".utf8))
        #expect(try fixture.blobCount() == 0)
        upload.release()
    }

    @Test("files that a person has removed are not counted after the next sweep", arguments: StoreKind.embedded)
    func missingFiles(_ kind: StoreKind) throws {
        let fixture = try StoreFixture(kind)
        for index in 0..<3 { _ = try lease(fixture, "abc").publish(.testing(name("d/\(index)"))) }
        try fixture.store.area.removePublished(name("d/1"), tagged: "")
        #expect(fixture.usage(of: "alice").publishedBytes == 9)
        #expect(fixture.store.sweep().missingFiles == 1)
        #expect(fixture.usage(of: "alice").publishedBytes == 6)
    }
}
