import ConformanceKit
import HTTPTestSupport
import Testing

/// Content that reaches the declared length in a request with `Upload-Complete: ?0`, as tus-js-client sends the last
/// content of a stream: versions 5 and 6 complete the upload, the other versions do not. The harness
/// accepts both.
@Suite("Content that reaches the declared length", .timeLimit(.minutes(30)))
struct ReachedLengthTests {
    private static let completing: [Interop] = [.v5, .v6]
    private static let explicit: [Interop] = [.v4, .v7, .v8]
    private static let content = Payload.bytes(100_000)

    @Test(
        "VER-24: a creation with ?0 and all content gets the same response as a creation with ?1",
        arguments: completing, [0, 1, 100_000])
    func creation(version: Interop, size: Int) throws {
        try withService { server in
            let content = Array(Self.content[..<size])
            for framing in [Request.Content.bytes(content), .chunks(size > 0 ? [content] : [])] {
                let asked = try server.exchange(
                    .creation(version, "PUT", "/files/a", complete: true, length: size, framing))
                let reached = try server.exchange(
                    .creation(version, "PUT", "/files/b", complete: false, length: size, framing))
                for (response, name) in [(asked, "a"), (reached, "b")] {
                    #expect([201, 204].contains(response.status))
                    #expect(response.complete == true)
                    #expect(response.offset == Int64(size))
                    #expect(response.location?.hasPrefix("/uploads/") == true)
                    #expect(server.data.published(name) == content)
                }
                #expect(reached.status == asked.status)
                #expect(reached.fields.contains("ETag"))
                #expect(reached.interim.first?.location == reached.location)
            }
        }
    }

    @Test(
        "VER-24 APP-20: an append that reaches the length completes the upload; an empty ?1 gets the same response",
        arguments: completing, [true, false])
    func append(version: Interop, isDeclaredLate: Bool) throws {
        try withService { server in
            let content = Self.content
            let location = try server.begin(
                version, "/files/f", Array(content[..<60_000]), length: isDeclaredLate ? nil : content.count)
            let part = try server.exchange(
                .append(version, location, at: 60_000, complete: false, .bytes(Array(content[60_000..<80_000]))))
            #expect(part.status == 201)
            #expect(part.complete == false)
            #expect(server.data.published("f") == nil)
            let last = try server.exchange(
                .append(
                    version, location, at: 80_000, complete: false, length: isDeclaredLate ? content.count : nil,
                    .bytes(Array(content[80_000...]))))
            #expect(last.status == 201)
            #expect(last.complete == true)
            #expect(last.offset == Int64(content.count))
            #expect(server.data.published("f") == content)
            let head = try server.retrieve(location, version)
            #expect(head.complete == true)
            #expect(head.offset == Int64(content.count))
            for complete in [true, false, nil] as [Bool?] {
                let again = try server.exchange(
                    .append(version, location, at: content.count, complete: complete, .bytes([])))
                #expect(again.status == last.status)
                #expect(again.complete == true)
                #expect(again.value("ETag") == last.value("ETag"))
            }
            let more = try server.exchange(
                .append(version, location, at: content.count, complete: true, .bytes([1])))
            #expect(more.status == 400)
            #expect(more.complete == false)
            #expect(server.data.published("f") == content)
        }
    }

    @Test(
        "CMP-01 CMP-02: in other versions an upload that reaches its length stays open until ?1", arguments: explicit,
        [0, 10])
    func others(version: Interop, size: Int) throws {
        try withService { server in
            let content = Payload.bytes(size)
            let created = try server.exchange(
                .creation(version, "PUT", "/files/f", complete: false, length: size, .bytes(content)))
            #expect(created.status == 201)
            #expect(created.states(complete: false, in: version))
            let location = try #require(created.location)
            let state = try server.retrieve(location, version)
            #expect(state.offset == Int64(size))
            #expect(state.states(complete: false, in: version))
            let empty = try server.exchange(.append(version, location, at: size, complete: false, .bytes([])))
            #expect(empty.states(complete: false, in: version))
            #expect(server.data.published("f") == nil)
            let done = try server.exchange(.append(version, location, at: size, complete: true, .bytes([])))
            #expect(done.states(complete: true, in: version))
            #expect(server.data.published("f") == content)
        }
    }

    @Test(
        "VER-22 VER-24: the version of the request determines whether reaching the length completes the upload",
        arguments: completing, explicit)
    func mixed(completing: Interop, explicit: Interop) throws {
        try withService { server in
            let content = Payload.bytes(10)
            let first = Array(content[..<4])
            let remaining = Array(content[4...])
            let one = try server.begin(.v8, "/files/one", first, length: 10)
            let reached = try server.exchange(.append(completing, one, at: 4, complete: false, .bytes(remaining)))
            #expect(reached.status == 201)
            #expect(reached.complete == true)
            #expect(server.data.published("one") == content)

            let two = try server.begin(completing, "/files/two", first, length: 10)
            let part = try server.exchange(.append(explicit, two, at: 4, complete: false, .bytes(remaining)))
            #expect(part.states(complete: false, in: explicit))
            #expect(try server.retrieve(two, explicit).states(complete: false, in: explicit))
            #expect(server.data.published("two") == nil)
            let done = try server.exchange(.append(explicit, two, at: 10, complete: true, .bytes([])))
            #expect(done.states(complete: true, in: explicit))
            #expect(server.data.published("two") == content)
        }
    }

    @Test(
        "LEN-05 LEN-06: content beyond the length is refused, and chunked content also invalidates the upload",
        arguments: completing)
    func overrun(version: Interop) throws {
        try withService { server in
            let location = try server.begin(version, "/files/f", [1, 2], length: 4)
            let announced = try server.exchange(
                .append(version, location, at: 2, complete: false, .bytes([3, 4, 5])))
            #expect(announced.status == 400)
            #expect(try server.retrieve(location, version).offset == 2)
            let counted = try server.exchange(
                .append(version, location, at: 2, complete: false, .chunks([[3, 4], [5]])))
            #expect(counted.status == 400)
            #expect(try server.retrieve(location, version).status == 404)
            #expect(server.data.published("f") == nil)
        }
    }

    @Test(
        "DIG-02: content that reaches the length with a wrong digest does not complete the upload",
        arguments: completing)
    func digest(version: Interop) throws {
        try withService { server in
            let location = try server.begin(version, "/files/f", [1, 2], length: 4)
            let append = Request.append(version, location, at: 2, complete: false, .bytes([3, 4]))
            let wrong = try server.exchange(append.with("Content-Digest", [9].digestField()))
            #expect(wrong.status == 400)
            #expect(wrong.complete == false)
            #expect(try server.retrieve(location, version).offset == 2)
            let right = try server.exchange(append.with("Content-Digest", [3, 4].digestField()))
            #expect(right.complete == true)
            #expect(server.data.published("f") == [1, 2, 3, 4])
        }
    }

    @Test("LIM-07: the last content may be smaller than min-append-size", arguments: completing)
    func small(version: Interop) throws {
        try withService(settings: .with { $0.server.limits.minAppendSize = 5 }) { server in
            let location = try server.begin(version, "/files/f", Payload.bytes(5), length: 7)
            let part = try server.exchange(.append(version, location, at: 5, complete: false, .bytes([8])))
            #expect(part.status == 400)
            let last = try server.exchange(.append(version, location, at: 5, complete: false, .bytes([8, 9])))
            #expect(last.complete == true)
            #expect(server.data.published("f") == Payload.bytes(5) + [8, 9])
        }
    }
}
