import Testing
import UploadStorage

@testable import TransferServer

@Suite("Counts of a server")
struct ServerCountsTests {
    private func series(_ route: String, _ method: String, _ status: String) -> ServerCounts.RequestSeries {
        .init(route: route, method: method, status: status)
    }

    @Test("Requests are counted by route, method and status; the status of unanswered requests is `none`")
    func requests() {
        var counts = ServerCounts()
        counts.record(.testing())
        counts.record(.testing())
        counts.record(.testing("PUT", status: 201, received: 10))
        counts.record(.testing("PUT", status: nil, received: 4, interruption: "client"))
        #expect(counts.requests[series("/files", "GET", "200")] == 2)
        #expect(counts.requests[series("/files", "PUT", "201")] == 1)
        #expect(counts.requests[series("/files", "PUT", "none")] == 1)
        #expect(counts.interruptions["client"] == 1)
        #expect(counts.received == 14)
    }

    @Test("The number of series is bounded, even with any number of methods, routes and codes")
    func bounded() {
        var counts = ServerCounts()
        for number in 0..<5000 {
            counts.record(.testing("M\(number)", status: 400, code: "code-\(number)"))
            counts.record(.testing("GET", route: "/\(number)"))
        }
        #expect(counts.requests.counts.count <= 1001)
        #expect(counts.requests[series("/files", "other", "400")] == 5000)
        #expect(counts.errors.counts.count <= 201)
        #expect(counts.errors.counts.values.reduce(0, +) == 5000)
    }

    @Test(
        "An error code of a target with invalid characters is counted as `other`",
        arguments: ["", "Has Spaces", "a\"b", "ü"])
    func foreignCodes(code: String) {
        var counts = ServerCounts()
        counts.record(.testing("PUT", status: 422, code: code))
        #expect(counts.errors.counts == ["other": 1])
    }

    @Test("Content that was counted while its request continued is not counted again")
    func counted() {
        var counts = ServerCounts()
        counts.add(received: 70)
        counts.record(.testing("PUT", received: 100, countedReceived: 70))
        #expect(counts.received == 100)
    }

    @Test("Creations, resumptions, completions and take-overs are counted")
    func uploads() {
        var counts = ServerCounts()
        counts.record(.testing("PUT", progress: UploadProgress(hasCreated: true)))
        counts.record(.testing("PATCH", progress: UploadProgress(hasResumed: true, hasCompleted: true)))
        counts.record(
            .testing("PATCH", status: nil, interruption: "taken-over", progress: UploadProgress(hasResumed: true)))
        #expect(counts.created == 1)
        #expect(counts.resumed == 2)
        #expect(counts.completed == 1)
        #expect(counts.takenOver == 1)
        #expect(counts.interruptions["taken-over"] == 1)
    }

    @Test(
        "A request without 104 is counted by its reason; for other requests announcements and offsets are counted")
    func interim() {
        var counts = ServerCounts()
        counts.record(.testing())
        counts.record(
            .testing("PUT", explanation: UploadExplanation(handling: .plain(.noCompleteness), permission: .allowed)))
        counts.record(
            .testing(
                "PUT",
                explanation: UploadExplanation(
                    handling: .creation(isPart: false), permission: .allowed, announcements: 1, offsets: 3)))
        #expect(counts.omissions["no-completeness"] == 1)
        #expect(counts.omissions.counts.values.reduce(0, +) == 1)
        #expect(counts.announcements == 1)
        #expect(counts.offsets == 3)
    }

    @Test("Steps to stable storage are counted with their seconds and failures")
    func steps() {
        var counts = ServerCounts()
        counts.record(.content, nanoseconds: 2_000_000_000, isDone: true)
        counts.record(.content, nanoseconds: 500_000_000, isDone: false)
        counts.record(.offset, nanoseconds: 1_000_000, isDone: true)
        #expect(counts.steps[.content]?.seconds.sum == 2.5)
        #expect(counts.steps[.content]?.failures == 1)
        #expect(counts.steps[.offset]?.seconds.count == 1)
        #expect(counts.steps[.publication]?.seconds.count == 0)
    }
}
